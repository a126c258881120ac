"""Reads what a Spark job writes to its control location: ``driver.json`` and ``stopped.json``.

Check, stop and hand-over call it. The job's side is ``job/stop/``; docs/stop-protocol.md describes
the files.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from upath import UPath

from airflow_mm2_offsets.core.positions import Positions
from airflow_mm2_offsets.errors import StopError
from airflow_mm2_offsets.job.liveness import MISSED_BEATS
from airflow_mm2_offsets.spark.control_files import field_of, numbers_of, objects_of, read_object
from airflow_mm2_offsets.spark.offset_log import kafka_positions
from airflow_mm2_offsets.storage import open_location

DRIVER: Final = "driver.json"
"""In a control location: the driver that runs, or has run last."""


class StopProof(StrEnum):
    """How the stop of a job was established, beside a checkpoint that no longer changes."""

    ACKNOWLEDGED = "acknowledged"
    """The job has answered."""
    SILENT = "silent"
    """Its heartbeat has not changed for as long as the user said; or, after a cancel by its
    platform, its checkpoint."""
    KILLED = "killed"
    """It was killed."""
    ENDED = "ended"
    """Its queries had ended by themselves, and the fence keeps the next run from starting."""
    NOT_BEGUN = "not begun"
    """It was handed over to this home, and no driver has begun there."""
    ASSERTED = "asserted"
    """A user's word, where the job's folder can't be reached: no fence stands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Driver:
    """The driver of a job under stop control: the one that runs, or the last one that ran.

    A job with an older release's ``StopControl`` leaves fields at their defaults, as unknown.
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
    """``namespace:pod`` of a driver that has a pod."""
    bootstrap_servers: frozenset[str] = frozenset()
    """The brokers that its Kafka sources were given."""
    runs: Mapping[str, str] = field(default_factory=dict)
    """The run id of each of its queries, by the query's id."""
    interval: float = 0.0
    """Seconds between two heartbeats; 0: unknown."""
    lease: float = 0.0
    """Seconds without a look for a fence after which it begins no batch; 0: unknown."""
    ended: bool = False
    """Whether all of its queries have ended."""
    stopping: str | None = None
    """The stop that it carries out."""
    control: str = ""
    """Its control location, as Spark spells it; empty: unknown."""
    checkpoints: Mapping[str, str] = field(default_factory=dict)
    """The checkpoint location of each of its queries, as Spark spells it, by the query's id."""
    batches: Mapping[str, int | None] = field(default_factory=dict)
    """The last batch that each query had committed when it ended, by its id, if known."""
    subscribe_patterns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Each ``subscribePattern`` of a query's Kafka sources, by the query's id."""

    @property
    def longest_silence(self) -> float:
        """Seconds between two heartbeats at most, while the driver lives."""
        return MISSED_BEATS * self.interval


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryAnswer:
    """A job's answer for one of its queries, when all have stopped."""

    query_id: str
    run_id: str
    batch_id: int | None
    """The last batch in its checkpoint; None if there is no batch, or it is unknown."""
    offsets: Positions | None
    """Where that batch ended; None if another run of the job ran it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Acknowledgement:
    """A job's answer that it has stopped, or the one that the stop step wrote in its place."""

    request_id: str
    application_id: str
    batch_id: int | None
    """The last batch it committed; None if it committed no batch, or has several queries."""
    offsets: Positions | None
    """Where that batch ended: the next offset to read of each Kafka partition."""
    clean: bool
    """Whether it stopped between two batches, and left no batch pending."""
    error: str | None
    """Why a query failed before it could be stopped, if it did."""
    proof: StopProof = StopProof.ACKNOWLEDGED
    heartbeat: int | None = None
    """The driver's, if the stop step answered in its place; a driver that has counted on since
    has not stopped."""
    proved_control: str | None = None
    """The control location that the stop step has proved to be the job's, by ``folder_id``."""
    proved_checkpoint: str | None = None
    """The same of the checkpoint location."""
    queries: tuple[QueryAnswer, ...] = ()
    """The answer for each query; empty from a job with an older release's ``StopControl``."""

    def is_of(self, driver: Driver | None) -> bool:
        """Tell whether it is the answer of the driver that ran last, as far as their ids show."""
        if driver is None or driver.application_id != self.application_id:
            return False
        if self.heartbeat not in {None, driver.heartbeat}:
            return False
        runs = {query.query_id: query.run_id for query in self.queries}
        return not runs or runs == driver.runs

    def answers(self, request_id: str, driver: Driver | None) -> bool:
        """Tell whether it answers a stop: this one, or an earlier one if no query has run since.

        ``driver`` is the driver that ran last; the answer of another driver does not count.
        """
        if self.request_id != request_id:
            return bool(self.queries) and self.is_of(driver)
        return self.proof is not StopProof.ACKNOWLEDGED or self.is_of(driver)


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
    driver = read_object(root / DRIVER, may_be_empty=True)
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
        **_by_query(driver, root),
    )


def _by_query(driver: dict[str, Any], root: UPath) -> dict[str, Any]:
    """Return the fields of ``Driver`` that map query ids."""
    runs, checkpoints, batches, patterns = {}, {}, {}, {}
    for query in objects_of(driver, "queries", root) or [driver]:
        query_id = field_of(query, "query_id", str, root)
        runs[query_id] = field_of(query, "run_id", str, root)
        if checkpoint := field_of(query, "checkpoint", str | None, root):
            checkpoints[query_id] = checkpoint
        if "batch_id" in query:
            batches[query_id] = field_of(query, "batch_id", int | None, root)
        patterns[query_id] = tuple(field_of(query, "subscribe_patterns", list | None, root) or ())
    return {
        "runs": runs,
        "checkpoints": checkpoints,
        "batches": batches,
        "subscribe_patterns": patterns,
    }


def _proof(answer: dict[str, Any], root: UPath) -> StopProof:
    proof = answer.get("proof", StopProof.ACKNOWLEDGED)
    if proof not in set(StopProof):
        raise StopError(f"{root}: proof is {proof!r}; was it written by a newer release?")
    return StopProof(proof)


def _positions(answer: dict[str, Any], root: UPath) -> Positions | None:
    offsets = field_of(answer, "offsets", list | None, root)
    if offsets is None:
        return None
    return kafka_positions([json.dumps(offset) for offset in offsets], f"{root}/stopped.json")
