"""Measure accuracy and speed beside OffsetSyncStore; print tables, write JSON and charts."""

import argparse
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.accuracy import scores
from benchmarks.load import Load
from benchmarks.results import Results, about
from benchmarks.speed import Bench
from benchmarks.store import Store
from stack import jars

ROOT = Path(__file__).parent.parent
BUILD = ROOT / "build"


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--partitions", type=int, default=1000)
    parser.add_argument("--syncs", type=int, default=1000, help="of each partition")
    parser.add_argument("--asked", type=int, default=10_000, help="positions of each, in bulk")
    parser.add_argument("--stride", type=int, default=7, help="of positions in recorded runs")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("results"))
    options = parser.parse_args()
    kafka = jars.fetch(BUILD, progress=say).kafka
    store = Store.compile(BUILD / "bench", kafka)
    sizes = {name: size for name, size in vars(options).items() if isinstance(size, int)}
    described = about(kafka, sizes)
    say("translating recorded runs of MirrorMaker 2")
    accuracy = list(scores(store, options.stride))
    load = Load(partitions=options.partitions, syncs=options.syncs)
    with TemporaryDirectory(dir=BUILD / "bench") as folder:
        bench = Bench(
            folder=Path(folder),
            jars=kafka,
            store=store,
            load=load,
            asked=options.asked,
            progress=say,
        )
        measures, growths, goals = bench.run()
    results = Results(
        scores=accuracy, measures=measures, growths=growths, goals=goals, about=described
    )
    results.write(options.out)
    print(f"\n{results}\n\nJSON and charts are in {options.out}", flush=True)


def say(line: str) -> None:
    """Print a line with the time."""
    print(f"{time.strftime('%H:%M:%S')}  {line}", flush=True)


if __name__ == "__main__":
    main()
