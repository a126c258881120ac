"""Judges translations in many simulated worlds, and prints the results by kind.

Ends with 1 if an answer is above the truth and something could have revealed it; with
``--undetectable`` also if nothing could, and then draws worlds that hide more.
"""

import argparse
import logging
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial

from airflow_mm2_offsets.testing import in_memory_clients
from tests.soaks import add_figures
from tests.support.mirror_world.draw import worlds
from tests.support.mirror_world.index_check import judge_index
from tests.support.mirror_world.kinds import ALL, HIDING
from tests.support.mirror_world.plan_check import judge_plan
from tests.support.mirror_world.report import Report
from tests.support.mirror_world.wait_check import Waits

MOST_PROCESSES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Soaked:
    """The results of one process."""

    index: Report
    plan: Report
    waits: Waits = field(default_factory=Waits)

    @property
    def positions(self) -> int:
        """The number of positions judged."""
        return self.index.total.positions + self.plan.total.positions


def main() -> int:
    options = _options()
    started = time.monotonic()
    seeds = range(options.seed, options.seed + min(options.processes, MOST_PROCESSES))
    share = partial(_soak, options, options.positions // len(seeds))
    if len(seeds) == 1:
        parts = [share(options.seed)]
    else:
        with ProcessPoolExecutor(len(seeds)) as pool:
            parts = list(pool.map(share, seeds))
    total = parts[0]
    for part in parts[1:]:
        total.index.merge(part.index)
        total.plan.merge(part.plan)
        total.waits.update(part.waits)
    for line in _lines(total):
        sys.stdout.write(f"{line}\n")
    sys.stdout.write(f"{total.positions} positions in {time.monotonic() - started:.0f} s\n")
    above = total.index.above + total.plan.above
    totals = (total.index.total, total.plan.total)
    add_figures(
        positions=total.positions,
        worlds=sum(each.worlds for each in totals),
        above_the_truth=above,
        refused=sum(each.refused for each in totals),
        exact_below_the_truth=sum(each.exact_below for each in totals),
    )
    return 1 if above else 0


def _soak(options: argparse.Namespace, positions: int, seed: int) -> Soaked:
    soaked = Soaked(
        index=Report(title="index alone", shown=options.show, hidden=options.undetectable),
        plan=Report(title="plan", shown=options.show, hidden=options.undetectable),
    )
    drawable = (*ALL, *(HIDING if options.undetectable else ()))
    kinds = [kind for kind in drawable if options.kind in {None, kind.name}]
    logging.disable()  # Archives warn of recreated topics.
    with in_memory_clients():
        for drawn in worlds(seed, kinds, alone=options.alone):
            for judge in judge_index(drawn):
                soaked.index.add(judge)
            if options.plans:
                soaked.waits.add(drawn)
                soaked.plan.add(judge_plan(drawn))
            if soaked.positions >= positions:
                return soaked
    raise AssertionError("worlds never end")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tests.support.mirror_world", description=__doc__)
    parser.add_argument("--positions", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=1, help="at most 2")
    parser.add_argument("--kind", help="only worlds of it (and of others as it comes)")
    parser.add_argument("--alone", action="store_true", help="each world of one kind only")
    parser.add_argument("--show", type=int, default=3, help="findings printed for each kind")
    parser.add_argument("--no-plans", dest="plans", action="store_false", help="only the index")
    parser.add_argument("--undetectable", action="store_true", help="count what nothing can tell")
    return parser.parse_args()


def _lines(total: Soaked) -> Iterator[str]:
    yield from total.index.lines()
    yield from total.plan.lines()
    yield "wait: " + ", ".join(f"{each.value} {number}" for each, number in total.waits.items())


if __name__ == "__main__":
    sys.exit(main())
