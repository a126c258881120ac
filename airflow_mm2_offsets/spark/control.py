"""What a Spark job under stop control says of itself: ``driver.json`` and ``stopped.json``.

The job's side is ``job/stop/control.py``; docs/stop-protocol.md says what each file holds.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from upath import UPath

from airflow_mm2_offsets.core.positions import Positions
from airflow_mm2_offsets.errors import StopError
from airflow_mm2_offsets.spark.control_files import field_of, numbers_of, objects_of, read_object
from airflow_mm2_offsets.spark.offset_log import kafka_positions
from airflow_mm2_offsets.storage import open_location


class Proof(StrEnum):
    """How the stop of a job was established, beside a checkpoint that no longer changes."""

    ACKNOWLEDGED = "acknowledged"
    """The job has answered."""
    SILENT = "silent"
    """Its heartbeat has not changed for as long as the user said."""
    KILLED = "killed"
    """It was killed."""
    ENDED = "ended"
    """Its queries had ended by themselves, and the fence keeps the next run from starting."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Driver:
    """The driver of a job that runs under stop control, or the last one that ran.

    A field with a default is unknown if the job has the ``job/stop/control.py`` of an older
    release.
    """

    application_id: str
    query_id: str
    """Stays the same as long as the checkpoint does."""
    run_id: str
    """New each time the query is started."""
    host: str
    pid: int
    heartbeat: int
    """Rises every few seconds while the driver lives."""
    processes: Mapping[int, int] = field(default_factory=dict)
    """Its Python and its JVM by their ids, each with its start in clock ticks since boot."""
    kubernetes_driver: str | None = None
    """``namespace:pod`` of a driver in a pod of its own."""
    bootstrap_servers: frozenset[str] = frozenset()
    """The brokers that its Kafka sources were given."""
    runs: Mapping[str, str] = field(default_factory=dict)
    """The run id of each of its queries, by the query's id."""
    interval: float = 0.0
    """Seconds between two heartbeats; 0 where it is not known."""
    lease: float = 0.0
    """Seconds without a look for a fence after which it begins no batch; 0: unknown."""
    ended: bool = False
    """Whether all of its queries have ended."""
    stopping: str | None = None
    """The stop that it carries out: it has ended a query, or is about to."""
    control: str = ""
    """Its control location, as Spark spells it; empty: unknown."""
    checkpoints: Mapping[str, str] = field(default_factory=dict)
    """The checkpoint location of each of its queries, as Spark spells it, by the query's id."""
    batches: Mapping[str, int | None] = field(default_factory=dict)
    """The last batch that each query had committed when it ended, by its id, if it says so."""
    subscribe_patterns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Each ``subscribePattern`` of a query's Kafka sources, by the query's id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryAnswer:
    """What a job says of one of its queries, when all have stopped."""

    query_id: str
    run_id: str
    batch_id: int | None
    """The last batch in its checkpoint; None if it has no batch, or it is not known."""
    offsets: Positions | None
    """Where that batch ended; None when another run of the job ran it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Acknowledgement:
    """A job's answer that it has stopped, or the one that the stop step wrote in its place."""

    request_id: str
    application_id: str
    batch_id: int | None
    """The last batch it committed; None when it committed none, or has several queries."""
    offsets: Positions | None
    """Where that batch ended: the next offset to read of each Kafka partition."""
    clean: bool
    """Whether it stopped between batches: none was left begun and uncommitted."""
    error: str | None
    """Why a query failed, if it did before it could be stopped."""
    proof: Proof = Proof.ACKNOWLEDGED
    heartbeat: int | None = None
    """The driver's, when the stop step answered in its place; if it has risen since, the driver
    has not stopped."""
    proved_control: str | None = None
    """The control location that the stop step has proved to be the job's, by ``folder_id``."""
    proved_checkpoint: str | None = None
    """The same of the checkpoint location."""
    queries: tuple[QueryAnswer, ...] = ()
    """What each query says; an older release's ``job/stop/control.py`` says nothing."""

    def is_of(self, driver: Driver | None) -> bool:
        """Tell whether the driver that ran last has given it, as far as their ids show."""
        if driver is None or driver.application_id != self.application_id:
            return False
        if self.heartbeat not in {None, driver.heartbeat}:
            return False
        return not self.queries or self._runs == driver.runs

    def is_last_word_of(self, driver: Driver | None) -> bool:
        """Tell whether no query has run since: then it answers every later stop too."""
        return bool(self.queries) and self.is_of(driver)

    def answers(self, request_id: str, driver: Driver | None) -> bool:
        """Tell whether it answers a stop: this very one, or an earlier one that ended the job.

        ``driver`` is the one that ran last; what another one answered says nothing of it.
        """
        if self.request_id != request_id:
            return self.is_last_word_of(driver)
        return self.proof is not Proof.ACKNOWLEDGED or self.is_of(driver)

    @property
    def _runs(self) -> Mapping[str, str]:
        return {answer.query_id: answer.run_id for answer in self.queries}


def read_acknowledgement(location: UPath | str, request_id: str) -> Acknowledgement | None:
    """Return the job's answer to ``request_id``; None if it has not answered.

    Raises:
        StopError: The location can't be read, or holds something else.
    """
    answer = read_last_acknowledgement(location)
    return answer if answer is not None and answer.request_id == request_id else None


def read_last_acknowledgement(location: UPath | str) -> Acknowledgement | None:
    """Return the last answer to any stop; None if no stop was ever answered.

    Raises:
        StopError: The location can't be read, or holds something else.
    """
    root = open_location(location, StopError)
    answer = read_object(root / "stopped.json", may_be_empty=True)
    if answer is None:
        return None
    return Acknowledgement(
        request_id=field_of(answer, "request_id", str, root),
        application_id=field_of(answer, "application_id", str, root),
        batch_id=field_of(answer, "batch_id", int | None, root),
        offsets=_positions(answer, root),
        clean=field_of(answer, "clean", bool, root),
        error=field_of(answer, "error", str | None, root),
        proof=_proof(answer, root),
        heartbeat=field_of(answer, "heartbeat", int | None, root),
        proved_control=field_of(answer, "proved_control", str | None, root),
        proved_checkpoint=field_of(answer, "proved_checkpoint", str | None, root),
        queries=tuple(
            QueryAnswer(
                query_id=field_of(query, "query_id", str, root),
                run_id=field_of(query, "run_id", str, root),
                batch_id=field_of(query, "batch_id", int | None, root),
                offsets=_positions(query, root),
            )
            for query in objects_of(answer, "queries", root)
        ),
    )


def read_driver(location: UPath | str) -> Driver | None:
    """Return the driver that last ran with this control location; None if no job ever did.

    Raises:
        StopError: The location can't be read, or holds something else.
    """
    root = open_location(location, StopError)
    driver = read_object(root / "driver.json", may_be_empty=True)
    if driver is None:
        return None
    return Driver(
        application_id=field_of(driver, "application_id", str, root),
        query_id=field_of(driver, "query_id", str, root),
        run_id=field_of(driver, "run_id", str, root),
        host=field_of(driver, "host", str, root),
        pid=field_of(driver, "pid", int, root),
        heartbeat=field_of(driver, "heartbeat", int, root),
        processes=numbers_of(driver, "processes", root),
        kubernetes_driver=field_of(driver, "kubernetes_driver", str | None, root),
        bootstrap_servers=frozenset(field_of(driver, "bootstrap_servers", list | None, root) or ()),
        interval=field_of(driver, "interval", int | float | None, root) or 0.0,
        lease=field_of(driver, "lease", int | float | None, root) or 0.0,
        ended="ended" in driver and field_of(driver, "ended", bool, root),
        stopping=field_of(driver, "stopping", str | None, root),
        control=field_of(driver, "control", str | None, root) or "",
        **_said_of_queries(driver, root),
    )


def _said_of_queries(driver: dict[str, Any], root: UPath) -> dict[str, Any]:
    """Return the fields of ``Driver`` that are by query."""
    named = objects_of(driver, "queries", root) or [driver]
    queries = {field_of(query, "query_id", str, root): query for query in named}
    return {
        "runs": {each: field_of(query, "run_id", str, root) for each, query in queries.items()},
        "checkpoints": {
            each: checkpoint
            for each, query in queries.items()
            if (checkpoint := field_of(query, "checkpoint", str | None, root))
        },
        "batches": {
            each: field_of(query, "batch_id", int | None, root)
            for each, query in queries.items()
            if "batch_id" in query
        },
        "subscribe_patterns": {
            each: tuple(field_of(query, "subscribe_patterns", list | None, root) or ())
            for each, query in queries.items()
        },
    }


def _proof(answer: dict[str, Any], root: UPath) -> Proof:
    given = answer.get("proof", Proof.ACKNOWLEDGED)
    if given not in set(Proof):
        raise StopError(f"{root}: proof is {given!r}; is it of a newer release?")
    return Proof(given)


def _positions(answer: dict[str, Any], root: UPath) -> Positions | None:
    offsets = field_of(answer, "offsets", list | None, root)
    if offsets is None:
        return None
    return kafka_positions([json.dumps(offset) for offset in offsets], f"{root}/stopped.json")
