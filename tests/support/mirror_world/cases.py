"""Worlds for pytest: a few of each kind."""

from collections.abc import Collection, Iterable
from itertools import islice
from random import Random

import pytest
from hypothesis import strategies as st

from tests.support.mirror_world.draw import BEGINS, Drawn, worlds
from tests.support.mirror_world.judging import Judge
from tests.support.mirror_world.kinds import ALL, BASE, Kind
from tests.support.mirror_world.settings import MirrorSettings
from tests.support.mirror_world.steps import Step
from tests.support.mirror_world.world import MirrorWorld

_EPISODIC = (
    *("alter_back", "alter_forward", "put_back", "reset_offsets", "reinstall", "recreate_syncs"),
    *("recreate_source", "recreate_target", "expire_all", "catch_up", "truncate", "create_again"),
    *("begin_at_latest", "begin_at_earliest"),
)
"""What else can happen, in the episodes of kinds."""


by_kind = pytest.mark.parametrize("kind", ALL, ids=[kind.name for kind in ALL])
"""Runs a test for each kind."""


def drawn_worlds() -> st.SearchStrategy[Drawn]:
    """Let Hypothesis pick what happens, so that it makes a loss small."""
    lags, begins = st.sampled_from((0, 1, 3, 5, 10)), st.sampled_from(BEGINS)
    return st.builds(_happened, world_steps(), lags, st.booleans(), begins)


def world_steps(without: Collection[str] = ()) -> st.SearchStrategy[list[Step]]:
    """Let Hypothesis pick what happens to a world."""
    actions = {*BASE, *(action for kind in ALL for action in kind.weights), *_EPISODIC}
    picked = st.sampled_from(sorted(actions.difference(without)))
    return st.lists(st.builds(Step, picked, st.integers(1, 8)), max_size=25)


def _happened(steps: list[Step], lag_max: int, exactly_once: bool, begin: int) -> Drawn:  # noqa: FBT001 - Hypothesis
    random = Random(0)  # noqa: S311 - the same steps make the same world
    settings = MirrorSettings(lag_max=lag_max, exactly_once=exactly_once)
    world = MirrorWorld(settings, random, begin=begin)
    return Drawn(seed=0, kinds=("picked",), world=world.run(steps), random=random)


def some(count: int, *kinds: Kind, alone: bool = True) -> Iterable[Drawn]:
    """Draw worlds."""
    return islice(worlds(1, kinds or ALL, alone=alone), count)


def check(judge: Judge) -> None:
    """Fail with the first answer above the truth that was detectable."""
    for finding in judge.findings:
        assert not finding.is_known, str(finding)
