"""Draws worlds: each kind in turn, alone or with others."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from random import Random

from tests.support.mirror_world.kinds import ALL, BASE, KINDS, LATER, Kind, amount
from tests.support.mirror_world.settings import MirrorSettings
from tests.support.mirror_world.steps import Step
from tests.support.mirror_world.world import MirrorWorld

MOST_WORLDS = 10**9
"""So many worlds have seeds of their own that follow from one seed."""
BEGINS = (0, 0, 7, 300, 10**6, 10**12)
"""Where the source begins. Retention has deleted the beginning of every long-lived topic."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """A world, and the seed that recreates it."""

    seed: int
    kinds: tuple[str, ...]
    world: MirrorWorld
    random: Random
    """For the checks, which draw as well."""


def worlds(seed: int, kinds: Sequence[Kind] = ALL, *, alone: bool = False) -> Iterator[Drawn]:
    """Yield worlds without end; each kind takes its turn, with others unless it is to be alone."""
    for number in count():
        yield draw_again(seed * MOST_WORLDS + number, kinds, alone=alone)


def draw_again(
    seed: int, kinds: Sequence[Kind] = ALL, *, alone: bool = False, begin: int | None = None
) -> Drawn:
    """Return the world of ``worlds`` that a finding names by its own seed.

    Args:
        seed: The world's own.
        kinds: Those that were drawn from.
        alone: Whether each world was of one kind.
        begin: Let the source begin here instead.
    """
    first = kinds[seed % MOST_WORLDS % len(kinds)]
    others = [] if alone else _others(seed, first, kinds)
    if begin is None:
        begin = Random(f"begin {seed}").choice(BEGINS)  # noqa: S311
    return draw(seed, first, *others, begin=begin)


def _others(seed: int, first: Kind, kinds: Sequence[Kind]) -> list[Kind]:
    random = Random(-seed)  # noqa: S311 - the same seed makes the same world
    mixing = [kind for kind in KINDS if kind.mixes and kind is not first]
    others = random.sample(mixing, random.choice((0, 1, 1, 2, 3)))
    # The seeds of findings that are older than these kinds were drawn without them.
    later = [kind for kind in kinds if kind in LATER and kind.mixes and kind is not first]
    if later and random.random() < 0.25:
        others.append(random.choice(later))
    return others


def draw(seed: int, *kinds: Kind, begin: int = 0) -> Drawn:
    """Draw one world of all of ``kinds``, whose source begins at ``begin``."""
    random = Random(seed)  # noqa: S311 - the same seed makes the same world
    world = world_of(random, kinds, begin=begin)
    world.run(script_of(random, kinds))
    return Drawn(seed=seed, kinds=tuple(each.name for each in kinds), world=world, random=random)


def world_of(random: Random, kinds: Sequence[Kind], *, begin: int = 0) -> MirrorWorld:
    """Return a world of all of ``kinds`` to which nothing has happened yet."""
    settings = {
        name: random.choice(values) for kind in kinds for name, values in kind.settings.items()
    }
    equal = any(kind.equal_records for kind in kinds)
    return MirrorWorld(
        MirrorSettings(lag_max=random.choice((0, 1, 3, 5, 10, 30, 100)), **settings),
        random,
        kinds=random.choice((2, 3, 5, 20)) if equal else 10**9,
        begin=begin,
    )


def script_of(random: Random, kinds: Sequence[Kind]) -> Iterator[Step]:
    """Yield what happens: a mix of its own for each world, its episodes, and one of some ends."""
    weights = dict(BASE)
    for kind in kinds:
        weights.update(kind.weights)
    # Some are killed all the time, some hardly ever.
    mix = [weight * random.choice((0.2, 1, 1, 4)) for weight in weights.values()]
    episodes = [
        kind.episode for kind in kinds if kind.episode for _ in range(random.choice((1, 2)))
    ]
    yield Step("grow", amount(random))
    for episode in random.sample(episodes, len(episodes)) or [_nothing]:
        for action in random.choices(list(weights), mix, k=random.choice((2, 6, 12))):
            yield Step(action, amount(random))
        yield from episode(random)
    if episodes and random.random() < 0.4:
        return  # The world ends in the midst of it.
    for action in random.choices(list(weights), mix, k=random.choice((2, 6, 12))):
        yield Step(action, amount(random))
    yield from _end(random)


def _nothing(_: Random) -> list[Step]:
    return []


def _end(random: Random) -> list[Step]:
    match random.choice(("settled", "settled", "middle", "middle", "idle", "left behind")):
        case "settled":
            return [Step("catch_up")]
        case "idle":
            return [Step("grow", 1), Step("catch_up"), Step("kill")]
        case "left behind":
            return [Step("catch_up"), Step("grow", amount(random)), Step("copy", amount(random))]
        case _:
            return [Step("copy", amount(random))]
