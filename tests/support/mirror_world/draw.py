"""Draws worlds: each kind often, and often with others."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from random import Random

from tests.support.mirror_world.kinds import BASE, KINDS, Kind, amount
from tests.support.mirror_world.mirror import MirrorSettings
from tests.support.mirror_world.records import Step
from tests.support.mirror_world.world import World


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """A world, and what makes it again."""

    seed: int
    kinds: tuple[str, ...]
    world: World
    random: Random
    """For what else is to be drawn."""


def worlds(seed: int, kinds: Sequence[Kind] = KINDS, *, alone: bool = False) -> Iterator[Drawn]:
    """Yield worlds without end; the first kind of each takes its turn."""
    for number in count():
        yield draw(seed * 10**9 + number, kinds[number % len(kinds)], alone=alone)


def draw(seed: int, first: Kind, *, alone: bool = False) -> Drawn:
    """Draw one world of a kind, and of some others as it comes, unless it is to be alone."""
    random = Random(seed)  # noqa: S311 - the same seed makes the same world
    mixing = [kind for kind in KINDS if kind.mixes]
    others = [] if alone else random.sample(mixing, random.choice((0, 1, 1, 2, 3)))
    kinds = (first, *(each for each in others if each is not first))
    settings = {
        name: random.choice(values) for kind in kinds for name, values in kind.settings.items()
    }
    equal = any(kind.equal_records for kind in kinds)
    world = World(
        MirrorSettings(lag_max=random.choice((0, 1, 3, 5, 10, 30, 100)), **settings),
        random,
        kinds=random.choice((2, 3, 5, 20)) if equal else 10**9,
    )
    world.run(_script(random, kinds))
    return Drawn(seed=seed, kinds=tuple(each.name for each in kinds), world=world, random=random)


def _script(random: Random, kinds: Sequence[Kind]) -> Iterator[Step]:
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
