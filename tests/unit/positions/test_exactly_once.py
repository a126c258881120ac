"""A job's positions, from what it noted in a table to the target: each record counts once."""

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.memory import InMemoryCatalog

from airflow_mm2_offsets.core import Positions
from airflow_mm2_offsets.core.positions import by_topic_partition
from airflow_mm2_offsets.kafka.drain import drain
from airflow_mm2_offsets.planning.plan import plan_failover
from airflow_mm2_offsets.positions.hudi import read_hudi_positions
from airflow_mm2_offsets.positions.iceberg import read_iceberg_positions
from airflow_mm2_offsets.testing import Mm2Simulation, simulated_mm2

Job = tuple[Callable[[list[int], dict[int, int]], None], Callable[[], Positions]]
"""Writes a batch with the next offset of each partition; reads the positions."""


@contextmanager
def iceberg_job(folder: Path) -> Iterator[Job]:
    catalog = InMemoryCatalog("lake", warehouse=f"file://{folder}")
    catalog.create_namespace("db")
    table = catalog.create_table("db.orders", pa.schema([("order", pa.int64())]))

    def write(rows: list[int], until: dict[int, int]) -> None:
        text = json.dumps({"orders": {str(partition): end for partition, end in until.items()}})
        table.append(pa.table({"order": rows}), snapshot_properties={"kafka.offsets": text})

    try:
        yield write, lambda: read_iceberg_positions(table, "kafka.offsets")
    finally:
        catalog.close()


@contextmanager
def hudi_job(folder: Path) -> Iterator[Job]:
    (folder / ".hoodie").mkdir()
    (folder / ".hoodie" / "hoodie.properties").write_text("hoodie.table.type=COPY_ON_WRITE\n")
    instants = iter(range(20260101000000000, 20260101000000099))

    def write(_rows: list[int], until: dict[int, int]) -> None:
        text = ",".join(["orders", *(f"{partition}:{end}" for partition, end in until.items())])
        metadata = {"extraMetadata": {"deltastreamer.checkpoint.key": text}}
        (folder / ".hoodie" / f"{next(instants)}.commit").write_text(json.dumps(metadata))

    yield write, lambda: read_hudi_positions(str(folder))


def values_from(mm2: Mm2Simulation, positions: Positions) -> list[int]:
    """Return the numbers that the target holds from positions on."""
    starts = by_topic_partition(positions)
    return sorted(
        int(record.value() or b"-1") for batch in drain(mm2.pair.target, starts) for record in batch
    )


@pytest.mark.parametrize("run", [iceberg_job, hudi_job])
def test_each_record_counts_once(
    run: Callable[[Path], AbstractContextManager[Job]], tmp_path: Path
) -> None:
    """What the job wrote before, and what the target delivers from then on, is all, and no more."""
    with simulated_mm2() as mm2, run(tmp_path) as (write, read):
        for partition in range(2):
            numbers = range(partition * 100, partition * 100 + 100)
            mm2.source.produce("orders", partition, [b"%d" % number for number in numbers])
        mm2.mirror(max_records=60, commit=False)
        mm2.restart_worker()  # It copies 60 records again: the offsets differ from here on.
        mm2.mirror()
        written = [*range(37), *range(100, 181)]
        write(written[:20], {0: 20, 1: 0})
        write(written[20:], {0: 37, 1: 81})
        plan = plan_failover(mm2.pair, read())
        assert {each.translation.status for each in plan.partitions} == {"exact"}
        assert [each.translation.low for each in plan.partitions] != [37, 81]
        rest = values_from(mm2, plan.target_positions())
    assert sorted(written + rest) == list(range(200))
