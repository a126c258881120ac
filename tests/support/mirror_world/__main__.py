"""Judges translations in many simulated worlds, and says by kind what came of it."""

import argparse
import sys
import time
from collections import defaultdict

from tests.support.mirror_world.draw import worlds
from tests.support.mirror_world.index_check import judge_index
from tests.support.mirror_world.judging import Finding, Tally


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--positions", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", type=int, default=3, help="findings printed for each kind")
    options = parser.parse_args()
    tallies: dict[str, Tally] = defaultdict(Tally)
    findings: dict[str, list[Finding]] = defaultdict(list)
    total, started = 0, time.monotonic()
    for drawn in worlds(options.seed):
        for judge in judge_index(drawn):
            tallies[drawn.kinds[0]].add(judge.tally)
            findings[drawn.kinds[0]] += judge.findings[: options.show]
            del findings[drawn.kinds[0]][options.show :]
            total += judge.tally.positions
        if total >= options.positions:
            break
    for each in (each for some in findings.values() for each in some):
        print(each)
    print(
        f"{'kind':20}{'worlds':>8}{'lossy':>8}{'positions':>10}{'above':>8}{'refused':>8}{'exact<':>8}{'reread':>8}"
    )
    for kind, tally in tallies.items():
        mean = tally.reread / max(1, tally.answered)
        print(
            f"{kind:20}{tally.worlds:8}{tally.above_worlds:8}{tally.positions:10}{tally.above:8}{tally.refused:8}{tally.exact_below:8}{mean:8.1f}"
        )
    print(f"{total} positions in {time.monotonic() - started:.0f} s")
    return 1 if any(tally.above for tally in tallies.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
