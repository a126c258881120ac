"""Clears the tasks of a failover's run in one order after the other; ``make soak NAME=clearing``.

Two runs are cleared: one that failed while MirrorMaker 2 was down, and whose job a person has
started again on the source meanwhile; and the next one, once it has come to its end.
"""

import argparse
import random
import shutil
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from demo.environment import Demo
from demo.failover import Failover
from demo.report import Report
from tests.e2e.clearing import Clearing
from tests.e2e.drivers import DriverWatch
from tests.soaks import add_figures


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What was done, and what came of it."""

    report: Report
    clears: Counter[str]
    """How many tasks were cleared, by the way they were."""
    orders: int
    """In how many random orders."""
    most: Counter[str]
    """The most drivers alive at once: of each side, and of both together."""
    looks: int
    """How often was looked for drivers."""

    @property
    def holds(self) -> bool:
        """Never two jobs, nothing lost, and no more repeated than announced."""
        return self.report.holds and self.most == Counter(source=1, target=1, together=1)

    def __str__(self) -> str:
        """Say it in a few lines."""
        rows = self.report
        clears = ", ".join(f"{count} {way}" for way, count in self.clears.items())
        most = ", ".join(f"{name} {count}" for name, count in sorted(self.most.items()))
        return (
            f"{self.clears.total()} clears ({clears}; {self.orders} random orders)\n"
            f"most drivers at once, of {self.looks} looks: {most}\n"
            f"{rows.produced} records produced, {rows.delivered.total()} rows in the sinks: "
            f"{rows.lost} lost, {rows.duplicated} duplicated ({rows.plan.max_reread} announced)\n"
            f"{'PROVEN' if self.holds else 'FAILED'}"
        )


def run(folder: Path, *, orders: int, seed: int) -> Found:
    """Fail a failover, clear it in many ways, finish it, and clear it in many ways again.

    Raises:
        ClearingError: A clear did what it must not.
        FailedRunError: A run failed that must not.
    """
    with Demo(folder, say) as demo, DriverWatch(demo) as watch:
        clearing = Clearing(
            demo=demo,
            failover=Failover(demo),
            chance=random.Random(seed),  # noqa: S311 - orders
        )
        clearing.fail_while_stopping()
        clearing.fail_without_mirror()
        clearing.start_source_again()
        clearing.clear_failed(orders)
        clearing.finish()
        clearing.clear_finished(orders)
        clearing.failover.catch_up()
        clearing.failover.verify()
        report = clearing.failover.report()
    return Found(
        report=report,
        clears=clearing.clears,
        orders=clearing.orders,
        most=watch.most,
        looks=watch.looks,
    )


def say(line: str) -> None:
    """Print a line, with the time."""
    print(f"{datetime.now(UTC):%H:%M:%S}  {line}", flush=True)  # noqa: T201 - it speaks to whoever has started it


def main() -> int:
    """Run it as often as is asked for; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--orders", type=int, default=4, help="random orders of each run")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))  # noqa: S311
    args = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="clearing-"))
    say(f"seed {args.seed}; whatever fails leaves its logs in {folder}")
    found = run(folder, orders=args.orders, seed=args.seed)
    say(str(found))
    add_figures(
        clears=found.clears.total(),
        random_orders=found.orders,
        lost=found.report.lost,
        read_again=found.report.duplicated,
    )
    if found.holds:
        shutil.rmtree(folder)
    return 0 if found.holds else 1


if __name__ == "__main__":
    sys.exit(main())
