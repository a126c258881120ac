"""The way home by a reverse mirror, whose archive bounds the copies from before it began."""

from pathlib import Path

import pytest

from airflow_mm2_offsets.archive import SyncArchive
from airflow_mm2_offsets.archive.update import archive_syncs
from airflow_mm2_offsets.core import OffsetSync, encode_offset_sync
from airflow_mm2_offsets.errors import ArchiveError, NotReadyError
from airflow_mm2_offsets.hooks.mm2 import Mm2OffsetHook
from airflow_mm2_offsets.testing import Record
from tests.unit.dags.failovers import MOVING, Failover
from tests.unit.dags.ways_home import JobOnTarget, way_home
from tests.unit.operators.clusters import RECORDS, Clusters, define

OWN = [Record(b"own %d" % number, b"") for number in range(20)]
NEW = [Record(b"new %d" % number, b"value") for number in range(10)]
NEEDED = ("stop_source", "read_positions")
"""What the translation needs; without Kafka Connect the wait would not end."""
READ = 22
"""The job's position on the target, in orders[0]: it has read new records there."""


@pytest.fixture
def turned(run: Failover, clusters: Clusters, monkeypatch: pytest.MonkeyPatch) -> Failover:
    """The job was moved, and MirrorMaker 2 copies back: of orders[0] from 15 to 30 on."""
    for partition in (2, 3):
        clusters.source.produce("orders", partition, RECORDS)
    for each in MOVING:
        run.run(each)
    run.worker.triggered.clear()
    clusters.source.produce("orders", 0, OWN)
    sides = {"source_kafka_conn_id": "kafka_target", "target_kafka_conn_id": "kafka_source"}
    names = {"source_alias": "target", "target_alias": "source", "replication_policy": "identity"}
    define(monkeypatch, "mm2_back", extra={**sides, **names})
    for partition in range(1, 4):
        _copy_back(clusters, partition, NEW[:1], 10, 10)
    _copy_back(clusters, 0, NEW[:5], 15, 30)
    return run


def _copy_back(
    clusters: Clusters, partition: int, records: list[Record], upstream: int, downstream: int
) -> None:
    """Let producers write to the target, and MirrorMaker 2 copy to the source."""
    clusters.target.produce("orders", partition, records)
    clusters.source.produce("orders", partition, records)
    for each in (0, len(records) - 1):
        sync = OffsetSync(
            topic="orders",
            partition=partition,
            upstream=upstream + each,
            downstream=downstream + each,
        )
        record = Record(*encode_offset_sync(sync))
        clusters.target.produce("mm2-offset-syncs.source.internal", 0, [record])


def _back(turned: Failover, clusters: Clusters, archive: str) -> Failover:
    _copy_back(clusters, 0, NEW[5:], 20, 35)
    clusters.target.produce("orders", 0, NEW[:1])  # It is not copied back yet.
    vars(turned)["job_on_target"] = JobOnTarget(turned, READ)
    conf = {"reverse_mm2_conn_id": "mm2_back", "archive": archive}
    return way_home(turned.worker, turned, "manual__2", **conf)


def _archive(conn_id: str, folder: Path) -> str:
    archive_syncs(Mm2OffsetHook(conn_id).get_conn(), SyncArchive(str(folder)))
    return str(folder)


@pytest.mark.parametrize(("is_archived", "start"), [(True, 36), (False, 0)])
def test_the_archive_of_the_reverse_mirror_is_used(
    turned: Failover, clusters: Clusters, tmp_path: Path, *, is_archived: bool, start: int
) -> None:
    """It says that no record from 20 on was copied before the first sync, 15 -> 30."""
    archive = _archive("mm2_back", tmp_path / "archive") if is_archived else ""
    back = _back(turned, clusters, archive)
    # Enough for a proof of the direction, too little for windows of records.
    vars(back.task("translate")).update(max_evidence_bytes=1)
    for each in ("check", *NEEDED, "translate", "forecast"):
        back.run(each)
    xcom = back.worker.xcoms
    starts = next(value for (_, key), value in xcom.items() if key == "starting_offsets")
    assert f'"0":{start},' in starts


@pytest.mark.parametrize(("step", "error"), [("check", NotReadyError), ("translate", ArchiveError)])
def test_the_archive_of_the_forward_mirror_is_named_as_that(
    turned: Failover, clusters: Clusters, tmp_path: Path, step: str, error: type[Exception]
) -> None:
    """The check says so before the job is stopped; and a task that reads it later."""
    back = _back(turned, clusters, _archive("mm2_default", tmp_path / "archive"))
    for each in NEEDED if step == "translate" else ():
        back.run(each)
    with pytest.raises(error, match=r"is the archive of another pair: its source cluster is"):
        back.run(step)
