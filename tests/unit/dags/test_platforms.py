"""``failover_tasks`` with a user's own operators that cancel and submit the job."""

import json
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import DAG, AirflowSkipException, BaseOperator
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.providers.standard.operators.python import PythonOperator
from upath import UPath

from airflow_mm2_offsets.errors import (
    ConfigurationError,
    HandoverError,
    LockedError,
    NotReadyError,
    PlanError,
    StopError,
)
from airflow_mm2_offsets.spark.claim import claim_target, read_claim
from airflow_mm2_offsets.spark.fence import mark_moved, new_fence
from airflow_mm2_offsets.spark.lock import LockPlaces, acquire_lock, new_lock
from airflow_mm2_offsets.spark.offsets_file import read_offsets
from airflow_mm2_offsets.spark.stopping import begin_stop, forget_stop
from airflow_mm2_offsets.spark.submission import note_submission, submission_file, submitted_by
from airflow_mm2_offsets.task_groups import failover_tasks, from_hand_over
from tests.unit.dags.failovers import STARTING, Failover
from tests.unit.operators.spark_job import Job
from tests.unit.operators.worker import Worker
from tests.unit.spark import checkpoints

STOP = "evacuate:manual__1:failover"
BEFORE = ("check", "cancel_source", "stop_source", "read_positions", "wait_replicated")
HANDED = ("translate", "forecast", "approve", "hand_over")


class Own(Failover):
    """A run of a group with operators of the user's own."""

    def __init__(self, worker: Worker, source: Job, **settings: Any) -> None:
        self.cancelled: list[str] = []
        self.submitted: list[tuple[str, str]] = []
        self.when_cancelled: Callable[[], object] = lambda: None
        target = source.folder.parent / "target"
        with DAG("evacuate", schedule=None) as dag:
            failover_tasks(
                source_folder=str(source.folder),
                target_folder=str(target),
                stop=partial(
                    PythonOperator, python_callable=self._cancel, op_kwargs={"job": "{{ run_id }}"}
                ),
                submit=partial(
                    PythonOperator,
                    python_callable=lambda offsets, token: self.submitted.append((offsets, token)),
                    op_args=[from_hand_over("starting_offsets"), from_hand_over("token")],
                ),
                **{"dry_run": "{{ dag_run.conf.get('dry_run', False) }}", **settings},
            )
        super().__init__(worker, dag, source, prefix="failover.")
        vars(self.task("stop_source")).update(poke_interval=0.02, quiet_period=0.05)
        self.target_checkpoint = UPath(target) / "checkpoint"

    def _cancel(self, job: str) -> None:
        self.cancelled.append(job)
        self.when_cancelled()

    def play(self, task_id: str) -> None:
        if task_id == "wait_started":
            super().play(task_id)

    def run_all(self, *task_ids: str) -> None:
        for each in task_ids:
            self.run(each)


@pytest.fixture
def own(worker: Worker, source: Job) -> Own:
    return Own(worker, source)


def test_the_hand_over_marks_and_the_own_operator_starts(own: Own) -> None:
    """The submit gets the plan's offsets as they are, and no DAG is triggered."""
    own.run_all(*BEFORE, *HANDED)
    assert own.submitted == []
    assert read_claim(own.target_checkpoint) == STOP
    own.run_all("submit_target", "wait_started", "report")
    ((offsets, token),) = own.submitted
    assert offsets == STARTING
    assert token == own.worker.xcoms["failover.hand_over", "token"]
    assert len(token) == 36
    assert own.cancelled == ["manual__1"]
    assert not own.worker.triggered


def test_long_offsets_are_submitted_as_a_file(own: Own, monkeypatch: pytest.MonkeyPatch) -> None:
    """The submit gets the file that the translation has written; wrong options move no job."""
    option = "AIRFLOW__MM2_OFFSETS__ARGUMENT_MAX_BYTES"
    monkeypatch.setenv(option, "10")
    own.run_all(*BEFORE, *HANDED[:-1])
    monkeypatch.setenv(option, "1 kB")
    with pytest.raises(ConfigurationError, match="argument_max_bytes is '1 kB'"):
        own.run("hand_over")
    assert read_claim(own.target_checkpoint) is None
    monkeypatch.setenv(option, "10")
    own.run_all("hand_over", "submit_target")
    ((offsets, _),) = own.submitted
    assert offsets == own.worker.xcoms["failover.translate", "starting_offsets"]
    assert read_offsets(offsets, UPath) == STARTING


def test_offsets_that_can_not_be_written_move_no_job(
    own: Own, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is written before the mark: the failover can still be rolled back."""
    own.run_all(*BEFORE, *HANDED[:-1])
    monkeypatch.setenv("AIRFLOW__MM2_OFFSETS__ARGUMENT_MAX_BYTES", "10")

    def refuse(*_: object) -> str:
        raise PlanError("the storage refuses")

    monkeypatch.setattr("airflow_mm2_offsets.operators.long_results.write_offsets", refuse)
    with pytest.raises(PlanError, match="the storage refuses"):
        own.run("hand_over")
    assert read_claim(own.target_checkpoint) is None
    own.worker.states = {"failover.stop_source": "success"}
    own.run("roll_back")
    assert own.worker.xcoms["failover.roll_back", "return_value"]["done"] == "rolled_back"


def test_topics_that_no_argument_takes_move_no_job(
    own: Own, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The platform would refuse them after the mark; a job with a pattern needs no list."""
    own.run_all(*BEFORE, *HANDED[:-1])
    monkeypatch.setenv("AIRFLOW__MM2_OFFSETS__ARGUMENT_MAX_BYTES", "5")
    with pytest.raises(NotReadyError, match=r"nothing was started.*the list of the 1 topics on"):
        own.run("hand_over")
    assert read_claim(own.target_checkpoint) is None
    vars(own.task("hand_over"))["subscribe_pattern"] = "^orders$"
    own.run_all("hand_over", "submit_target")
    assert len(own.submitted) == 1


@pytest.mark.parametrize("absent", ["starting_offsets", "topic", "token"])
def test_nothing_is_submitted_without_what_the_hand_over_gives(own: Own, absent: str) -> None:
    """It lost its worker after the mark and was marked as success: None would be submitted."""
    own.run_all(*BEFORE, *HANDED)
    del own.worker.xcoms["failover.hand_over", absent]
    with pytest.raises(HandoverError, match=rf"failover\.hand_over has left no {absent} for"):
        own.run("submit_target")
    assert own.submitted == []
    assert submitted_by(own.target_checkpoint, STOP) is None
    own.run_all("hand_over", "submit_target")
    assert [offsets for offsets, _ in own.submitted] == [STARTING]


def test_a_job_that_came_back_before_the_hand_over_is_not_moved(own: Own) -> None:
    """A platform restarts the driver after the proof: the checkpoint is compared again."""
    own.run_all(*BEFORE, *HANDED[:-1])
    own.source.commit(1, 5, 0, 0, 0)
    with pytest.raises(HandoverError, match="was written to since its stop was proved"):
        own.run("hand_over")
    assert read_claim(own.target_checkpoint) is None


def test_a_job_that_came_back_before_the_submit_is_not_joined_by_another(own: Own) -> None:
    """Hours may lie between the hand-over and a submit that is cleared."""
    own.run_all(*BEFORE, *HANDED)
    own.source.commit(1, 5, 0, 0, 0)
    with pytest.raises(HandoverError, match=r"nothing was submitted by this try: .* written to"):
        own.run("submit_target")
    assert own.submitted == []


def test_a_second_try_submits_nothing_unless_the_platform_knows_the_first(own: Own) -> None:
    """The first try's worker may have died after the platform had taken the job."""
    own.run_all(*BEFORE, *HANDED, "submit_target")
    with pytest.raises(HandoverError, match="an earlier try of this task may have submitted"):
        own.run("submit_target")
    assert len(own.submitted) == 1
    submission_file(own.target_checkpoint, STOP).unlink()
    own.run("submit_target")
    assert len(own.submitted) == 2
    assert own.task("submit_target").retries == 0


def test_a_platform_with_a_token_is_asked_again(worker: Worker, source: Job) -> None:
    """By the same token; once the job has begun, it is not."""
    own = Own(worker, source, submit_is_idempotent=True)
    own.run_all(*BEFORE, *HANDED, "submit_target", "hand_over", "submit_target")
    assert len(own.submitted) == 2
    assert len(set(own.submitted)) == 1
    own.run_all("wait_started", "hand_over", "submit_target")
    assert len(own.submitted) == 2
    assert own.task("submit_target").retries == 2


class Fenced(Failover):
    """A run that has handed over a job with a control location; its own operator submits it."""

    def __init__(self, worker: Worker, source: Job, mode: str = "planned") -> None:
        self.submitted: list[str] = []
        target = source.folder.parent / "target"
        with DAG("evacuate", schedule=None) as dag:
            failover_tasks(
                source_folder=str(source.folder),
                target_folder=str(target),
                mode=mode,
                submit=partial(
                    PythonOperator, python_callable=lambda: self.submitted.append("job")
                ),
            )
        super().__init__(worker, dag, source, prefix="failover.")
        begin_stop(str(source.control), new_fence(STOP, str(target)))
        source.acknowledge()
        claim_target(UPath(target) / "checkpoint", STOP)
        mark_moved(str(source.control), STOP, str(target))
        for name in ("starting_offsets", "topic", "token"):
            worker.xcoms["failover.hand_over", name] = "handed over"


@pytest.mark.parametrize("other", [None, "another:1"])
def test_a_job_whose_fence_was_lifted_is_not_submitted(
    worker: Worker, source: Job, other: str | None
) -> None:
    """A user has given up and started the job on the source; another run may fence it since."""
    run = Fenced(worker, source)
    forget_stop(str(source.control), STOP)
    if other:
        source.beat(1, run_id="r2")
        begin_stop(str(source.control), new_fence(other, "/elsewhere"))
    with pytest.raises(HandoverError, match="was lifted since the hand-over, so the job may run"):
        run.run("submit_target")
    assert run.submitted == []


@pytest.mark.parametrize("mode", ["disaster", "planned"])
def test_a_claim_alone_submits_where_the_fence_is_lost(
    worker: Worker, source: Job, mode: str
) -> None:
    """In a disaster, as long as the storage is away; a planned failover waits for it."""
    run = Fenced(worker, source, mode)
    (source.control / "fence.json").write_text("{")
    with pytest.raises(StopError):
        run.run("submit_target")
    source.folder.rename(source.folder.with_name("lost"))
    if mode == "planned":
        with pytest.raises(HandoverError, match="was lifted since the hand-over"):
            run.run("submit_target")
    else:
        run.run("submit_target")
    assert run.submitted == (["job"] if mode == "disaster" else [])


def test_a_fenced_job_is_submitted(worker: Worker, source: Job) -> None:
    """The fence says moved, or a claim says that no fence could be marked."""
    run = Fenced(worker, source)
    run.run("submit_target")
    assert run.submitted == ["job"]
    submission_file(UPath(run.target) / "checkpoint", STOP).unlink()
    forget_stop(str(source.control), STOP)
    claim_target(UPath(run.target) / "checkpoint", STOP, has_fence=False)
    run.run("submit_target")
    assert len(run.submitted) == 2


@pytest.mark.parametrize("task_id", ["submit_target", "hand_over"])
def test_a_success_by_hand_hands_nothing_over(own: Own, task_id: str) -> None:
    """Neither that of the cancel, nor that of the hand-over."""
    own.run("check")
    if task_id == "hand_over":
        with pytest.raises(Exception, match="no task has cancelled the job in this run"):
            own.run("stop_source")
        return
    own.run_all("read_positions", "wait_replicated", *HANDED[:-1])
    with pytest.raises(HandoverError, match="has not handed the job over"):
        own.run("submit_target")
    assert own.submitted == []


def test_a_run_that_was_rolled_back_hands_over_after_another_cancel_only(own: Own) -> None:
    """The job may run again since the roll-back, and be idle."""
    own.run_all(*BEFORE)
    own.worker.states = {"failover.stop_source": "success"}
    own.run("roll_back")
    answer = own.worker.xcoms["failover.roll_back", "return_value"]
    assert answer["done"] == "rolled_back"
    assert "start it on its platform with its checkpoint" in answer["next"]
    own.run_all("stop_source", "read_positions", "wait_replicated", *HANDED[:-1])
    with pytest.raises(HandoverError, match="does not hold the lock any more"):
        own.run("hand_over")
    own.run_all(*BEFORE[1:], *HANDED, "submit_target")
    assert len(own.submitted) == 1


def test_a_cleared_wait_needs_another_cancel_of_a_job_that_has_run(own: Own) -> None:
    """The cancel's XCom stays, and the driver that was started since it may be idle."""
    own.run_all("cancel_source", "stop_source")
    then = own.worker.xcoms["failover.cancel_source", "cancelled_at"]
    metadata = json.dumps({"batchTimestampMs": int((then + 1) * 1000)})
    batch = checkpoints.batch(checkpoints.orders(4, 0, 0, 0), metadata=metadata)
    checkpoints.write(own.source.checkpoint, {"offsets/0": batch})
    # The trigger's error, as Airflow shows it.
    with pytest.raises(Exception, match=r"clear the task that cancels \(cancel_source\)"):
        own.run("stop_source")


def test_a_job_that_another_run_works_on_is_not_cancelled(own: Own) -> None:
    """The lock is taken before the platform is called."""
    places = LockPlaces(source=UPath(own.source.checkpoint), target=None)
    acquire_lock(places, new_lock("another:1", "planned"))
    with pytest.raises(LockedError, match="another:1"):
        own.run("cancel_source")
    assert own.cancelled == []


def test_a_run_that_has_moved_the_job_cancels_nothing(own: Own) -> None:
    """Cleared later, when the job has come home under its old name."""
    own.run_all(*BEFORE, *HANDED, "submit_target", "wait_started")
    with pytest.raises(HandoverError, match=r"has handed the job over before.* nothing was cancel"):
        own.run("cancel_source")
    assert own.cancelled == ["manual__1"]


def test_a_deferred_submit_goes_on(own: Own) -> None:
    """Airflow calls the gate again when the task's wait is over: it is the same try."""
    own.run_all(*BEFORE, *HANDED, "submit_target")
    gate: Any = vars(own.task("submit_target"))["_pre_execute_hook"]
    own.run("wait_started")
    instance = SimpleNamespace(id=own.worker.try_id)
    note_submission(own.target_checkpoint, STOP, str(instance.id))
    context = {"task": own.task("submit_target"), "dag": own.dag, "run_id": "manual__1"}
    gate.then({**context, "ti": instance})
    with pytest.raises(AirflowSkipException, match="the target job has begun"):
        gate.then({**context, "ti": SimpleNamespace(id="another")})


def test_a_source_that_is_gone_is_not_cancelled(worker: Worker, source: Job) -> None:
    """By the user's word; nothing answers there."""
    own = Own(worker, source, mode="disaster", source_is_gone=True)
    source.folder.rename(source.folder.with_name("lost"))
    message = worker.run(own.task("cancel_source"))
    assert message.state == "skipped"
    own.run("stop_source")
    assert worker.xcoms["failover.stop_source", "return_value"]["proof"] == "asserted"
    assert own.cancelled == []


def test_a_restart_is_refused_before_anything_is_stopped(worker: Worker, source: Job) -> None:
    """No DAG runs the job, so nothing could restart it."""
    own = Own(worker, source, arguments={"roll_back": {"on_failure": "restart"}})
    with pytest.raises(ConfigurationError, match="on_failure is restart, and no DAG runs the job"):
        own.run("check")


def test_a_drill_is_refused_before_anything_is_started(worker: Worker, source: Job) -> None:
    """It starts the job's DAG beside the job, and ends it through its control location."""
    own = Own(worker, source, mode="{{ dag_run.conf.mode }}")
    worker.conf = {**worker.conf, "mode": "drill"}
    with pytest.raises(ConfigurationError, match="mode is drill, and these tasks carry out"):
        own.run("check")
    assert "failover.start_drill" not in own.dag.task_ids


def _mapped(**arguments: Any) -> Any:  # noqa: ANN401 - no operator
    return PythonOperator.partial(python_callable=print, **arguments).expand(op_args=[[1], [2]])


@pytest.mark.parametrize(
    ("factory", "message"),
    [
        (lambda **_: None, "made NoneType, and no operator"),
        (_mapped, "made MappedOperator, and no operator"),
        (lambda **_: EmptyOperator(task_id="mine"), "made the task 'failover.mine', and not"),
        (
            lambda task_id, **_: EmptyOperator(task_id=task_id),
            "without pre_execute, which decides whether",
        ),
        (
            lambda trigger_rule, **rest: EmptyOperator(trigger_rule="always", **rest),  # noqa: ARG005
            "with the trigger rule always, and not none_failed",
        ),
    ],
)
def test_a_factory_hands_on_what_it_is_given(
    factory: Callable[..., BaseOperator], message: str
) -> None:
    """Without the gate, its operator would run in a dry run."""
    with DAG("evacuate", schedule=None), pytest.raises(ConfigurationError, match=message):
        failover_tasks(source_folder="/a", target_folder="/b", submit=factory)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "stream_dag_id or submit: neither is given; give one"),
        ({"stream_dag_id": "s", "submit": EmptyOperator}, "submit: both are given; give one"),
        ({"submit": EmptyOperator, "mode": "drill"}, "mode is drill, and stop or submit is given"),
        ({"stream_dag_id": "s", "arguments": {"cancel_source": {}}}, "arguments names cancel_sou"),
    ],
)
def test_a_group_starts_the_job_in_one_way(settings: dict[str, Any], message: str) -> None:
    """What is given says how."""
    with DAG("evacuate", schedule=None), pytest.raises(ConfigurationError, match=message):
        failover_tasks(source_folder="/a", target_folder="/b", **settings)


@pytest.mark.parametrize(
    ("given", "added", "absent"),
    [
        ({"stop": EmptyOperator, "stream_dag_id": "s"}, {"cancel_source"}, {"hand_over"}),
        ({"submit": EmptyOperator}, {"hand_over"}, {"cancel_source"}),
    ],
)
def test_either_may_be_given_alone(
    given: dict[str, Any], added: set[str], absent: set[str]
) -> None:
    """A job that is asked to stop may be submitted, and one that is cancelled have a DAG."""
    with DAG("evacuate", schedule=None) as dag:
        failover_tasks(source_folder="/a", target_folder="/b", prefix_group_id=False, **given)
    assert added <= set(dag.task_ids)
    assert not absent & set(dag.task_ids)
    assert {"stop_source", "submit_target", "roll_back", "report"} <= set(dag.task_ids)
    assert vars(dag.get_task("roll_back"))["stop_task_id"] == "stop_source"


def test_a_dag_with_native_templates_is_refused() -> None:
    """The platform would be given a dict in place of Spark's JSON text."""
    dag = DAG("evacuate", schedule=None, render_template_as_native_obj=True)
    with dag, pytest.raises(ConfigurationError, match="the offsets that submit pulls would be a"):
        failover_tasks(source_folder="/a", target_folder="/b", submit=EmptyOperator)


def test_arguments_do_not_replace_the_gate() -> None:
    """The operator would run in a dry run."""
    with DAG("evacuate", schedule=None) as dag:
        failover_tasks(
            source_folder="/a",
            target_folder="/b",
            submit=EmptyOperator,
            arguments={"submit_target": {"pre_execute": print, "owner": "me", "retries": 5}},
        )
    submit = dag.get_task("failover.submit_target")
    assert vars(submit)["_pre_execute_hook"] is not print
    assert (submit.owner, submit.retries) == ("me", 5)


def test_an_unknown_value_of_the_hand_over_is_refused() -> None:
    """A misspelt one would be None when the job is submitted."""
    with pytest.raises(ConfigurationError, match="gives no 'offsets' to submit; name one of"):
        from_hand_over("offsets")


def test_a_skip_is_no_failure_of_a_gate(own: Own) -> None:
    """In a dry run no operator of the user's own runs, and no lock is taken."""
    own.worker.conf = {**own.worker.conf, "dry_run": True}
    for each in ("cancel_source", "submit_target"):
        assert own.worker.run(own.task(each)).state == "skipped"
    assert (own.cancelled, own.submitted) == ([], [])
    assert not list(own.source.folder.parent.glob("**/*.locks*"))
