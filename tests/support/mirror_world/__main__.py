"""Judges translations in many simulated worlds, and says by kind what came of it."""

import argparse
import sys
import time
from collections.abc import Iterator

from tests.support.memory_brokers import memory_clients
from tests.support.mirror_world.draw import worlds
from tests.support.mirror_world.index_check import judge_index
from tests.support.mirror_world.kinds import KINDS
from tests.support.mirror_world.plan_check import judge_plan
from tests.support.mirror_world.report import Report


def main() -> int:
    options = _options()
    index = Report(title="index alone", shown=options.show)
    plan = Report(title="plan", shown=options.show)
    started = time.monotonic()
    kinds = [kind for kind in KINDS if options.kind in {None, kind.name}]
    with memory_clients():
        for drawn in worlds(options.seed, kinds, alone=options.alone):
            for judge in judge_index(drawn):
                index.add(judge)
            if options.plans:
                plan.add(judge_plan(drawn))
            if index.total.positions + plan.total.positions >= options.positions:
                break
    for line in _lines(index, plan, time.monotonic() - started):
        sys.stdout.write(f"{line}\n")
    return 1 if index.total.known_above + plan.total.known_above else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tests.support.mirror_world", description=__doc__)
    parser.add_argument("--positions", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kind", help="only worlds of it (and of others as it comes)")
    parser.add_argument("--alone", action="store_true", help="each world of one kind only")
    parser.add_argument("--show", type=int, default=3, help="findings printed for each kind")
    parser.add_argument("--no-plans", dest="plans", action="store_false", help="only the index")
    return parser.parse_args()


def _lines(index: Report, plan: Report, seconds: float) -> Iterator[str]:
    yield from index.lines()
    yield from plan.lines()
    total = index.total.positions + plan.total.positions
    yield f"{total} positions in {seconds:.0f} s"


if __name__ == "__main__":
    sys.exit(main())
