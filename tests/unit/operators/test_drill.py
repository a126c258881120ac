"""A whole drill, task by task, beside a job that runs."""

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.providers.common.compat.sdk import AirflowFailException, BaseOperator
from upath import UPath

from airflow_mm2_offsets.core import FailoverPlan
from airflow_mm2_offsets.core.brief import is_brief
from airflow_mm2_offsets.errors import NotReadyError
from airflow_mm2_offsets.moves.jobs import Home
from airflow_mm2_offsets.operators.check import CheckFailoverOperator
from airflow_mm2_offsets.operators.handover import TriggerTargetDagOperator
from airflow_mm2_offsets.sensors.checkpoint import SparkStartedSensor
from airflow_mm2_offsets.spark.drill import mark_drill
from airflow_mm2_offsets.task_groups.drill import STEPS
from tests.unit.dags.dags_folder import FOLDER, parse
from tests.unit.operators.clusters import Clusters
from tests.unit.operators.drills import OFFSETS, RUN, UNTIL_START, Drill
from tests.unit.operators.mover import WAITS, Mover
from tests.unit.operators.test_reconcile import Spark
from tests.unit.operators.worker import Worker


@pytest.fixture
def drill(worker: Worker, clusters: Clusters, tmp_path: Path) -> Drill:
    """A job that runs at its first home."""
    return Drill.beside(worker, clusters, tmp_path)


@pytest.fixture
def spark(monkeypatch: pytest.MonkeyPatch) -> Spark:
    """A Spark that compares nothing, and reports that both sides agree."""
    played = Spark()

    def execute(task: SparkSubmitOperator, context: object) -> None:
        played.run(task, context)

    monkeypatch.setattr(SparkSubmitOperator, "execute", execute)
    return played


def test_the_graph_is_a_line(drill: Drill) -> None:
    """The last two tasks run whatever has failed before."""
    edges = {task.task_id: task.downstream_task_ids for task in drill.dag.tasks}
    assert edges == {name: {after} for name, after in pairwise(STEPS)} | {"report": set()}
    rules = {task.task_id for task in drill.dag.tasks if task.trigger_rule == "all_done"}
    assert rules == {"tear_down", "report"}


def test_a_drill(drill: Drill, spark: Spark) -> None:
    """A copy starts from translated offsets, is compared and removed; the job is not touched."""
    before = drill.files()
    started = drill.run(*UNTIL_START)
    assert (started["dag_id"], started["run_id"]) == RUN
    assert drill.worker.triggered == {
        RUN: {"kafka_conn_id": "kafka_target", "folder": str(drill.folder), "drill": True}
    }
    fence = drill.copy.fence()
    assert fence is not None
    assert (fence.number, fence.starting_offsets, fence.topics) == (1, OFFSETS, "orders")
    drill.begin()
    assert drill.run("wait_started")["batch_id"] == 0
    drill.run("verify")
    request = spark.file_of("--request")
    assert f'"path": "{drill.folder}/output"' in request
    assert drill.files() == before
    ended = drill.run("tear_down")
    assert (ended["stopped"], ended["moved"]) == ("acknowledged", None)
    assert ended["removed"] > 5
    assert not drill.folder.parent.exists()
    drill.worker.states = dict.fromkeys([*STEPS][:-1], "success")
    report = drill.run("report")
    assert report["outcome"] == "drilled"
    assert report["status"]["numbers"] == {
        "refused": 0,
        "read_again_at_most": 0,
        "lost_at_most": 0,
        "seconds_to_first_batch": 3,
    }
    assert report["drill"] == ended
    assert report["verified"] == drill.worker.xcoms["verify", "return_value"]
    assert "A move to target" in report["next"][0]
    assert drill.files() == before
    assert drill.entries() == []


def test_a_drill_follows_the_job(drill: Drill) -> None:
    """Where the job lives at its second home by now, the copy starts at the first cluster."""
    mover = Mover(worker=drill.worker, folder=drill.root)
    mover.until_start(drill.source.folder)
    mover.run(TriggerTargetDagOperator)
    west = Path(drill.job.homes[1].folder)
    mover.begin(west, 9, 6, 3, 2)
    mover.run(SparkStartedSensor, **WAITS)
    drill.worker.run_id = "manual__2"
    started = drill.run("translate", "start_drill")
    assert (started["mm2_conn_id"], started["to"]) == ("mm2_default", "source")
    conf = drill.worker.triggered["orders_stream", started["run_id"]]
    assert conf["kafka_conn_id"] == "kafka_source"
    fence = drill.copy.fence()
    assert fence is not None
    assert fence.starting_offsets == '{"orders":{"0":4,"1":6,"2":3,"3":2}}'
    moved = drill.entries()
    assert drill.run("tear_down")["moved"] is None
    assert drill.entries() == moved


def test_a_plan_of_before_a_move_starts_nothing(drill: Drill) -> None:
    """Its offsets are of the other cluster."""
    drill.run("translate")
    made = FailoverPlan.from_json(drill.worker.xcoms["translate", "return_value"])
    plan = replace(made, created_at="2026-01-01T00:00:00+00:00").to_json()
    mover = Mover(worker=drill.worker, folder=drill.root)
    mover.until_start(drill.source.folder)
    mover.run(TriggerTargetDagOperator)
    mover.begin(Path(drill.job.homes[1].folder), 9, 6, 3, 2)
    mover.run(SparkStartedSensor, **WAITS)
    drill.worker.triggered.clear()
    drill.worker.xcoms["translate", "return_value"] = plan
    with pytest.raises(NotReadyError, match=r"the plan is of 2026-01-01T.*, before that"):
        drill.run("start_drill")
    assert drill.worker.triggered == {}


def test_a_long_plan(drill: Drill, monkeypatch: pytest.MonkeyPatch) -> None:
    """Plan and offsets lie in a folder of files, and the copy's fence has the offsets."""
    options = {"XCOM_MAX_BYTES": "1", "ARGUMENT_MAX_BYTES": "15"}
    for name, value in {**options, "XCOM_FOLDER": str(drill.root / "xcom")}.items():
        monkeypatch.setenv(f"AIRFLOW__MM2_OFFSETS__{name}", value)
    drill.run("translate", "start_drill")
    assert is_brief(drill.worker.xcoms["translate", "return_value"])
    assert drill.worker.xcoms["translate", "starting_offsets"].startswith(f"@{drill.root}/xcom/")
    drill.begin()
    assert drill.run("wait_started")["batch_id"] == 0


def test_a_home_with_another_name_in_spark(drill: Drill) -> None:
    """The copy gets its folder as Spark names it, beside the home's."""
    east, west = drill.job.homes
    spark = f"hdfs:///lake{drill.root}"
    drill.more["homes"] = (
        east,
        Home(cluster="target", folder=f"{drill.root}/drills/home", spark_folder=f"{spark}/home"),
    )
    assert west.cluster == "target"
    started = drill.run("translate", "start_drill")
    assert drill.worker.triggered[RUN]["folder"] == f"{spark}/orders"
    assert started["output"] == f"{spark}/orders/output"


def test_a_job_that_was_moved_meanwhile_is_named(drill: Drill) -> None:
    """The move is not held up, and the drill says that it is of where the job was before."""
    drill.run(*UNTIL_START)
    drill.begin()
    drill.move()
    before = drill.files()
    ended = drill.run("tear_down")
    assert "a move was begun, while the drill ran ('mm2_failover:manual__7'" in ended["moved"]
    assert not drill.folder.exists()
    assert drill.files() == before
    assert drill.source.requested_stop() == "mm2_failover:manual__7#1"
    drill.worker.states = {"tear_down": "success"}
    report = drill.run("report")
    assert report["outcome"] == "drilled"
    assert ended["moved"] in report["remarks"]


def test_a_drill_that_failed_says_that_a_move_would(drill: Drill) -> None:
    """The job runs on; the report names the task."""
    drill.run(*UNTIL_START)
    drill.run("tear_down")
    drill.worker.states = {"translate": "success", "wait_started": "failed"}
    with pytest.raises(AirflowFailException, match=r"failed in wait_started \(drill failed\)"):
        drill.run("report")
    report = drill.worker.xcoms["report", "return_value"]
    assert report["rollback"] is None
    assert "may fail, too" in report["next"][0]
    assert report["drill"]["stopped"] is None


def test_a_dry_run_says_what_a_drill_would_do(drill: Drill) -> None:
    """It marks nothing."""
    drill.run("translate")
    task = drill.task("start_drill")
    vars(task)["move"] = {**vars(task)["move"], "dry_run": True}
    assert drill.worker.run(task).state == "skipped"
    assert not drill.folder.exists()


@pytest.mark.parametrize("last", UNTIL_START)
@pytest.mark.parametrize("has_begun", [True, False], ids=["begun", "queued"])
def test_a_drill_that_ends_after_any_task_leaves_nothing(
    drill: Drill, last: str, *, has_begun: bool
) -> None:
    """It is torn down and reported; the next drill begins as if it had not been."""
    before = drill.files()
    drill.run(*UNTIL_START[: UNTIL_START.index(last) + 1])
    if last == "start_drill" and has_begun:
        drill.begin()
    drill.run("tear_down")
    drill.worker.states = {last: "failed"}
    with pytest.raises(AirflowFailException, match="drill failed"):
        drill.run("report")
    assert drill.files() == before
    assert not drill.folder.exists()
    drill.worker.run_id = "manual__2"
    drill.run(*UNTIL_START)


def test_no_job_is_moved_into_the_folder_of_a_drill(drill: Drill) -> None:
    """Its tear-down would remove the moved job's checkpoint."""
    mark_drill(UPath(drill.root / "target"), "mm2_drill:scheduled__1")
    mover = Mover(worker=drill.worker, folder=drill.root)
    with pytest.raises(NotReadyError, match=r"throw-away folder of the drill 'mm2_drill:sched"):
        mover.run(CheckFailoverOperator)
    assert drill.entries() == []


def test_the_example(drill: Drill, monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes the job by its name from the file of jobs, and its folder by a param."""
    drill.more = {"heartbeat_timeout": None}
    file = drill.root / "jobs.json"
    file.write_text(json.dumps({"jobs": [drill.job.to_json()]}))
    monkeypatch.setenv("AIRFLOW__MM2_OFFSETS__JOBS_FILE", str(file))
    bag = parse(FOLDER / "mm2_drill.py")
    assert bag.import_errors == {}
    dag = bag.dags["mm2_drill"]
    assert list(dag.task_ids) == list(STEPS)
    assert {name for name, param in dag.params.items() if not param.schema.get("section")} == {
        "job",
        "folder",
    }
    drill.worker.conf = {"folder": str(drill.folder), "options": {"give_up": 3}}
    for name in UNTIL_START:
        task = dag.get_task(name)
        assert isinstance(task, BaseOperator)
        drill.worker.run(task)
    assert drill.worker.triggered[RUN]["folder"] == str(drill.folder)
    drill.begin()
