"""Our side of each measurement, as a separate program like OffsetSyncStore's.

Prints a count and the nanoseconds it took; ``memory`` the bytes instead.
"""

import sys
import time
import tracemalloc
from importlib import import_module
from pathlib import Path

import numpy as np

from airflow_mm2_offsets.archive import SyncArchive
from airflow_mm2_offsets.bulk import translate_many
from airflow_mm2_offsets.core import Extras
from airflow_mm2_offsets.core.rows import rows_of
from airflow_mm2_offsets.job.translation.logs import MOST_ROWS
from airflow_mm2_offsets.job.translation.tables import tables_of
from airflow_mm2_offsets.kafka.cluster import KafkaCluster
from airflow_mm2_offsets.kafka.syncs import read_syncs
from benchmarks.load import TOPIC, Kind, Load


def read(servers: str, topic: str) -> tuple[int, int]:
    """Read a topic into an index."""
    begin = time.perf_counter_ns()
    cluster = KafkaCluster(name="source", config={"bootstrap.servers": servers})
    syncs = read_syncs(cluster, topic)
    taken = time.perf_counter_ns() - begin
    if not len(syncs.index) == syncs.records_read == syncs.next_offset:
        raise RuntimeError(
            f"{topic}: {len(syncs.index)} syncs are indexed of {syncs.records_read} records up to "
            f"offset {syncs.next_offset}, {syncs.skipped_count} skipped"
        )
    return syncs.records_read, taken


def warm(folder: str) -> tuple[int, int]:
    """Read an archive into an index."""
    # The libraries are loaded before the clock starts, as they are for the other measurements.
    import_module("airflow_mm2_offsets.archive.history")
    begin = time.perf_counter_ns()
    index = SyncArchive(str(Path(folder))).read().index()
    return len(index), time.perf_counter_ns() - begin


def build(partitions: str, syncs: str) -> tuple[int, int]:
    """Make an index of syncs in memory."""
    load = Load(partitions=int(partitions), syncs=int(syncs))
    begin = time.perf_counter_ns()
    return len(load.index()), time.perf_counter_ns() - begin


def memory(partitions: str, syncs: str) -> tuple[int, int]:
    """Make an index of syncs in memory, and say how much of that it takes."""
    load = Load(partitions=int(partitions), syncs=int(syncs))
    tracemalloc.start()
    index = load.index()
    return len(index), tracemalloc.get_traced_memory()[0]


def single(partitions: str, syncs: str, positions: str, step: str) -> tuple[int, int]:
    """Translate position by position."""
    load = Load(partitions=int(partitions), syncs=int(syncs))
    index = load.index()
    offsets = [number * int(step) % load.span for number in range(int(positions))]
    begin = time.perf_counter_ns()
    for number, position in enumerate(offsets):
        index.translate(TOPIC, number % load.partitions, position)
    return len(offsets), time.perf_counter_ns() - begin


def bulk(partitions: str, syncs: str, kind: str, *numbers: str) -> tuple[int, int]:
    """Translate many positions of each partition; the fastest of some rounds counts.

    ``numbers`` are those of ``Asking``.
    """
    load = Load(partitions=int(partitions), syncs=int(syncs), kind=Kind(kind))
    index = load.index()
    positions, step, rounds = map(int, numbers)
    offsets = np.arange(positions, dtype=np.int64) * step % load.span
    fastest = sys.maxsize
    for _ in range(rounds):
        begin = time.perf_counter_ns()
        for partition in range(load.partitions):
            translate_many(index, TOPIC, partition, offsets)
        fastest = min(fastest, time.perf_counter_ns() - begin)
    return load.partitions * len(offsets), fastest


def segments(partitions: str, syncs: str, kind: str) -> tuple[int, int]:
    """Make the tables that Spark searches, as its executors do."""
    load = Load(partitions=int(partitions), syncs=int(syncs), kind=Kind(kind))
    index = load.index()
    begin = time.perf_counter_ns()
    for partition_syncs in index.partitions.values():
        list(tables_of(rows_of(partition_syncs), extras=Extras.POSSIBLE, most=MOST_ROWS))
    return load.count, time.perf_counter_ns() - begin


TASKS = {task.__name__: task for task in (read, warm, build, memory, single, bulk, segments)}


if __name__ == "__main__":
    task, *arguments = sys.argv[1:]
    sys.stdout.write("{} {}\n".format(*TASKS[task](*arguments)))
