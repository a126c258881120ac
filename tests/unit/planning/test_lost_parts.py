"""Planning from what is left of a pair of clusters."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from airflow_mm2_offsets.archive import SyncArchive
from airflow_mm2_offsets.archive.update import archive_syncs
from airflow_mm2_offsets.core import FailoverPlan, SyncsLocation, summarize
from airflow_mm2_offsets.errors import ClusterUnreachableError, SyncsTopicError
from airflow_mm2_offsets.planning import lost_parts
from airflow_mm2_offsets.planning.lost_parts import (
    find_lost_parts,
    quick,
)
from airflow_mm2_offsets.planning.options import DEFAULT_OPTIONS, PlanOptions
from airflow_mm2_offsets.planning.partial_plan import plan_from_what_is_left
from airflow_mm2_offsets.planning.plan import plan_failover
from airflow_mm2_offsets.testing import Mm2Simulation, simulated_mm2

POSITIONS = {"orders": {0: 150, 1: 20}}


@pytest.fixture(params=[SyncsLocation.SOURCE, SyncsLocation.TARGET])
def simulation(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Mm2Simulation]:
    """Two partitions, copied; no part is waited for longer than a moment."""
    monkeypatch.setattr("airflow_mm2_offsets.planning.lost_parts.PROBE_SECONDS", 0.05)
    with simulated_mm2(syncs_location=request.param) as made:
        for cluster in ("source", "target"):
            quick = replace(getattr(made.pair, cluster), timeout=0.05)
            made.pair = replace(made.pair, **{cluster: quick})
        made.source.produce("orders", 0, [b"%d" % number for number in range(200)])
        made.source.produce("orders", 1, [b"%d" % number for number in range(30)])
        made.mirror()
        yield made


@pytest.fixture
def archive(simulation: Mm2Simulation, tmp_path: Path) -> SyncArchive:
    made = SyncArchive(str(tmp_path / "archive"))
    archive_syncs(simulation.pair, made)
    return made


def _parts(plan: FailoverPlan) -> list[str]:
    return [each.part for each in plan.left_out]


def test_with_all_parts_it_is_the_planners_plan(simulation: Mm2Simulation) -> None:
    """Nothing is left out, and the JSON has no field more than a plan of before."""
    plan = plan_from_what_is_left(simulation.pair, POSITIONS)
    expected = plan_failover(simulation.pair, POSITIONS)
    assert plan.partitions == expected.partitions
    assert plan.left_out == ()
    assert plan.to_json().keys() == expected.to_json().keys()
    assert "Made without" not in summarize(plan)


def test_a_lost_source_is_left_out(simulation: Mm2Simulation, archive: SyncArchive) -> None:
    """The archive and the target answer; the plan names what it was made without, and why."""
    simulation.source.is_running = False
    plan = plan_from_what_is_left(simulation.pair, POSITIONS, options=PlanOptions(archive=archive))
    on_source = simulation.pair.syncs_location is SyncsLocation.SOURCE
    assert _parts(plan) == (["source", "syncs topic"] if on_source else ["source"])
    assert "did not answer" in plan.left_out[0].reason
    assert "Made without what does not answer:\n  source: source" in summarize(plan)
    assert FailoverPlan.from_json(plan.to_json()) == plan
    assert plan.refused == ()


def test_half_a_source_counts_as_lost(simulation: Mm2Simulation, archive: SyncArchive) -> None:
    """Where a partition has no leader, watermarks can't be read; the partition is named."""
    simulation.source.leaderless = {("orders", 1)}
    plan = plan_from_what_is_left(simulation.pair, POSITIONS, options=PlanOptions(archive=archive))
    assert _parts(plan) == ["source"]
    assert "no broker leads orders[1]" in plan.left_out[0].reason
    # The other half may hold the syncs topic: then it is read, with or without an archive.
    assert plan.syncs_as_of is None
    alone = plan_from_what_is_left(simulation.pair, POSITIONS)
    assert [each.start for each in alone.partitions] == [each.start for each in plan.partitions]


def test_a_lost_connect_is_left_out(simulation: Mm2Simulation) -> None:
    """Connect proves how far was copied; without it the answers are no worse than bounded."""
    simulation.connect.is_running = False
    plan = plan_from_what_is_left(simulation.pair, POSITIONS)
    assert _parts(plan) == ["Connect"]


def test_the_archive_stands_in_for_a_lost_syncs_topic(
    simulation: Mm2Simulation, archive: SyncArchive
) -> None:
    """The topic was deleted, both clusters live: the archive alone answers, as of its time."""
    simulation.syncs_cluster.delete_topic(simulation.pair.syncs_topic)
    plan = plan_from_what_is_left(simulation.pair, POSITIONS, options=PlanOptions(archive=archive))
    assert _parts(plan) == ["syncs topic"]
    assert plan.syncs_as_of is not None
    assert plan.ids.source.cluster_id is not None


@pytest.mark.parametrize("lose", ["topic", "leader"])
def test_neither_topic_nor_archive_says_what_to_give(simulation: Mm2Simulation, lose: str) -> None:
    """One error that names the topic, the reason and the setting."""
    topic = simulation.pair.syncs_topic
    if lose == "topic":
        simulation.syncs_cluster.delete_topic(topic)
    else:
        simulation.syncs_cluster.leaderless = {(topic, 0)}
    with pytest.raises(SyncsTopicError, match=rf"^archive: .*{topic} are lost.* Give the location"):
        plan_from_what_is_left(simulation.pair, POSITIONS)


def test_a_lost_target_is_an_error(simulation: Mm2Simulation, archive: SyncArchive) -> None:
    """Without the target there is nowhere to go."""
    simulation.target.is_running = False
    with pytest.raises(ClusterUnreachableError, match=r"^target"):
        plan_from_what_is_left(simulation.pair, POSITIONS, options=PlanOptions(archive=archive))


def _after(answers: int, change: Callable[[], None]) -> Callable[[], None]:
    """Return what calls ``change`` before one more answer than ``answers``."""
    left = [answers]

    def before_answer() -> None:
        left[0] -= 1
        if left[0] == -1:
            change()

    return before_answer


@pytest.mark.parametrize("answers", range(0, 30, 2))
def test_a_source_that_dies_at_any_answer_fails_nothing(
    simulation: Mm2Simulation, archive: SyncArchive, answers: int
) -> None:
    """Whichever request it dies at, there is a plan, and it names the source if it was needed."""

    def die() -> None:
        simulation.source.is_running = False

    simulation.source.before_answer = _after(answers, die)
    plan = plan_from_what_is_left(simulation.pair, POSITIONS, options=PlanOptions(archive=archive))
    assert plan.refused == ()
    if not simulation.source.is_running and answers < 4:
        assert "source" in _parts(plan)


@pytest.mark.parametrize("answers", range(6))
def test_a_connect_that_dies_meanwhile_fails_nothing(
    simulation: Mm2Simulation, answers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Connect may die after it has answered: the plan is made without it."""
    asked = [answers]
    answer = simulation.connect._answer  # noqa: SLF001 - each request passes there

    def dying(request: object) -> object:
        asked[0] -= 1
        simulation.connect.is_running = asked[0] >= 0
        return answer(request)  # type: ignore[arg-type]

    monkeypatch.setattr(type(simulation.connect), "_answer", lambda _, request: dying(request))
    simulation.source.produce("orders", 0, [b"more"])
    plan = plan_from_what_is_left(simulation.pair, POSITIONS)
    assert plan.refused == ()


def test_the_probe_names_each_lost_part(simulation: Mm2Simulation) -> None:
    """Each part is asked by itself."""
    assert find_lost_parts(simulation.pair).left_out() == ()
    simulation.source.is_running = simulation.connect.is_running = False
    lost = find_lost_parts(simulation.pair, POSITIONS)
    assert lost.source is not None
    assert lost.connect is not None
    assert lost.target is None


def test_who_wants_no_source_asked_gets_the_archive(
    simulation: Mm2Simulation, archive: SyncArchive
) -> None:
    """``read_source=False`` is obeyed as by the planner."""
    options = replace(DEFAULT_OPTIONS, archive=archive, read_source=False)
    plan = plan_from_what_is_left(simulation.pair, POSITIONS, options=options)
    assert plan.partitions == plan_failover(simulation.pair, POSITIONS, options=options).partitions


def test_the_target_is_given_its_own_time(simulation: Mm2Simulation) -> None:
    """A source that counts as lost costs evidence; a target that counts as lost ends the task."""
    pair = replace(
        simulation.pair,
        source=simulation.source.cluster("source", timeout=30),
        target=simulation.target.cluster("target", timeout=30),
    )
    assert quick(pair).source.timeout == lost_parts.PROBE_SECONDS
    assert quick(pair).target.timeout == 30


@pytest.mark.parametrize("lose", ["source", "leader", "topic", "nothing"])
def test_a_source_is_silent_only_if_no_broker_answers(simulation: Mm2Simulation, lose: str) -> None:
    """Ids can be compared with half a source, and must be with one whose topic was deleted."""
    match lose:
        case "source":
            simulation.source.is_running = False
        case "leader":
            simulation.source.leaderless = {("orders", 1)}
        case "topic":
            simulation.source.delete_topic("orders")
    lost = find_lost_parts(simulation.pair, POSITIONS)
    assert (lost.source is None) is (lose == "nothing")
    assert lost.source_is_silent is (lose == "source")
