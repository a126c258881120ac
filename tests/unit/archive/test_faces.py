"""Airflow's faces of the archive: operator, event trigger, DAG."""

import asyncio
import importlib.util
from pathlib import Path

import pytest
from airflow.sdk import DAG

from airflow_mm2_offsets.archive import SyncArchive
from airflow_mm2_offsets.archive.update import ArchiveRun
from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.errors import ClusterUnreachableError
from airflow_mm2_offsets.hooks.mm2 import Mm2OffsetHook
from airflow_mm2_offsets.operators.archive import ArchiveSyncsOperator
from airflow_mm2_offsets.triggers.syncs import NewSyncsTrigger
from tests.unit.archive.archive_builder import append
from tests.unit.archive.test_store import LOG

DAG_FILE = Path(__file__).parents[3] / "dags" / "mm2_archive_syncs.py"


def test_the_operator_archives_and_compacts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The XCom describes the run as plain JSON; too many files are compacted to one."""

    def archive_syncs(_pair: ClusterPair, archive: SyncArchive) -> ArchiveRun:
        for first in (0, 10, 20):
            append(archive, LOG, first, first + 10)
        return ArchiveRun(
            new_syncs=30,
            total=30,
            skipped=0,
            incarnation=1,
            next_offset=30,
            as_of="2026-01-01T00:00:00+00:00",
            notes=("topic orders was recreated",),
        )

    monkeypatch.setattr("airflow_mm2_offsets.operators.archive.archive_syncs", archive_syncs)
    monkeypatch.setattr(Mm2OffsetHook, "get_conn", lambda _: None)
    operator = ArchiveSyncsOperator(
        task_id="archive", archive=f"file://{tmp_path}", compact_over=2, keep_days=7
    )
    result = operator.execute({})
    assert (result["new_syncs"], result["compacted"]) == (30, 3)
    assert result["notes"] == ["topic orders was recreated"]
    assert len(list(tmp_path.iterdir())) == 1


def test_the_trigger_fires_when_the_topic_has_grown(monkeypatch: pytest.MonkeyPatch) -> None:
    """It fires at its start and at each new end offset; it waits for a cluster that is down."""
    looks: list[int | Exception] = [5, 5, ClusterUnreachableError("down"), 7, 7, 9]
    ends = iter(looks)

    def end(_: NewSyncsTrigger) -> int:
        found = next(ends)
        if isinstance(found, Exception):
            raise found
        return found

    async def events(count: int) -> list[object]:
        run = NewSyncsTrigger(poll_interval=0).run()
        return [(await anext(run)).payload["end"] for _ in range(count)]

    monkeypatch.setattr(NewSyncsTrigger, "_end", end)
    assert asyncio.run(events(3)) == [5, 7, 9]


def test_the_trigger_can_be_serialized() -> None:
    """Airflow's database keeps class and arguments."""
    path, settings = NewSyncsTrigger(mm2_conn_id="other", poll_interval=3.0).serialize()
    assert path == "airflow_mm2_offsets.triggers.syncs.NewSyncsTrigger"
    assert NewSyncsTrigger(**settings).serialize() == (path, settings)


def test_the_dag_runs_one_at_a_time() -> None:
    """The DAG can be imported, and its runs do not overlap."""
    spec = importlib.util.spec_from_file_location("mm2_archive_syncs", DAG_FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    dag = module.dag
    assert isinstance(dag, DAG)
    assert dag.max_active_runs == 1
    assert dag.task_ids == ["archive", "save_positions"]
