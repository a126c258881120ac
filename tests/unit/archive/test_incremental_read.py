"""Reading a syncs topic that changes meanwhile."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from airflow_mm2_offsets.archive import SyncArchive, TopicIncarnation
from airflow_mm2_offsets.archive.incremental_read import NewRun, read_since
from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.core import Naming, OffsetSync, encode_offset_sync
from airflow_mm2_offsets.errors import PositionError, SyncsTopicError
from airflow_mm2_offsets.kafka.cluster import KafkaCluster
from airflow_mm2_offsets.kafka.stable_read import SyncsTopicState
from tests.unit.archive.archive_builder import FIRST, PAIR, append
from tests.unit.archive.test_store import LOG

Look = SyncsTopicState | None
Script = tuple[str, int] | None
NOWHERE = {"bootstrap.servers": "127.0.0.1:1"}
CLUSTERS = ClusterPair(
    source=KafkaCluster(name="source", config=NOWHERE),
    target=KafkaCluster(name="target", config=NOWHERE),
    naming=Naming(source_alias="source", target_alias="target"),
)


@dataclass
class Record:
    """A record of the syncs topic."""

    at: int

    def offset(self) -> int:
        return self.at

    def key(self) -> bytes:
        return self._encoded()[0]

    def value(self) -> bytes:
        return self._encoded()[1] if self.at != 1 else b"no sync"

    def _encoded(self) -> tuple[bytes, bytes]:
        return encode_offset_sync(
            OffsetSync(topic="orders", partition=0, upstream=self.at, downstream=self.at)
        )


def read(
    monkeypatch: pytest.MonkeyPatch, looks: list[Script], archive: SyncArchive, *, archived: int = 0
) -> NewRun | None:
    """Read a topic whose id and end are, each time that it is looked at, the next of ``looks``."""
    script = iter(looks)
    seen: list[Look] = []

    def look(*_: object) -> Look:
        here = next(script)
        seen.append(here and SyncsTopicState(*here))
        return seen[-1]

    def drain(cluster: KafkaCluster, starts: dict[Any, int], **_: object) -> Iterator[list[Record]]:
        (first,) = starts.values()
        assert seen[-1] is not None
        end = seen[-1].end
        if end < 0:
            raise PositionError(f"{cluster.name} was truncated")
        if first < end:
            yield [Record(at) for at in range(first, end)]

    monkeypatch.setattr("airflow_mm2_offsets.kafka.stable_read.look", look)
    monkeypatch.setattr("airflow_mm2_offsets.kafka.sync_log.drain", drain)
    monkeypatch.setattr("airflow_mm2_offsets.archive.incremental_read._topics", lambda *_, **__: {})
    if archived:
        append(archive, LOG, 0, archived)
    return read_since(CLUSTERS, archive.read(), PAIR, ask_source=True)


def offsets(new_run: NewRun | None) -> list[int]:
    assert new_run is not None
    return [offset for each in new_run.topic_read.syncs.values() for offset in each.offsets]


def test_only_new_records_are_read(monkeypatch: pytest.MonkeyPatch, archive: SyncArchive) -> None:
    """The read begins where the archive ends, in the same incarnation."""
    same: list[Script] = [("first-life", 9), ("first-life", 12)]
    new_run = read(monkeypatch, same, archive, archived=5)
    assert new_run is not None
    assert new_run.header.incarnation == FIRST
    assert offsets(new_run) == [5, 6, 7, 8]
    assert (new_run.header.first, new_run.header.stop) == (5, 9)
    assert new_run.header.runs[0].whole


def test_skipped_records_are_counted(monkeypatch: pytest.MonkeyPatch, archive: SyncArchive) -> None:
    """They are left out, and the run still counts as read whole."""
    new_run = read(monkeypatch, [("first-life", 4), ("first-life", 4)], archive)
    assert offsets(new_run) == [0, 2, 3]
    assert new_run is not None
    assert new_run.topic_read.skipped_count == 1
    assert new_run.header.runs[0].whole


@pytest.mark.parametrize("archived", [0, 5])
def test_a_topic_recreated_during_a_read(
    monkeypatch: pytest.MonkeyPatch, archive: SyncArchive, archived: int
) -> None:
    """That read is discarded, and the new topic is read from its beginning."""
    looks: list[Script] = [("first-life", 9), ("second", 3), ("second", 3), ("second", 3)]
    new_run = read(monkeypatch, looks, archive, archived=archived)
    assert new_run is not None
    assert new_run.header.incarnation == TopicIncarnation(2 if archived else 1, "second")
    assert offsets(new_run) == [0, 2]


@pytest.mark.parametrize("meanwhile", [[("first-life", 7)], []])
def test_a_topic_truncated_during_a_read(
    monkeypatch: pytest.MonkeyPatch, archive: SyncArchive, meanwhile: list[Script]
) -> None:
    """If the end is before the last read offset or the start, the topic is read again from 0."""
    begin = 9 if meanwhile else -1
    looks: list[Script] = [("first-life", begin), *meanwhile, ("first-life", 7), ("first-life", 7)]
    assert offsets(read(monkeypatch, looks, archive)) == [0, 2, 3, 4, 5, 6]


def test_a_topic_that_changes_during_each_read(
    monkeypatch: pytest.MonkeyPatch, archive: SyncArchive
) -> None:
    """After three reads the error names the topic."""
    looks: list[Script] = [(f"life-{number}", 4) for number in range(6)]
    with pytest.raises(SyncsTopicError, match=r"mm2-offset-syncs\.target\.internal.* 3 reads"):
        read(monkeypatch, looks, archive)


def test_a_topic_that_does_not_exist(monkeypatch: pytest.MonkeyPatch, archive: SyncArchive) -> None:
    """The result is None; that of an empty topic is a run without syncs."""
    assert read(monkeypatch, [None], archive) is None
    assert offsets(read(monkeypatch, [("new", 0), ("new", 0)], archive)) == []
