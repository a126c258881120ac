"""Reads what lies beside a checkpoint and says which cluster its positions are of.

``positions.checkpoint`` compares it with a pair of clusters. A checkpoint itself names only topics.
"""

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from upath import UPath

from airflow_mm2_offsets.core.ids import ClusterIds
from airflow_mm2_offsets.errors import HandoverError, Mm2OffsetsError, StopError
from airflow_mm2_offsets.locations import beside
from airflow_mm2_offsets.spark.checkpoint import Checkpoint
from airflow_mm2_offsets.spark.control import DRIVER, Driver, read_driver
from airflow_mm2_offsets.spark.control_files import field_of, read_object
from airflow_mm2_offsets.spark.position_ids import read_noted_ids

log = logging.getLogger(__name__)


class NotedIds(NamedTuple):
    """A file, and the ids of the cluster and topics that it says the positions are of."""

    file: str
    ids: ClusterIds


class NotedServers(NamedTuple):
    """A file, and the brokers that it says the job reads."""

    file: str
    servers: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterNotes:
    """What lies beside one checkpoint."""

    ids: tuple[NotedIds, ...] = ()
    servers: tuple[NotedServers, ...] = ()

    @classmethod
    def read(
        cls,
        location: UPath,
        checkpoint: Checkpoint,
        *,
        open_path: Callable[[str], UPath],
        control: UPath | None = None,
    ) -> "ClusterNotes":
        """Read the notes of a checkpoint.

        A file that is out of reach is passed over with a warning: it contradicts nothing. So is a
        control location that can't be read: a job may be just writing there.

        Args:
            location: The checkpoint's.
            checkpoint: What was read there.
            open_path: Makes a path of a control location as the job spells it.
            control: The job's control location, if the caller knows it; else the one that
                ``<checkpoint>.control.json`` names is read, too.

        Raises:
            HandoverError: A note is damaged.
        """
        return cls(
            ids=tuple(_noted_ids(location, checkpoint)),
            servers=tuple(_noted_servers(location, checkpoint, open_path, control)),
        )

    def without_topics(self) -> "ClusterNotes":
        """Return what they say of the cluster alone."""
        ids = (NotedIds(file, replace(noted, topic_ids={})) for file, noted in self.ids)
        return replace(self, ids=tuple(ids))


def _noted_ids(location: UPath, checkpoint: Checkpoint) -> Iterator[NotedIds]:
    try:
        if (ids := read_noted_ids(location, checkpoint)) is not None:
            yield NotedIds(str(beside(location, "clusters.json")), ids)
    except HandoverError as error:
        if not error.retryable:
            raise
        _warn(error)


def _noted_servers(
    location: UPath,
    checkpoint: Checkpoint,
    open_path: Callable[[str], UPath],
    control: UPath | None,
) -> Iterator[NotedServers]:
    drivers = [] if control is None else [(control, _driver(control))]
    if (noted := _noted_control(location, open_path)) is not None:
        driver = _driver(noted)
        # The control location may be another job's by now.
        if driver is not None and checkpoint.query_id in {driver.query_id, *driver.runs}:
            drivers.append((noted, driver))
    for place, driver in drivers:
        if driver is not None and driver.bootstrap_servers:
            yield NotedServers(str(place / DRIVER), driver.bootstrap_servers)


def _noted_control(location: UPath, open_path: Callable[[str], UPath]) -> UPath | None:
    """Return the control location that the note beside a checkpoint names."""
    path = beside(location, "control.json")
    try:
        note = read_object(path, may_be_empty=True)
        return open_path(field_of(note, "control", str, path)) if note else None
    except Mm2OffsetsError as error:  # also Spark's spelling of a storage that can't be opened here
        _warn(error)
        return None


def _driver(control: UPath) -> Driver | None:
    try:
        return read_driver(control)
    except StopError as error:
        _warn(error)
        return None


def _warn(error: Mm2OffsetsError) -> None:
    log.warning("What lies beside the checkpoint is not compared: %s", error)
