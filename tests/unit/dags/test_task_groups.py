"""``failover_tasks`` in a user's own DAG."""

from datetime import timedelta
from pathlib import Path

import pytest
from airflow.providers.common.compat.sdk import DAG, AirflowFailException, BaseOperator
from airflow.providers.standard.operators.empty import EmptyOperator
from upath import UPath

from airflow_mm2_offsets.errors import ConfigurationError, NotReadyError
from airflow_mm2_offsets.operators.reconcile import ReconcileOperator
from airflow_mm2_offsets.spark.drill import mark_drill
from airflow_mm2_offsets.spark.fence import read_fence
from airflow_mm2_offsets.task_groups import failover_tasks
from tests.unit.dags.dags_folder import templated_reads
from tests.unit.dags.failovers import MOVING, STARTING, Failover
from tests.unit.operators.clusters import Clusters
from tests.unit.operators.spark_job import Job
from tests.unit.operators.worker import Worker

NAMES = ("orders", "refunds")


def _two_groups(folder: Path, sources: tuple[str, str] = NAMES) -> DAG:
    """A DAG that moves two jobs, one after the other."""
    with DAG("evacuate", schedule=None, default_args={"retries": 7}) as dag:
        first, second = (
            failover_tasks(
                group_id=name,
                source_folder=str(folder / source),
                target_folder=str(folder / f"{name}-target"),
                stream_dag_id="orders_stream",
                arguments={"stop_source": {"timeout": 60.0}},
                default_args={"owner": name},
            )
            for name, source in zip(NAMES, sources, strict=True)
        )
        EmptyOperator(task_id="begin") >> first >> second >> EmptyOperator(task_id="end")
    return dag


def _failovers(worker: Worker, dag: DAG, folder: Path) -> list[Failover]:
    jobs = {name: Job(folder / name, 4, 0, 0, 0) for name in NAMES}
    return [
        Failover(worker, dag, job, f"{name}-target", prefix=f"{name}.")
        for name, job in jobs.items()
    ]


def test_two_jobs_are_moved_by_two_groups_of_one_dag(
    worker: Worker, clusters: Clusters, tmp_path: Path
) -> None:
    """Each group has its own XComs, fence, plan and target run."""
    clusters.copy_the_rest()
    for failover in _failovers(worker, _two_groups(tmp_path), tmp_path):
        for step in MOVING:
            failover.run(step)
        assert worker.xcoms[f"{failover.prefix}report", "return_value"]["plan"]
    assert worker.triggered == {
        ("orders_stream", f"evacuate__manual__1__{name}"): {
            "kafka_conn_id": "kafka_target",
            "topic": "orders",
            "folder": str(tmp_path / f"{name}-target"),
            "starting_offsets": STARTING,
        }
        for name in NAMES
    }
    for name in NAMES:
        fence = read_fence(str(tmp_path / name / "control"))
        assert fence is not None
        assert fence.request_id == f"evacuate:manual__1:{name}"


def test_two_groups_do_not_move_one_job_twice(
    worker: Worker, clusters: Clusters, tmp_path: Path
) -> None:
    """The second group, given the first one's folder by mistake, finds that job moved."""
    clusters.copy_the_rest()
    first, second = _failovers(worker, _two_groups(tmp_path, ("orders", "orders")), tmp_path)
    for step in MOVING:
        first.run(step)
    with pytest.raises(NotReadyError, match=r"was moved to .* by 'evacuate:manual__1:orders'"):
        second.run("check")


def test_a_group_fits_into_a_dag(tmp_path: Path) -> None:
    """Task ids have the group's prefix; its own defaults count before the DAG's."""
    dag = _two_groups(tmp_path)
    assert set(dag.task_ids) == {
        *("begin", "end"),
        *(f"{name}.{step}" for name in NAMES for step in (*MOVING, "roll_back")),
    }
    stop = dag.get_task("refunds.stop_source")
    assert (stop.retries, stop.retry_delay, stop.owner) == (2, timedelta(seconds=30), "refunds")
    assert vars(stop)["timeout"] == 60.0
    assert dag.get_task("refunds.check").upstream_task_ids == {"orders.report"}
    assert dag.get_task("end").upstream_task_ids == {"refunds.report"}


def test_each_task_of_a_group_waits_itself_for_what_it_reads() -> None:
    """Cleared together with a task whose XCom it reads, it does not run before that one has."""
    with DAG("evacuate", schedule=None) as dag:
        failover_tasks(source_folder="/a", target_folder="/b", stream_dag_id="s", verify=True)
    read = templated_reads(dag)
    assert read["failover.verify"] == {"failover.wait_started"}
    assert read["failover.submit_target"] == {"failover.translate"}
    for task_id, names in read.items():
        assert names <= dag.get_task(task_id).upstream_task_ids


@pytest.mark.parametrize("default", [True, False])
@pytest.mark.parametrize("deferrable", [True, False, None])
def test_a_group_says_where_its_waits_are(
    monkeypatch: pytest.MonkeyPatch,
    deferrable: bool | None,  # noqa: FBT001
    default: bool,  # noqa: FBT001
) -> None:
    """None leaves it to Airflow, and an argument of one task counts before that of the group."""
    monkeypatch.setenv("AIRFLOW__OPERATORS__DEFAULT_DEFERRABLE", str(default))
    with DAG("evacuate", schedule=None) as dag:
        failover_tasks(
            source_folder="/a",
            target_folder="/b",
            stream_dag_id="s",
            deferrable=deferrable,
            arguments={"wait_started": {"deferrable": not deferrable}},
        )
    expected = default if deferrable is None else deferrable
    waits = {
        task_id: vars(dag.get_task(f"failover.{task_id}"))["deferrable"]
        for task_id in ("stop_source", "wait_replicated", "wait_started")
    }
    assert waits == {
        "stop_source": expected,
        "wait_replicated": expected,
        "wait_started": not deferrable,
    }


def test_arguments_for_a_task_that_is_not_there_are_refused() -> None:
    """A misspelt task id would leave its arguments out in silence."""
    with (
        DAG("evacuate", schedule=None),
        pytest.raises(ConfigurationError, match="names stop; name one of check, stop_source"),
    ):
        failover_tasks(
            source_folder="/a",
            target_folder="/b",
            stream_dag_id="s",
            arguments={"stop": {"kill_after": 60}},
        )


@pytest.mark.parametrize(("answer", "outcome"), [("False", "skipped"), ("perhaps", None)])
def test_a_template_says_whether_to_verify(
    worker: Worker, answer: str, outcome: str | None
) -> None:
    """What it renders as must be True or False."""
    worker.conf = {"answer": answer}
    worker.xcoms["failover.translate", "return_value"] = {}
    worker.xcoms["failover.wait_started", "return_value"] = {"positions": STARTING}
    with DAG("evacuate", schedule=None) as dag:
        failover_tasks(
            source_folder="/a",
            target_folder="/b",
            stream_dag_id="s",
            verify="{{ dag_run.conf.answer }}",
        )
    verify = dag.get_task("failover.verify")
    assert isinstance(verify, ReconcileOperator)
    if outcome:
        assert worker.run(verify).state == outcome
        return
    with pytest.raises(ConfigurationError, match="verify is 'perhaps'") as caught:
        worker.run(verify)
    assert isinstance(caught.value, AirflowFailException)


@pytest.mark.parametrize("output", [None, "lake"])
def test_the_check_looks_at_the_output_that_the_job_is_given(
    worker: Worker, source: Job, output: str | None
) -> None:
    """An output with batches of another run would be overwritten from batch 0 on."""
    root = source.folder.parent
    with DAG("evacuate", schedule=None) as dag:
        failover_tasks(
            prefix_group_id=False,
            source_folder=str(source.folder),
            target_folder=str(root / "target"),
            target_output=output and str(root / output),
            stream_dag_id="orders_stream",
        )
    (root / (output or "target/output") / "batch_id=0").mkdir(parents=True)
    check = dag.get_task("check")
    assert isinstance(check, BaseOperator)
    with pytest.raises(NotReadyError, match=r"batch_id=0.*it would overwrite them one by one"):
        worker.run(check)
    assert source.requested_stop() is None


def test_a_drill_may_find_the_output_of_the_drill_before(worker: Worker, source: Job) -> None:
    """Its start removes what was left in its folder."""
    source.beat(1, bootstrap_servers=["source:9092"])
    folder = source.folder.parent / "drill"
    mark_drill(UPath(folder), "evacuate:before")
    (folder / "output" / "batch_id=0").mkdir(parents=True)
    with DAG("evacuate", schedule=None) as dag:
        failover_tasks(
            mode="drill",
            prefix_group_id=False,
            source_folder=str(source.folder),
            target_folder=str(folder),
            stream_dag_id="orders_stream",
        )
    check = dag.get_task("check")
    assert isinstance(check, BaseOperator)
    worker.run(check)
    assert worker.xcoms["check", "return_value"]["totals"]["failed"] == 0
