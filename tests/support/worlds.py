"""Worlds for the upper bounds as well, drawn from ``mirror_world`` with few kinds of mishaps.

``mirror_world.draw`` draws from all kinds; of its worlds only the lower bound is known to hold.
"""

import os
from collections.abc import Iterator
from random import Random

from tests.support.mirror_world.settings import MirrorSettings
from tests.support.mirror_world.steps import Step
from tests.support.mirror_world.world import MirrorWorld

RUNS = int(os.environ.get("MM2_OFFSETS_RUNS", "1000"))
"""The number of worlds for each property; a nightly run may take many more."""

_ACTIONS = {
    "grow": 4,
    "skip": 2,
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
_OPTIONAL = ("skip", "kill", "commit_unseen", "write", "retry", "foreign", "block", "lose")


JUMPED = [(0, 0), (50, 50), (100, 100), (0, 101), (10, 111), (90, 112), (110, 132)]
"""Syncs of a second copy whose offsets were altered: it jumped from record 10 to record 90."""
JUMPED_TRUTHS = [max(11, position) if position < 90 else 22 + position for position in range(111)]
"""The records in between have their first copies only."""


def settled_worlds(without: tuple[str, ...] = ()) -> Iterator[tuple[MirrorWorld, Random]]:
    """Yield worlds in which MirrorMaker 2 has nothing to copy again."""
    for world, random in _worlds(without):
        yield settle(world), random


def settle(world: MirrorWorld) -> MirrorWorld:
    while not world.is_settled:
        world.run([Step("copy", 3)])
    return world.run([Step("commit")])


def truths_of(world: MirrorWorld) -> list[int]:
    """Return the truth of each position, from 0 to one past the source's end."""
    return [*world.truths().values(), world.target.high]


def last_read(world: MirrorWorld) -> int:
    """Return the last source offset that MirrorMaker 2 has read; -1 if it has read nothing."""
    return (world.mirror.task.position or 0) - 1


def worlds_copying_again() -> Iterator[MirrorWorld]:
    """Yield worlds that end soon after a kill, without holes in the source.

    The first sync of the first task has arrived: without it the syncs say nothing of that task.
    """
    for world, random in _worlds(("skip",)):
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
        if world.mirror.settings.exactly_once:
            world.run([Step("commit")])
        if world.syncs.syncs[:1] == [(0, 0)]:
            yield world


def _worlds(without: tuple[str, ...]) -> Iterator[tuple[MirrorWorld, Random]]:
    for seed in range(RUNS):
        random = Random(seed)  # noqa: S311 - the same seed makes the same world
        absent = {name for name in _OPTIONAL if random.random() < 0.4}
        names = [name for name in ACTIONS if name not in absent and name not in without]
        # Each world has its own mix: some are killed all the time, some hardly ever.
        weights = [_ACTIONS[name] * random.choice((0.2, 1, 1, 4)) for name in names]
        lag_max, exactly_once = random.choice((0, 1, 3, 5, 10)), random.random() < 0.2
        world = MirrorWorld(MirrorSettings(lag_max=lag_max, exactly_once=exactly_once), random)
        world.run([Step("grow", random.randrange(8))])
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
