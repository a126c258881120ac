"""Measure what a failover of many partitions leaves in Airflow's database.

A whole planned failover runs, task by task, with clusters in memory and a job that is only played.
``--before`` names a checkout of another commit, which runs the same: both columns are of one run.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).parent.parent
BASE, SHIFT, SYNC_GAP = 7_381_000_000, 1_211_000_000, 100
"""Offsets of ten digits, as busy topics have; MirrorMaker 2 sends a sync every 100 offsets."""
SHOWN = 1000
"""Bytes from which a line is printed."""


def measure(partitions: int) -> dict[str, int]:
    """Run a failover; return the bytes of each thing that Airflow's database keeps of it."""
    sizes: dict[str, int] = {}
    with _stage(partitions, sizes) as run:
        run.run_from("check", "report")
        run.report()
        for (task_id, key), value in run.xcoms.items():
            sizes[f"XCom of {task_id}: {key}"] = _size(value)
        for conf in run.worker.triggered.values():
            sizes["conf of the job's DAG run"] = _size(conf)
    return sizes


@contextmanager
def _stage(partitions: int, sizes: dict[str, int]) -> Iterator[Any]:
    """Yield a run of mm2_failover on a topic of many partitions."""
    import pytest  # noqa: PLC0415

    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as folder:
        for name, value in _airflow(folder).items():
            patch.setenv(name, value)
        from airflow.sdk.execution_time import task_runner  # noqa: PLC0415

        from airflow_mm2_offsets.moves.jobs import Home  # noqa: PLC0415
        from airflow_mm2_offsets.testing import in_memory_clients  # noqa: PLC0415
        from airflow_mm2_offsets.testing.connect import in_memory_connect  # noqa: PLC0415
        from tests.integration.nights import declare  # noqa: PLC0415 - of this checkout
        from tests.unit.operators.spark_job import Job  # noqa: PLC0415

        worker = _worker(sizes)
        patch.setattr(task_runner, "SUPERVISOR_COMMS", worker, raising=False)
        with in_memory_clients(), in_memory_connect():
            clusters = _clusters(partitions)  # clients find clusters while they live
            clusters.connect(patch)
            here, there = (
                Home(cluster=side, folder=f"{folder}/{side}") for side in ("source", "target")
            )
            declare(patch, here, there, max_read_again=partitions * SYNC_GAP)
            job = Job(Path(here.folder), *map(_position, range(partitions)))
            yield _failover(worker, job)


def _airflow(folder: str) -> dict[str, str]:
    return {
        "AIRFLOW_HOME": folder,
        "AIRFLOW__CORE__UNIT_TEST_MODE": "True",
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__LOGGING__LOGGING_LEVEL": "ERROR",
    }


def _position(partition: int) -> int:
    """Return where the job stands: every tenth partition between two syncs."""
    return BASE + (SYNC_GAP // 2 if partition % 10 == 0 else 0)


def _clusters(partitions: int) -> Any:  # noqa: ANN401 - of the checkout that is measured
    """Return clusters whose topic has so many partitions, all copied."""
    from airflow_mm2_offsets.testing import Record  # noqa: PLC0415
    from tests.unit.operators.clusters import SYNCS, Clusters  # noqa: PLC0415

    clusters = Clusters()
    clusters.target.log_type = clusters.source.log_type  # the target's lists markers one by one
    for cluster in (clusters.source, clusters.target):
        cluster.delete_topic("orders")
        cluster.create_topic("orders", partitions=partitions)
    clusters.source.delete_topic(SYNCS)
    for partition in range(partitions):
        for upstream, shift in ((0, 0), (BASE, SHIFT), (BASE + SYNC_GAP, SHIFT)):
            clusters.sync(upstream, upstream - shift, partition)
        clusters.source.skip_offsets("orders", partition, BASE + SYNC_GAP)
        clusters.target.skip_offsets("orders", partition, BASE - SHIFT + SYNC_GAP)
        for cluster in (clusters.source, clusters.target):
            cluster.produce("orders", partition, [Record(b"key", b"the last record")])
    return clusters


def _worker(sizes: dict[str, int]) -> Any:  # noqa: ANN401 - of the checkout that is measured
    """Return a worker that notes the rendered fields, and what a deferred task leaves."""
    from tests.unit.operators.worker import Worker  # noqa: PLC0415

    class Measuring(Worker):
        def send(self, msg: object) -> object:
            if type(msg).__name__ == "SetRenderedFields":
                fields: Any = vars(msg)["rendered_fields"]
                sizes["rendered fields of all tasks"] = sizes.get(
                    "rendered fields of all tasks", 0
                ) + _size(fields)
            return super().send(msg)

        def run(self, *arguments: Any, **named: Any) -> Any:  # noqa: ANN401 - of many kinds
            ended = super().run(*arguments, **named)
            if ended.type == "DeferTask":
                name = f"trigger of {arguments[0].task_id}"
                sizes[name] = len(ended.model_dump_json())
            return ended

    return Measuring()


def _failover(worker: Any, job: Any) -> Any:  # noqa: ANN401 - see above
    """Return a run whose target job begins where it should."""
    from tests.integration.nights import Night  # noqa: PLC0415
    from tests.unit.spark import checkpoints  # noqa: PLC0415

    class Run(Night):
        def play(self, name: str) -> None:
            super().play(name)
            if name == "wait_started":
                starts = checkpoints.orders(*self.starts().values())
                files = {
                    "sources/0/0": checkpoints.start(starts),
                    "offsets/0": checkpoints.batch(starts),
                    "commits/0": checkpoints.commit(),
                }
                checkpoints.write(Path(self.there.folder) / "checkpoint", files)

    return Run(worker, job)


def _size(value: object) -> int:
    return len(json.dumps(value, default=str))


def _measured_in(tree: Path, partitions: int) -> dict[str, int]:
    """Return what the code of a checkout leaves."""
    command = [sys.executable, __file__, "--here", "--partitions", str(partitions)]
    env = {**os.environ, "PYTHONPATH": str(tree)}
    done = subprocess.run(command, cwd=tree, env=env, stdout=subprocess.PIPE, check=True)  # noqa: S603 - ourselves
    sizes: dict[str, int] = json.loads(done.stdout.splitlines()[-1])
    return sizes


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.xcom", description=__doc__)
    parser.add_argument("--partitions", type=int, default=10_000)
    parser.add_argument("--before", type=Path, help="a checkout of the commit to compare with")
    parser.add_argument("--here", action="store_true", help="measure this checkout, as JSON")
    options = parser.parse_args()
    if options.here:
        print(json.dumps(measure(options.partitions)), flush=True)  # noqa: T201 - to the parent
        return
    trees = [*([options.before.resolve()] if options.before else []), ROOT]
    columns = [_measured_in(tree, options.partitions) for tree in trees]
    names = sorted({name for column in columns for name in column})
    for name in [*names, "all"]:
        numbers = [column.get(name, 0) if name != "all" else _all(column) for column in columns]
        if max(numbers) >= SHOWN:
            print(f"| {name} | {' | '.join(f'{number:,}' for number in numbers)} |")  # noqa: T201


def _all(sizes: dict[str, int]) -> int:
    return sum(size for name, size in sizes.items() if not name.startswith("the argument"))


if __name__ == "__main__":
    main()
