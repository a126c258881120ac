"""Record runs of MirrorMaker 2 of one or more releases, as sets of tests/golden."""

import argparse
import csv
import gzip
import io
import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from airflow_mm2_offsets.core.wire import decode_offset_sync
from stack import jars
from stack.local import LocalStack
from stack.process import ProgramError
from stack.waiting import WaitTimeoutError
from tests.support.golden import HOME
from tests.support.recording import NEWEST, RELEASES
from tests.support.recording.records import PARTITIONS, read, watermarks
from tests.support.recording.run import KINDS, LAG_MAX, Run

BUILD = Path(__file__).parents[3] / "build"


def main() -> int:
    """Record what the command line asks for; return 1 where a run failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.support.recording", description=__doc__)
    parser.add_argument("releases", nargs="*", choices=[*RELEASES, []], default=RELEASES)
    parser.add_argument("--kinds", nargs="+", choices=list(KINDS), default=list(KINDS))
    parser.add_argument("--out", type=Path, default=HOME)
    options = parser.parse_args()
    failed = 0
    kafka = jars.fetch(BUILD, progress=say).kafka
    with TemporaryDirectory(prefix="recording-") as folder:
        stack = LocalStack(Path(folder), kafka, progress=say)
        try:
            stack.start_brokers()
            for release in options.releases:
                mirror = kafka if release == NEWEST else jars.fetch_mirror(BUILD, release)
                for kind in options.kinds:
                    run = Run(
                        release=release,
                        kind=kind,
                        stack=stack,
                        jars=mirror,
                        folder=Path(folder),
                        progress=say,
                    )
                    failed += not _record(run, options.out)
        finally:
            stack.stop()
    return int(failed > 0)


def _record(run: Run, out: Path) -> bool:
    try:
        run.carry_out()
        write(run, out / run.name)
    except (ProgramError, WaitTimeoutError, ValueError) as error:
        say(f"{run.name} FAILED: {error}")
        return False
    return True


def write(run: Run, folder: Path) -> None:
    """Write the syncs of a run, and which source record each target offset holds.

    Raises:
        ValueError: The target holds a record that the source does not hold.
    """
    # What was aborted has offsets too: they were never copied, so they are not looked up.
    originals = {
        (each.partition(), each.value()): each.offset()
        for each in read(run.source, run.topic, PARTITIONS)
    }
    records = [
        (each.partition(), each.offset(), originals[each.partition(), each.value()])
        for each in read(run.target, run.topic, PARTITIONS)
    ]
    syncs = [
        (each.offset(), sync.topic, sync.partition, sync.upstream, sync.downstream)
        for each in read(run.source, run.syncs_topic, 1)
        if (sync := decode_offset_sync(each.key(), each.value())).topic == run.topic
    ]
    folder.mkdir(parents=True, exist_ok=True)
    _table(folder, "records", ("partition", "target_offset", "source_offset"), sorted(records))
    columns = ("sync_offset", "topic", "partition", "upstream", "downstream")
    _table(folder, "syncs", columns, syncs)
    sides = {"source": run.source, "target": run.target}
    meta = {
        "scenario": run.name,
        "topic": run.topic,
        "kind": run.kind,
        "mm2": next(run.jars.glob("connect-mirror-[0-9]*.jar")).stem.rpartition("-")[2],
        "lag_max": LAG_MAX,
        **{
            f"{side}_watermarks": {
                str(number): [each.low, each.high]
                for number, each in sorted(watermarks(cluster, run.topic).items())
            }
            for side, cluster in sides.items()
        },
        "syncs": len(syncs),
        "target_records": len(records),
    }
    (folder / "meta.json").write_text(json.dumps(meta, indent=1) + "\n")
    say(f"{run.name}: {len(syncs)} syncs, {len(records)} records of {len(originals)}")


def _table(
    folder: Path, name: str, columns: Sequence[str], rows: Iterable[Sequence[object]]
) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    # Without a time in it, equal tables are equal files.
    (folder / f"{name}.csv.gz").write_bytes(gzip.compress(text.getvalue().encode(), mtime=0))


def say(line: str) -> None:
    """Print a line."""
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
