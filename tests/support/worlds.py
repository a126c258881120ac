"""Worlds of the simulator, many and each other's unlike."""

import os
from collections.abc import Iterator
from random import Random

from tests.support.simulator import Step, World

RUNS = int(os.environ.get("MM2_OFFSETS_RUNS", "1000"))
"""How many worlds a property is tried on; a nightly run may take far more."""

_ACTIONS = {
    "grow": 4,
    "gap": 2,
    "copy": 8,
    "commit": 3,
    "kill": 2,
    "commit_unseen": 1,
    "write": 1,
    "retry": 1,
    "foreign": 1,
    "block": 1,
    "lose": 1,
    "unblock": 1,
    "catch_up": 1,
}
ACTIONS = tuple(_ACTIONS)
_OPTIONAL = ("gap", "kill", "commit_unseen", "write", "retry", "foreign", "block", "lose")


JUMPED = [(0, 0), (50, 50), (100, 100), (0, 101), (10, 111), (90, 112), (110, 132)]
"""Syncs of a second copy whose offsets were altered: it jumped from record 10 to record 90."""
JUMPED_TRUTHS = [max(11, position) if position < 90 else 22 + position for position in range(111)]
"""The records in between have their first copies only."""


def settled_worlds(without: tuple[str, ...] = ()) -> Iterator[tuple[World, Random]]:
    """Yield worlds where MirrorMaker 2 has come as far as ever before."""
    for world, random in _worlds(without):
        yield settle(world), random


def settle(world: World) -> World:
    while not world.settled:
        world.copy(3)
    world.commit()
    return world


def worlds_copying_again() -> Iterator[World]:
    """Yield worlds that end soon after a kill; no source offset is missing in them.

    The first sync of the first life is there, for without it nothing is known of that life.
    """
    for world, random in _worlds(("gap",)):
        for _ in range(random.choice((1, 1, 2))):
            world.run(
                [
                    Step(random.choice(("block", "lose", "unblock", "unblock"))),
                    Step("grow", random.randrange(8)),
                    Step(random.choice(("copy", "copy", "write", "retry")), random.randrange(9)),
                    Step("kill"),
                    Step("copy", random.randrange(6)),
                    Step(random.choice(("commit", "commit", "foreign")), 1),
                ]
            )
        if world.exactly_once:
            world.commit()
        if world.syncs and world.syncs[0] == (0, 0):
            yield world


def _worlds(without: tuple[str, ...]) -> Iterator[tuple[World, Random]]:
    for seed in range(RUNS):
        random = Random(seed)  # noqa: S311 - the same seed makes the same world
        barred = {name for name in _OPTIONAL if random.random() < 0.4}
        names = [name for name in ACTIONS if name not in barred and name not in without]
        # Each world has its own mix: some are killed all the time, some hardly ever.
        weights = [_ACTIONS[name] * random.choice((0.2, 1, 1, 4)) for name in names]
        world = World(lag_max=random.choice((0, 1, 3, 5, 10)), exactly_once=random.random() < 0.2)
        world.grow(random.randrange(8))
        steps = random.choice((6, 12, 30))
        for action in random.choices(names, weights, k=steps):
            world.run([Step(action, random.choice((1, 1, 2, 3, 5, 8)))])
        yield world, random


REFILLED = [(20, 30)]
"""The syncs after records 0 to 29 were copied to offsets 0 to 29, and again from record 20 on,
with the older syncs compacted away."""
REFILLED_TRUTHS = list(range(20))
"""Of records 0 to 19, only the first copies exist."""

REWOUND: dict[str, tuple[list[tuple[int, int]], list[int]]] = {
    # Records 0 to 100 were copied, then 30 to 49 again without a sync, then 50 to 150.
    "copied again unseen before the rewind's sync": (
        [(0, 0), (20, 20), (40, 40), (100, 100), (50, 121), (150, 221)],
        [position if position < 30 else position + 71 for position in range(151)],
    ),
    # The source has no records 25 to 49. Those from 50 on were copied twice.
    "a gap before the rewind": (
        [(0, 0), (100, 75), (50, 76), (150, 176)],
        [position if position < 25 else max(76, position + 26) for position in range(151)],
    ),
    # The source has no records 1 to 3. Records 0, 4, 5 and 6 were copied, then 0, 4 and 5 again.
    "a gap, and one record not yet copied again": ([(0, 0), (0, 4), (5, 6)], [3] * 7),
}
"""Small logs with a rewind, and the truth of each position."""
