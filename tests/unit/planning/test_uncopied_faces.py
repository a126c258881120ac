"""What each face makes of records that were never copied."""

from dataclasses import replace

import pytest

from airflow_mm2_offsets.core import Basis, FailoverPlan, Status, summarize
from airflow_mm2_offsets.core.epochs import PartitionSyncs
from airflow_mm2_offsets.core.forecast import CountRange, ForecastRequest
from airflow_mm2_offsets.core.plan import Verdict
from airflow_mm2_offsets.core.policy import DISASTER, POLICIES, Policy
from airflow_mm2_offsets.core.uncopied import count_lacking
from airflow_mm2_offsets.planning import inverse_collector
from airflow_mm2_offsets.planning.checks import find_problems
from airflow_mm2_offsets.planning.forecast import forecast_failover
from airflow_mm2_offsets.planning.options import DEFAULT_OPTIONS, PlanOptions
from airflow_mm2_offsets.planning.plan import plan_failover
from tests.support.pairs import NAMING, Pair, connect

BEGAN, END = 100, 400
POSITION = 60
LOST = BEGAN - POSITION


@pytest.fixture
def latest(clusters: Pair) -> Pair:
    """Return clusters where MirrorMaker 2 began at 100, the topic's end at that time."""
    clusters.write("orders", range(END))
    clusters.copy("orders", range(BEGAN, END))
    clusters.sync("orders", (BEGAN, 0), (END - 1, END - 1 - BEGAN))
    answering = connect(config={"consumer.auto.offset.reset": "latest"})
    clusters.pair = replace(clusters.pair, connect=answering)
    for partition in range(1, 4):  # A check wants positions of all.
        clusters.write("orders", range(10), partition)
        clusters.copy("orders", range(10), partition)
        clusters.sync("orders", (0, 0), (9, 9), partition=partition)
    return clusters


def _plan(latest: Pair, options: PlanOptions = DEFAULT_OPTIONS) -> FailoverPlan:
    return plan_failover(latest.pair, {"orders": {0: POSITION}}, options=options)


@pytest.mark.parametrize("policy", POLICIES.values(), ids=str)
@pytest.mark.parametrize("give_up", [0, LOST])
def test_a_forecast_counts_them_as_lost(latest: Pair, policy: Policy, give_up: int) -> None:
    """Whether they were given up or not, and whether the source stays or not."""
    plan = _plan(latest, PlanOptions(give_up=give_up))
    request = ForecastRequest(policy=policy, plan_digest="")
    forecast = forecast_failover(latest.pair, plan, request)
    assert forecast.at_risk == CountRange(at_least=LOST, at_most=LOST)
    assert forecast.at_risk_seconds is None
    gone_on = replace(request, positions_as_of="2027-01-15T08:00:00+00:00")
    forecast = forecast_failover(latest.pair, plan, gone_on)
    assert forecast.at_risk == CountRange(at_least=0, at_most=LOST)


def test_a_lost_source_may_have_held_them(latest: Pair) -> None:
    """The syncs show offsets that were not copied: at most so many records are lost."""
    plan = _plan(latest, PlanOptions(read_source=False))
    assert plan.verdict is Verdict.READY
    latest.source.is_running = False
    pair = replace(latest.pair, source=replace(latest.pair.source, timeout=0.02))
    request = ForecastRequest(policy=DISASTER, plan_digest="", max_rate=1.0)
    (line,) = forecast_failover(pair, plan, request).partitions
    assert f"at most {LOST} offsets" in line.at_risk_basis


@pytest.mark.parametrize(("position", "offsets"), [(0, 100), (60, 40), (99, 1), (100, 0), (350, 0)])
def test_offsets_that_the_syncs_show_not_to_be_copied(position: int, offsets: int) -> None:
    """Up to the record of the first sync, which is the target's first."""
    assert count_lacking(PartitionSyncs([(100, 0), (200, 100), (399, 299)]), position) == offsets


@pytest.mark.parametrize("begin", [0, 1000, 10**9])
def test_where_the_source_begins_does_not_count(begin: int) -> None:
    """Offsets of two logs are not compared."""
    syncs = PartitionSyncs([(begin + 1000, 1000), (begin + 1100, 1100), (begin + 1300, 1200)])
    assert count_lacking(syncs, begin + 900) == 100


def test_a_check_names_the_number(latest: Pair) -> None:
    """Before anything is stopped."""
    positions = {"orders": {0: POSITION, 1: 10, 2: 10, 3: 10}}
    (problem,) = find_problems(latest.pair, positions)
    assert f"{LOST} records" in problem
    assert not find_problems(latest.pair, positions, options=PlanOptions(give_up=LOST))


def test_a_summary_names_what_is_given_up(latest: Pair) -> None:
    """In its first sentence."""
    headline = summarize(_plan(latest, PlanOptions(give_up=LOST))).splitlines()[0]
    assert f"at most {LOST} records" in headline


def _home(latest: Pair, first: FailoverPlan, give_up: int = 0) -> FailoverPlan:
    options = PlanOptions(first_plan=first, give_up=give_up)
    topic = NAMING.target_topic("orders")
    return plan_failover(latest.pair.exchanged(), {topic: {0: 150}}, options=options)


def test_a_job_comes_home_to_what_it_has_read_nowhere(latest: Pair) -> None:
    """The first plan could not see them. At home they are read, and what follows again."""
    first = _plan(latest, PlanOptions(read_source=False))
    (answer,) = (each.translation for each in _home(latest, first).partitions)
    assert (answer.status, answer.low, answer.high) == (Status.BOUNDED, POSITION, BEGAN + 150)
    plan = _home(latest, first, give_up=LOST)
    assert plan.partitions[0].translation.target == BEGAN + 150
    assert plan.given_up == LOST


def test_a_job_comes_home_to_it_from_far(latest: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the records since the first move are too many to be read whole."""
    monkeypatch.setattr(inverse_collector, "_NEAR", 10)
    monkeypatch.setattr(inverse_collector, "_SPARE", 10)
    first = _plan(latest, PlanOptions(read_source=False))
    (answer,) = (each.translation for each in _home(latest, first).partitions)
    assert (answer.status, answer.low, answer.high) == (Status.BOUNDED, POSITION, BEGAN + 150)
    assert _home(latest, first, give_up=LOST).partitions[0].translation.target == BEGAN + 150


def test_what_was_given_up_is_not_offered_again(latest: Pair) -> None:
    """The first plan names it: the way home is exact."""
    first = _plan(latest, PlanOptions(give_up=LOST))
    (answer,) = (each.translation for each in _home(latest, first).partitions)
    assert (answer.status, answer.basis) == (Status.EXACT, Basis.CONTENT)
    assert answer.target == BEGAN + 150
