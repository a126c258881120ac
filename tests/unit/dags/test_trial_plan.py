"""The check tries the plan with the very options that the translation makes it with."""

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import DAG, ParamValidationError
from airflow.providers.standard.operators.empty import EmptyOperator

from airflow_mm2_offsets.core import OnUnmapped, Strategy
from airflow_mm2_offsets.core.mode import FailoverMode
from airflow_mm2_offsets.errors import ConfigurationError, NotReadyError
from airflow_mm2_offsets.operators.plan_settings import PLAN_SETTINGS
from airflow_mm2_offsets.operators.translate import TranslateOffsetsOperator
from airflow_mm2_offsets.planning.options import PLAN_OPTIONS, PlanOptions
from airflow_mm2_offsets.planning.plan import plan_failover
from airflow_mm2_offsets.readiness import target as readiness_target
from airflow_mm2_offsets.task_groups import failover_tasks
from airflow_mm2_offsets.testing import Record
from tests.unit.dags.dags_folder import STEPS
from tests.unit.dags.failovers import MOVING, STARTING, Failover
from tests.unit.dags.ways_home import way_home
from tests.unit.operators.checks import check
from tests.unit.operators.clusters import RECORDS, Clusters, define
from tests.unit.operators.spark_job import Job
from tests.unit.operators.worker import Worker

GIVEN: dict[str, tuple[Any, Any]] = {
    "strategy": ("linear", Strategy.LINEAR),
    "read_source": (False, False),
    "sole_writer": (True, True),
    "changed_records": (True, True),
    "max_evidence_bytes": (4096, 4096),
    "on_unmapped": ("latest", OnUnmapped.LATEST),
    "unmapped_time": ("2026-11-21T09:10:00+00:00", None),
    "unmapped_margin": (7.0, 7.0),
    "give_up": (7, 7),
}
"""A value of each option other than its default, and what it is parsed to."""
MORE = [Record(b"key %d" % number, b"value") for number in range(10, 30)]
LOST = 10
"""How many of them MirrorMaker 2 passes over."""
Tried = Callable[[], PlanOptions]


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> Tried:
    """The options of the check's plan, which is made as ever."""
    found: list[PlanOptions] = []

    def plan(*args: Any, options: PlanOptions, **named: Any) -> object:
        found.append(options)
        return plan_failover(*args, options=options, **named)

    monkeypatch.setattr(readiness_target, "plan_failover", plan)
    return lambda: found[-1]


def _group(worker: Worker, source: Job, translate: dict[str, Any], **settings: Any) -> Failover:
    folder = source.folder.parent
    with DAG("mm2_failover", schedule=None) as dag:
        failover_tasks(
            prefix_group_id=False,
            source_folder=str(folder / "source"),
            target_folder=str(folder / "target"),
            stream_dag_id="orders_stream",
            arguments={"translate": translate},
            **settings,
        )
    return Failover(worker, dag, source)


@pytest.fixture
def copy(clusters: Clusters, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Job:
    """A job that has read up to 9, and an identical copy that has lost its first records."""
    clusters.target.delete_topic("orders")
    clusters.target.create_topic("orders", partitions=4)
    for partition in (0, 1):
        clusters.target.produce("orders", partition, RECORDS)
    clusters.target.delete_records("orders", 0, 2)
    extra = {"replication_policy": "identity", "mapping": "identity"}
    define(monkeypatch, "mm2_default", extra=extra)
    return Job(tmp_path / "source", 9, 0, 0, 0)


@pytest.mark.parametrize("name", PLAN_OPTIONS)
def test_each_option_reaches_the_check(
    worker: Worker, source: Job, tried: Tried, name: str
) -> None:
    """Whatever a user gives to ``translate`` counts for the trial before the stop, too."""
    value, parsed = GIVEN[name]
    run = _group(worker, source, {name: value})
    run.run("check")
    task = run.task("translate")
    assert isinstance(task, TranslateOffsetsOperator)
    expected = task.parse_settings()
    assert getattr(expected, name) == parsed or name == "unmapped_time"
    assert getattr(expected, name) != getattr(PlanOptions(), name)
    assert tried() == expected


def test_the_settings_are_those_of_the_translation() -> None:
    """A plan option that is added later must be an argument, and a template, of the task."""
    names = set(inspect.signature(TranslateOffsetsOperator).parameters)
    assert set(PLAN_SETTINGS) <= names & set(TranslateOffsetsOperator.template_fields)
    assert set(GIVEN) == set(PLAN_OPTIONS)


@pytest.mark.parametrize("word", [True, False])
def test_the_word_for_a_lost_source_begins_the_failover(
    worker: Worker, copy: Job, clusters: Clusters, *, word: bool
) -> None:
    """The target has deleted its first records: only the word helps, and the check knows it."""
    run = _group(worker, copy, {"sole_writer": word}, mode="disaster")
    vars(run.task("stop_source"))["heartbeat_timeout"] = 60
    clusters.source.is_running = False
    if not word:
        with pytest.raises(NotReadyError, match="nothing proves that the copy keeps offsets"):
            run.run("check")
        return
    for step in ("check", "stop_source", "read_positions", "translate"):
        run.run(step)
    assert run.worker.xcoms["translate", "starting_offsets"] == STARTING


@pytest.mark.parametrize("read_source", [True, False])
def test_a_copying_that_has_ended_for_good(
    worker: Worker, copy: Job, clusters: Clusters, *, read_source: bool
) -> None:
    """The source answers, and nothing is copied any more: the target's end is the answer."""
    clusters.truncate_target(7)
    told = {"sole_writer": True, "read_source": read_source}
    run = _group(worker, copy, told, mode="disaster")
    if read_source:
        with pytest.raises(NotReadyError, match="above the target's end 7"):
            run.run("check")
        return
    for step in ("check", "stop_source", "read_positions", "translate"):
        run.run(step)
    plan = run.worker.xcoms["translate", "return_value"]
    assert plan["partitions"][0]["target"] == "7"


@pytest.mark.parametrize("on_unmapped", ["fail", "earliest", "latest", "timestamp"])
def test_partitions_without_an_answer_may_start_where_the_user_says(
    worker: Worker, clusters: Clusters, tmp_path: Path, on_unmapped: str
) -> None:
    """One has records and no offset sync: ``on_unmapped`` counts before the stop, too."""
    assert clusters
    told = {"on_unmapped": on_unmapped, "unmapped_time": "2026-11-21T09:10:00+00:00"}
    run = _group(worker, Job(tmp_path / "source", 4, 0, 0, 0), told, mode="disaster")
    if on_unmapped == "fail":
        with pytest.raises(NotReadyError, match=r"orders\[1\]"):
            run.run("check")
        return
    run.run("check")
    checks = run.worker.xcoms["check", "return_value"]["checks"]
    (said,) = [each["value"] for each in checks if each["name"] == "translation"]
    assert said.startswith("4 topic-partitions have an answer, 1 of them by on_unmapped")


def test_options_may_be_templates(worker: Worker, source: Job, tried: Tried) -> None:
    """Of the run's conf, and of a task that has ended before the check; later ones are unknown."""
    earlier = "{{ ti.xcom_pull(task_ids='find')['margin'] }}"
    later = "{{ ti.xcom_pull(task_ids='not_yet')['bytes'] }}"
    told = {
        "sole_writer": "{{ dag_run.conf.word }}",
        "unmapped_margin": earlier,
        "max_evidence_bytes": later,
    }
    run = _group(worker, source, told)
    find = EmptyOperator(task_id="find", dag=run.dag)
    find.set_downstream(run.task("check"))
    worker.conf = {"word": True}
    worker.xcoms["find", "return_value"] = {"margin": 7}
    run.run("check")
    options = tried()
    assert (options.sole_writer, options.unmapped_margin) == (True, 7.0)
    assert options.max_evidence_bytes == PlanOptions().max_evidence_bytes


def test_the_groups_own_setting_reaches_the_check(
    worker: Worker, source: Job, tried: Tried
) -> None:
    """``changed_records`` of the group; the translation's argument counts before it."""
    _group(worker, source, {}, changed_records=True).run("check")
    assert tried().changed_records
    _group(worker, source, {"changed_records": False}, changed_records=True).run("check")
    assert not tried().changed_records


@pytest.mark.parametrize("form", ["mapping", "json"])
@pytest.mark.usefixtures("source")
def test_a_check_without_a_group_takes_them_itself(
    worker: Worker, source: Job, tried: Tried, form: str
) -> None:
    """As a mapping or as JSON, which a param gives; ``changed_records`` is as it was."""
    options: Any = {"sole_writer": True} if form == "mapping" else '{"sole_writer": true}'
    worker.run(check(source, plan_options=options, changed_records="True"))
    assert (tried().sole_writer, tried().changed_records) == (True, True)
    worker.run(check(source, plan_options={"changed_records": False}, changed_records=True))
    assert not tried().changed_records


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"sole_writers": True}, r"task check: plan_options is \{'sole_writers': True\}; give a"),
        ("[]", r"task check: plan_options is '\[\]'; give a mapping, or JSON"),
        ({"strategy": "fast"}, "strategy: 'fast' is not one of safe"),
        ({"skip_damaged": "perhaps"}, "skip_damaged is 'perhaps'; give True or False"),
    ],
)
def test_wrong_options_are_refused(
    worker: Worker, source: Job, options: object, problem: str
) -> None:
    """With the name that is wrong, and the value."""
    with pytest.raises(ConfigurationError, match=problem):
        worker.run(check(source, plan_options=options))


@pytest.fixture
def back(run: Failover, clusters: Clusters) -> Failover:
    """The way home of a job that was moved by an earlier run."""
    for partition in (2, 3):
        clusters.source.produce("orders", partition, RECORDS)
    for each in MOVING:
        run.run(each)
    return way_home(run.worker, run, "manual__2")


def test_the_first_plan_counts_on_the_way_home(back: Failover, tried: Tried) -> None:
    """The one that the fence at home names: without it, more would be refused before the stop."""
    back.run("check")
    first = tried().first_plan
    assert first is not None
    assert first.run_id == "manual__1"


def test_a_first_plan_that_can_t_be_used_is_found_before_the_stop(back: Failover) -> None:
    """The translation would fail by it, with the job stopped."""
    (plan,) = back.target.parent.glob("target/plans/manual__1.json")
    plan.write_text("{}")
    with pytest.raises(NotReadyError, match="is not a usable plan"):
        back.run("check")
    assert STEPS[0] == "check"
    assert back.source.requested_stop() is None


@pytest.fixture
def passed_over(run: Failover, clusters: Clusters) -> Failover:
    """MirrorMaker 2 has copied the records up to 9, and those from 20 on."""
    clusters.source.produce("orders", 0, MORE)
    clusters.target.produce("orders", 0, MORE[LOST:])
    clusters.sync(20, 15)
    clusters.sync(29, 24)
    run.source.beat(1, bootstrap_servers=["source:9092"])  # A drill wants it.
    return run


@pytest.mark.parametrize("mode", [each for each in FailoverMode if each != FailoverMode.FAILBACK])
def test_the_form_gives_up_what_was_never_copied(passed_over: Failover, mode: str) -> None:
    """The number that the refusal names is a param: one fewer is refused before the stop."""
    run = passed_over
    conf = {**run.worker.conf, "mode": mode}
    for too_few in ({}, {"give_up": LOST - 1}):
        run.worker.conf = {**conf, **too_few}
        with pytest.raises(NotReadyError, match=f"give_up={LOST}"):
            run.run("check")
    run.worker.conf = {**conf, "give_up": LOST}
    is_drill = mode == FailoverMode.DRILL
    for step in ("check", *(() if is_drill else ("stop_source",)), "read_positions", "translate"):
        run.run(step)
    assert run.worker.xcoms["translate", "return_value"]["totals"]["given_up"] == LOST


def test_the_form_gives_up_on_the_way_home(back: Failover, tried: Tried) -> None:
    """The failback's trial plan has the number, too."""
    back.worker.conf = {**back.worker.conf, "give_up": LOST}
    back.run("check")
    assert tried().give_up == LOST


@pytest.mark.parametrize("number", [-1, 1.5, "many", None])
def test_the_form_refuses_what_is_no_number_of_records(run: Failover, number: object) -> None:
    """Nothing is stopped."""
    run.worker.conf = {**run.worker.conf, "give_up": number}
    with pytest.raises(ParamValidationError, match="for param give_up"):
        run.run("check")
    assert run.source.requested_stop() is None
