"""In simulated worlds of each kind, no plan has an answer above the truth.

Whatever is lost or read: the source, Connect, records; and while the world goes on.
"""

import pytest

from tests.support.mirror_world.cases import by_kind, check, some
from tests.support.mirror_world.draw import draw
from tests.support.mirror_world.kinds import KINDS, Kind
from tests.support.mirror_world.plan_check import judge_plan


@by_kind
def test_a_plan_loses_nothing(kind: Kind) -> None:
    """Each world is asked once, for some positions."""
    for drawn in some(80, kind):
        check(judge_plan(drawn))


@pytest.mark.parametrize(
    "names",
    [
        ("archived", "target-recreated"),
        ("target-recreated", "lost-syncs"),
        ("retries", "append-time"),
        ("retries", "stamps"),
        ("restarts", "lost-syncs"),
        ("restarts", "target-retention"),
        ("restarts", "holes"),
        ("exactly-once", "filter"),
        ("retries", "equal-records"),
        ("misnamed", "uncommitted"),
    ],
    ids="+".join,
)
def test_a_plan_loses_nothing_where_two_kinds_meet(names: tuple[str, ...]) -> None:
    """The same in worlds of both."""
    kinds = [kind for name in names for kind in KINDS if kind.name == name]
    for seed in range(100):
        check(judge_plan(draw(seed, *kinds)))


def test_a_plan_loses_nothing_where_kinds_meet() -> None:
    """The same in worlds of several kinds."""
    for drawn in some(200, alone=False):
        check(judge_plan(drawn))
