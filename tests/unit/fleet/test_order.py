"""In which order jobs are moved."""

import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_mm2_offsets.errors import ConfigurationError
from airflow_mm2_offsets.fleet.order import find_wrong_reads, order_jobs, select_jobs
from airflow_mm2_offsets.moves.jobs import Home, SparkJob
from airflow_mm2_offsets.planning.plan import plan_failover
from airflow_mm2_offsets.testing import Record
from tests.unit.operators.clusters import Clusters

NAMES = "abcdefgh"


def job(name: str, clusters: tuple[str, str] = ("east", "west"), **fields: Any) -> SparkJob:
    homes = tuple(Home(cluster=each, folder=f"/{each}/{name}") for each in clusters)
    values: dict[str, Any] = {
        key: tuple(each) if isinstance(each, list) else each for key, each in fields.items()
    }
    return SparkJob(name=name, homes=homes, **{"dag": "stream", **values})


def _names(*jobs: SparkJob) -> list[str]:
    return [each.name for each in order_jobs(jobs, "m")]


def test_jobs_stay_in_the_order_of_the_file_by_wave() -> None:
    """Nothing else orders them."""
    assert _names(job("b", wave=2), job("z"), job("a")) == ["z", "a", "b"]


def test_a_reader_is_moved_before_the_writer_of_its_topic() -> None:
    """In a chain the last reader is the first to go."""
    chain = job("a", writes=["x"]), job("b", reads=["x"], writes=["y"]), job("c", reads=["y"])
    assert _names(*chain) == ["c", "b", "a"]
    assert [each.after for each in order_jobs(chain, "m")] == [(), ("c",), ("b",)]


def test_a_writer_that_is_moved_first_would_cost_its_reader_records(clusters: Clusters) -> None:
    """The reason of that order: the plan takes the target's end, behind the writer's new record.

    The reader stands at the source's end. The target holds its copies up to 15, and then the
    record that the moved writer has written there.
    """
    pair = replace(clusters.simulation.pair, connect=None)
    (before,) = plan_failover(pair, {"orders": {0: 10}}).partitions
    clusters.target.produce("orders", 0, [Record(b"new", b"of the moved writer")])
    (after,) = plan_failover(pair, {"orders": {0: 10}}).partitions
    assert (before.start, after.start) == (15, 16)


@pytest.mark.parametrize(
    ("asked", "names"),
    [
        ({"to": "west"}, ["a", "b", "c"]),
        ({"to": "west", "out_of": "north"}, ["c"]),
        ({"to": "west", "names": ["b"]}, ["b"]),
        ({"to": "north"}, ["c"]),
    ],
)
def test_jobs_are_selected_by_name_or_by_cluster(asked: dict[str, Any], names: list[str]) -> None:
    """Those with a home where they go; they stay in their order."""
    jobs = [job("a"), job("b"), job("c", ("north", "west"))]
    assert [each.name for each in select_jobs(jobs, file="jobs.yaml", **asked)] == names


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        (
            {"to": "west", "names": ["alfa"]},
            "jobs.yaml: there is no job 'alfa'.*did you mean alpha",
        ),
        ({"to": "weat"}, "no job goes to 'weat': the jobs have homes at east, west"),
        ({"to": "west", "out_of": "nort"}, "no job goes from 'nort' to 'west'"),
        ({"to": "north", "names": ["alpha"]}, "job alpha has homes at east, west, and not at"),
        ({"to": "west", "names": ["other"]}, "job other: a fleet moves jobs that a DAG runs"),
        ({"to": "west", "names": ["loose"]}, "job loose: a fleet moves jobs that a DAG runs"),
    ],
)
def test_a_job_that_can_not_be_moved_is_refused(asked: dict[str, Any], problem: str) -> None:
    """Before anything is read of it."""
    jobs = [job("alpha"), job("other", dag=None), job("loose", is_controlled=False)]
    with pytest.raises(ConfigurationError, match=problem):
        select_jobs(jobs, file="jobs.yaml", **asked)


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"reads": ["Orders"]}, "reads of job a names Orders, .* reads orders"),
        ({"reads": ["orders", "more"]}, "names more, orders, and"),
        ({}, "reads of job a names nothing"),
        ({"reads": ["orders"]}, None),
        ({"writes": ["orders"]}, None),
    ],
)
def test_reads_are_what_the_checkpoint_reads(fields: dict[str, Any], problem: str | None) -> None:
    """Others would put the job in no order, in silence; a job may read what it alone writes."""
    found = [str(each) for each in find_wrong_reads(job("a", **fields), {"orders"}, {"orders"})]
    assert len(found) == (problem is not None)
    assert all(re.search(problem or "", each) for each in found)


def test_two_readers_of_a_topic_are_in_no_order() -> None:
    """Each has positions of its own."""
    assert all(
        not each.after for each in order_jobs([job("a", reads=["x"]), job("b", reads=["x"])], "m")
    )


def test_a_job_may_read_what_it_writes() -> None:
    """It waits for itself no more than for others."""
    assert _names(job("a", reads=["x"], writes=["x"])) == ["a"]


def test_a_cycle_is_named_with_its_reasons() -> None:
    """The whole of it, and why each comes before the next."""
    jobs = (
        job("a", reads=["y"], writes=["x"]),
        job("b", reads=["x"], after=["c"]),
        job("c", after=["a"]),
    )
    with pytest.raises(ConfigurationError) as caught:
        order_jobs(jobs, "fleet.yaml")
    message = str(caught.value)
    assert message.startswith("fleet.yaml: these jobs wait for each other: ")
    for reason in ("b reads x, which a writes", "b is after c", "c is after a"):
        assert reason in message


def test_a_job_that_is_after_itself_is_a_cycle() -> None:
    """The shortest one."""
    with pytest.raises(ConfigurationError, match="a before a"):
        order_jobs([job("a", after=["a"])], "m")


@pytest.mark.parametrize(
    ("first", "second", "reason"),
    [
        ({"after": ["b"]}, {}, "a is after b"),
        ({"writes": ["x"]}, {"reads": ["x"]}, "b reads x, which a writes"),
    ],
)
def test_a_job_after_one_of_a_later_wave_is_refused(
    first: dict[str, Any], second: dict[str, Any], reason: str
) -> None:
    """It would wait for a wave that waits for its own."""
    with pytest.raises(ConfigurationError, match=f"job a is in wave 1, and b, .* wave 2 .{reason}"):
        order_jobs([job("a", **first), job("b", wave=2, **second)], "m")


@given(
    st.lists(
        st.tuples(
            st.integers(1, 3),
            st.sets(st.sampled_from(NAMES), max_size=2),
            st.sets(st.sampled_from("xyz"), max_size=1),
            st.sets(st.sampled_from("xyz"), max_size=1),
        ),
        min_size=1,
        max_size=len(NAMES),
    )
)
def test_every_order_obeys_all_conditions_or_is_refused(
    drawn: list[tuple[int, set[str], set[str], set[str]]],
) -> None:
    """Waves rise, and each job comes behind all that it is after: no job waits for a later one."""
    names = NAMES[: len(drawn)]
    jobs = [
        job(name, wave=wave, after=sorted(after & {*names}), reads=[*reads], writes=[*writes])
        for name, (wave, after, reads, writes) in zip(names, drawn, strict=True)
    ]
    try:
        ordered = order_jobs(jobs, "m")
    except ConfigurationError:
        return
    assert sorted(each.name for each in ordered) == [*names]
    places = {each.name: place for place, each in enumerate(ordered)}
    assert [each.wave for each in ordered] == sorted(each.wave for each in jobs)
    for each in ordered:
        assert all(places[name] < places[each.name] for name in each.after)
        for other in jobs:
            if other.name != each.name and {*each.writes} & {*other.reads}:
                assert places[other.name] < places[each.name]
