"""In simulated worlds of each kind, the offset syncs alone lead to no answer above the truth.

``make soak NAME=translation`` tries a million positions.
"""

from hypothesis import given, settings

from tests.support.mirror_world.cases import by_kind, check, drawn_worlds, some
from tests.support.mirror_world.draw import Drawn
from tests.support.mirror_world.index_check import judge_index
from tests.support.mirror_world.kinds import Kind


@by_kind
def test_the_syncs_lose_nothing(kind: Kind) -> None:
    """By all syncs, and by those that compaction leaves."""
    for drawn in some(100, kind):
        for judge in judge_index(drawn):
            check(judge)


def test_the_syncs_lose_nothing_where_kinds_meet() -> None:
    """The same in worlds of several kinds."""
    for drawn in some(400, alone=False):
        for judge in judge_index(drawn):
            check(judge)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(drawn_worlds())
def test_the_syncs_lose_nothing_in_any_world(drawn: Drawn) -> None:
    """The same in worlds that Hypothesis picks, and makes small where one fails."""
    for judge in judge_index(drawn):
        check(judge)
