"""Worlds that a soak has found with an answer above the truth, each drawn again by its seed."""

from collections.abc import Iterator

import pytest

from tests.support.mirror_world.cases import check
from tests.support.mirror_world.detection import DetectableBy
from tests.support.mirror_world.draw import Drawn, draw_again
from tests.support.mirror_world.index_check import judge_index
from tests.support.mirror_world.judging import Judge
from tests.support.mirror_world.kinds import KINDS
from tests.support.mirror_world.plan_check import judge_plan


def _drawn(seed: int, kind: str | None) -> Drawn:
    return draw_again(seed, [each for each in KINDS if kind in {None, each.name}])


def _judges(drawn: Drawn) -> Iterator[Judge]:
    """Judge as a soak does: each judge draws on."""
    yield from judge_index(drawn)
    yield judge_plan(drawn)


@pytest.mark.parametrize(
    ("seed", "kind"),
    [
        pytest.param(
            50000004747, "target-recreated", id="old syncs fit the log of a recreated target"
        ),
        pytest.param(
            50000013022, "target-recreated", id="a rewind next to the syncs that an archive cuts"
        ),
        pytest.param(9701000009162, None, id="the target has grown too much since the cut"),
        pytest.param(9821000015901, None, id="Connect's offset was put back, and others wrote"),
        pytest.param(9832000019330, None, id="another writer's records equal, but for their time"),
        pytest.param(9852000062576, None, id="records show a rewind that a later step outweighs"),
        pytest.param(9872000000000000031713, None, id="a later record equals a removed one"),
        pytest.param(
            9872000000000000034970, None, id="MirrorMaker 2 went back next to a cut, further on"
        ),
        pytest.param(
            9873000000000000041836, None, id="an old sync's target record is of a later record"
        ),
        pytest.param(
            9873000000000000050845, None, id="a later record equals that of a sync, deleted since"
        ),
        pytest.param(9101000015965, None, id="an open transaction hides the end of the source"),
        pytest.param(9101000018779, None, id="an open transaction hides equal records"),
        pytest.param(9401000021930, None, id="records were skipped before and after a lost sync"),
        pytest.param(9403000034317, None, id="another writer stands in for skipped records"),
        pytest.param(9501000005257, None, id="a changed record overtook the one before it"),
        pytest.param(9101000004919, None, id="a filter was loosened before records were skipped"),
        pytest.param(9911000006889, None, id="retention deletes an equal record during the plan"),
        pytest.param(9831000000296, None, id="an earlier sync says that the record lies after it"),
        pytest.param(50000007716, "target-recreated", id="later syncs cover an earlier life"),
    ],
)
def test_no_answer_is_above_the_truth(seed: int, kind: str | None) -> None:
    """The rule answers closer to the beginning, or refuses."""
    for judge in _judges(_drawn(seed, kind)):
        check(judge)


@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(9851000062936, id="other records stand in for those of older copies"),
        pytest.param(9871000000000000008404, id="a later step that was read lacks a record"),
    ],
)
def test_no_record_is_lost(seed: int) -> None:
    """By the plan, also where it need not have read what tells."""
    *alone, plan = _judges(_drawn(seed, None))
    for judge in alone:
        check(judge)
    assert not plan.findings


@pytest.mark.parametrize(
    ("seed", "kind"),
    [
        pytest.param(141000008391, None, id="Connect has committed the record itself"),
        pytest.param(9101000004994, None, id="a marker stands in for the record in a later step"),
        pytest.param(9832000020315, None, id="compaction has removed copied records"),
        pytest.param(9602000000029, None, id="an earlier step passes over the record"),
        pytest.param(9101000008547, None, id="a sync was written after the plan had been asked"),
        pytest.param(50000000829, "target-recreated", id="an archive was made before any sync"),
    ],
)
def test_nothing_can_tell(seed: int, kind: str | None) -> None:
    """An answer is above the truth, and all that was read fits a world where it is not."""
    findings = [finding for judge in _judges(_drawn(seed, kind)) for finding in judge.findings]
    assert {finding.detectable_by for finding in findings} == {DetectableBy.NOTHING}
