"""Where MirrorMaker 2 has lost its first syncs, the wait's look bounds what it copied before."""

from dataclasses import replace
from typing import cast

import pytest

from airflow_mm2_offsets.core import Translation
from airflow_mm2_offsets.errors import ConfigurationError
from airflow_mm2_offsets.planning.options import PlanOptions
from airflow_mm2_offsets.planning.plan import plan_failover, still_copying
from airflow_mm2_offsets.planning.source_ends import SourceEnds, ends_from_json, ends_to_json
from tests.support.pairs import Pair, connect

POSITION = {"orders": {0: 195}}


@pytest.fixture
def live(clusters: Pair) -> Pair:
    """All is copied; the first known sync is of 120."""
    clusters.write("orders", range(200))
    clusters.copy("orders", range(200))
    clusters.sync("orders", (120, 120), (199, 199))
    return clusters


def _answer(clusters: Pair, ends: SourceEnds) -> Translation:
    noted = replace(clusters.pair, connect=connect({("orders", 0): 199}))
    plan = plan_failover(noted, POSITION, options=PlanOptions(source_ends=ends))
    (partition,) = plan.partitions
    return partition.translation


def _look(clusters: Pair) -> tuple[tuple[Translation, ...], SourceEnds]:
    seen: SourceEnds = {}
    noted = replace(clusters.pair, connect=connect({("orders", 0): 199}))
    return still_copying(noted, POSITION, seen), seen


def test_producers_that_go_on_change_no_answer(live: Pair) -> None:
    """The wait has seen the end 200, and MirrorMaker 2 past it: records since were not there."""
    behind, seen = _look(live)
    assert behind == ()
    live.write("orders", range(60))

    assert _answer(live, {}).low == 0
    assert (_answer(live, seen).low, _answer(live, seen).high) == (195, 195)
    assert _answer(live, ends_from_json(ends_to_json(seen))) == _answer(live, seen)


def test_an_end_of_another_first_sync_does_not_count(live: Pair) -> None:
    """Syncs that were lost since make the first known one later: more may lie before it."""
    _, seen = _look(live)
    live.write("orders", range(60))
    earlier = {key: (first._replace(upstream=119), end) for key, (first, end) in seen.items()}
    assert _answer(live, earlier).low == 0


def test_copies_up_to_an_end_that_is_not_reached_again_count(live: Pair) -> None:
    """The end that was seen lies beyond what MirrorMaker 2 has copied: the older ones count."""
    live.write("orders", range(60))
    behind, seen = _look(live)
    assert behind
    assert _answer(live, seen).low == 0


@pytest.mark.parametrize("values", [1, {"0": "1 2"}, {"0": None}])
def test_what_is_no_end_is_refused(values: object) -> None:
    """It names the task that returns them."""
    with pytest.raises(ConfigurationError, match="Mm2ReplicatedSensor"):
        ends_from_json(cast("dict[str, dict[str, str]]", {"orders": values}))
