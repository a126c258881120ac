"""The DAG mm2_fleet: three jobs in two waves, carried out task by task."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import DAG, BaseOperator
from upath import UPath

from airflow_mm2_offsets.core.mode import FailoverMode
from airflow_mm2_offsets.errors import ConfigurationError, HandoverError, NotReadyError
from airflow_mm2_offsets.fleet.progress import moved_before
from airflow_mm2_offsets.hooks.storage import storage_path
from airflow_mm2_offsets.operators.fleet import jobs_of
from airflow_mm2_offsets.spark.checkpoint import read_checkpoint
from airflow_mm2_offsets.spark.claim import claim_target
from airflow_mm2_offsets.spark.fence import FenceState, mark_moved, new_fence, raise_fence
from airflow_mm2_offsets.spark.offsets import format_offsets
from airflow_mm2_offsets.task_groups import failover_tasks
from airflow_mm2_offsets.task_groups.fleet import fleet_tasks
from airflow_mm2_offsets.testing import Record
from tests.unit.dags.dags_folder import FOLDER, parse, templated_reads
from tests.unit.dags.failovers import MOVING, STARTING, Failover
from tests.unit.operators.clusters import Clusters, define
from tests.unit.operators.spark_job import Job
from tests.unit.operators.worker import Worker
from tests.unit.spark import checkpoints

NAMES = ("orders", "refunds", "search")
BEFORE = ("read_manifest", "preview", "approve_fleet")
END = "wave_1.move.report"


class Fleet:
    """A run of the DAG on jobs that are only played; the archive is left out."""

    def __init__(self, worker: Worker, folder: Path) -> None:
        self.worker, self.folder = worker, folder
        self.dag: DAG = parse(FOLDER / "mm2_fleet.py").dags["mm2_fleet"]
        self.jobs = {name: Job(folder / name, 4, 0, 0, 0) for name in NAMES}
        self.write({name: {"wave": 2 if name == "search" else 1} for name in NAMES})
        worker.conf = {"manifest": f"{folder}/fleet.yaml", "reports_folder": f"{folder}/reports"}
        worker.conf |= {"archive": ""}

    def write(self, jobs: Mapping[str, Mapping[str, Any]]) -> None:
        defaults = {
            "stream_dag_id": "orders_stream",
            "source_folder": f"{self.folder}/{{name}}",
            "target_folder": f"{self.folder}/{{name}}-target",
        }
        content = {"defaults": defaults, "jobs": [{"name": n, **job} for n, job in jobs.items()]}
        (self.folder / "fleet.yaml").write_text(json.dumps(content))

    def task(self, task_id: str) -> BaseOperator:
        task = self.dag.get_task(task_id)
        assert isinstance(task, BaseOperator)
        return task

    def run(self, *task_ids: str) -> Any:  # noqa: ANN401 - what the last one returned
        self.worker.map_index = -1
        for task_id in task_ids:
            self.worker.run(self.task(task_id))
        return self.worker.xcoms.get((task_ids[-1], "return_value"))

    def turn(self, number: int, wave: int = 1) -> Any:  # noqa: ANN401 - of many kinds
        """Run the first task of a job; return how it ended."""
        self.worker.map_index, self.worker.ti_count = number, 2
        return self.worker.run(self.task(f"wave_{wave}.turn"))

    def failover(self, name: str) -> Failover:
        conf = self.worker.conf
        failover = Failover(
            self.worker, self.dag, self.jobs[name], f"{name}-target", prefix="wave_1.move."
        )
        self.worker.conf = conf
        return failover


@pytest.fixture
def fleet(worker: Worker, clusters: Clusters, tmp_path: Path) -> Fleet:
    clusters.copy_the_rest()
    return Fleet(worker, tmp_path)


def test_a_job_of_a_wave_is_moved_by_the_tasks_of_a_failover(fleet: Fleet) -> None:
    """Each task takes the settings of its own job; stop and target run bear the job's name."""
    assert fleet.run(*BEFORE)["asked"] is False
    jobs = fleet.run("jobs_of_wave_1")
    assert [job["name"] for job in jobs] == ["orders", "refunds"]
    fleet.turn(1)
    assert fleet.worker.xcoms["wave_1.turn", "job"]["name"] == "refunds"
    failover = fleet.failover("refunds")
    for step in MOVING:
        failover.run(step)
    fence = fleet.jobs["refunds"].read("fence.json")
    assert fence is not None
    assert fence["request_id"] == "mm2_fleet:manual__1:wave_1.move:refunds"
    assert fence["state"] == FenceState.MOVED
    assert fleet.jobs["orders"].requested_stop() is None
    assert fleet.worker.triggered == {
        ("orders_stream", "mm2_fleet__manual__1__wave_1.move__refunds"): {
            "kafka_conn_id": "kafka_target",
            "topic": "orders",
            "folder": f"{fleet.folder}/refunds-target",
            "starting_offsets": STARTING,
        }
    }


def test_a_job_gives_up_what_was_never_copied(fleet: Fleet, clusters: Clusters) -> None:
    """The number of the manifest reaches its check and its plan; another job has its own."""
    more = [Record(b"key %d" % number, b"value") for number in range(10, 30)]
    clusters.source.produce("orders", 0, more)
    clusters.target.produce("orders", 0, more[10:])
    clusters.sync(20, 15)
    clusters.sync(29, 24)
    fleet.write({"orders": {"give_up": 9}, "refunds": {"give_up": 10}, "search": {"wave": 2}})
    fleet.worker.conf = {**fleet.worker.conf, **NEVER}
    fleet.run(*BEFORE, "jobs_of_wave_1")
    fleet.turn(0)
    with pytest.raises(NotReadyError, match="give_up=10"):
        fleet.failover("orders").run("check")
    fleet.turn(1)
    refunds = fleet.failover("refunds")
    for step in ("check", "stop_source", "read_positions", "translate"):
        refunds.run(step)
    plan = fleet.worker.xcoms["wave_1.move.translate", "return_value"]
    assert plan["totals"]["given_up"] == 10


def test_the_preview_reads_only(fleet: Fleet) -> None:
    """It tells the numbers in total and of each job; three jobs that share a topic, too."""
    before = _files(fleet.folder)
    preview = fleet.run("read_manifest", "preview")
    assert preview["totals"] == {
        "jobs": 3,
        "moved_before": 0,
        "partitions": 12,
        "not_copied_yet": 0,
        "exact": 12,
        "bounded": 0,
        "refused": 0,
        "read_again": 0,
        "at_risk": 0,
        "max_reread": 0,
    }
    assert [job["exact"] for job in preview["jobs"]] == [4, 4, 4]
    assert "3 jobs with 12 partitions: 12 exact" in preview["summary"]
    assert _files(fleet.folder) == before


def test_a_job_that_can_not_be_previewed_asks_a_person(fleet: Fleet) -> None:
    """Its numbers are unknown, which is above every threshold; the others' are there."""
    (fleet.jobs["refunds"].checkpoint / "metadata").write_text("damaged")
    preview = fleet.run("read_manifest", "preview")
    by_name = {job["name"]: job for job in preview["jobs"]}
    assert by_name["orders"]["exact"] == 4
    assert "metadata" in by_name["refunds"]["problem"]
    assert preview["totals"]["read_again"] is None
    fleet.run("approve_fleet")
    assert "unknown records read again" in fleet.worker.questions[-1].subject


@pytest.mark.parametrize(("asked", "read_again"), [(True, 7), (False, 0)])
def test_what_was_approved_bounds_each_job(fleet: Fleet, *, asked: bool, read_again: int) -> None:
    """A job may cost what its preview said, or its own threshold where that is more.

    Where nobody was asked, its own threshold alone counts: what others allow is not for it.
    """
    fleet.run(*BEFORE)
    fleet.worker.xcoms["approve_fleet", "return_value"]["asked"] = asked
    preview = fleet.worker.xcoms["preview", "return_value"]
    preview["jobs"][0] |= {"read_again": 7, "at_risk": None}
    fleet.write({"orders": {"max_at_risk": 2}, "refunds": {"max_read_again": 3}, "search": {}})
    manifest = fleet.worker.xcoms["read_manifest", "return_value"]
    manifest["jobs"][0]["max_at_risk"], manifest["jobs"][1]["max_read_again"] = 2, 3
    bounds = [
        [job[f"max_{name}"] for name in ("refused", "read_again", "at_risk")]
        for job in fleet.run("jobs_of_wave_1")
    ]
    assert bounds == [[0, read_again, 2], [0, 3, 0]]


@pytest.mark.parametrize(
    ("approval", "problem"),
    [
        ({"approved": False, "why": "ann has rejected it"}, "was rejected: ann has rejected it"),
        ({"approved": True, "plan_digest": "another"}, "approved was another"),
    ],
)
def test_no_wave_begins_without_the_approval_of_its_preview(
    fleet: Fleet, approval: Mapping[str, Any], problem: str
) -> None:
    """A user may have marked a rejected approval as success, or cleared the preview alone."""
    fleet.run(*BEFORE)
    fleet.worker.xcoms["approve_fleet", "return_value"] = approval
    with pytest.raises(HandoverError, match=problem):
        fleet.run("jobs_of_wave_1")


def test_a_wave_without_jobs_expands_over_none(fleet: Fleet) -> None:
    """Airflow skips its tasks, and the next wave goes on."""
    fleet.run(*BEFORE)
    assert fleet.run("jobs_of_wave_3") == []


def test_a_job_waits_for_a_place_and_for_what_it_is_after(fleet: Fleet) -> None:
    """Of two at once the third waits until one has ended, however it ended."""
    fleet.write({"orders": {}, "refunds": {}, "search": {"after": ["orders"]}})
    fleet.worker.conf = {**fleet.worker.conf, "at_once": 2}
    fleet.run(*BEFORE, "jobs_of_wave_1")
    vars(fleet.task("wave_1.turn"))["deferrable"] = True
    assert fleet.turn(0).type == fleet.turn(1).type == "SucceedTask"
    assert fleet.turn(2).type == "DeferTask"
    fleet.worker.states = {f"{END}_1": "failed"}
    assert fleet.turn(2).type == "DeferTask"
    fleet.worker.states |= {f"{END}_0": "success"}
    _move(fleet, "orders", "mm2_fleet:manual__1:wave_1.move:orders")
    assert fleet.turn(2).type == "SucceedTask"


def test_jobs_behind_a_job_free_no_place_for_it(fleet: Fleet) -> None:
    """They had ended when the jobs before them were cleared."""
    fleet.write({name: {} for name in NAMES})
    fleet.worker.conf = {**fleet.worker.conf, "at_once": 1}
    fleet.run(*BEFORE, "jobs_of_wave_1")
    vars(fleet.task("wave_1.turn"))["deferrable"] = True
    fleet.worker.states = {f"{END}_2": "success"}
    assert [fleet.turn(number).type for number in (0, 1)] == ["SucceedTask", "DeferTask"]


def test_a_job_behind_that_is_at_work_takes_a_place(fleet: Fleet) -> None:
    """Its earlier neighbour failed, which let it begin, and was cleared then."""
    fleet.write({name: {} for name in NAMES})
    fleet.worker.conf = {**fleet.worker.conf, "at_once": 1}
    fleet.run(*BEFORE, "jobs_of_wave_1")
    vars(fleet.task("wave_1.turn"))["deferrable"] = True
    fleet.worker.states = {"wave_1.turn_1": "success"}
    assert fleet.turn(0).type == "DeferTask"
    fleet.worker.states |= {f"{END}_1": "failed"}
    assert fleet.turn(0).type == "SucceedTask"


def test_no_place_at_all_is_refused(fleet: Fleet) -> None:
    """Each job would wait for a day."""
    vars(fleet.task("wave_1.turn"))["at_once"] = 0
    fleet.run(*BEFORE, "jobs_of_wave_1")
    with pytest.raises(ConfigurationError, match="at_once is 0; give a number from 1"):
        fleet.turn(0)


def test_a_job_after_a_failed_one_fails_and_names_it(fleet: Fleet) -> None:
    """Nothing was done to it, and its other neighbours go on."""
    fleet.write({"orders": {}, "refunds": {"after": ["orders"]}, "search": {}})
    fleet.run(*BEFORE, "jobs_of_wave_1")
    fleet.worker.states = {f"{END}_0": "failed"}
    numbers = [job["name"] for job in fleet.worker.xcoms["jobs_of_wave_1", "return_value"]]
    with pytest.raises(HandoverError, match=r"moved after orders, and that has failed"):
        fleet.turn(numbers.index("refunds"))
    fleet.turn(numbers.index("search"))
    assert fleet.worker.xcoms["wave_1.turn", "job"]["name"] == "search"


@pytest.mark.parametrize("state", ["skipped", "success"])
@pytest.mark.parametrize("wave", [1, 2])
def test_a_job_after_one_that_was_not_moved_is_refused(fleet: Fleet, wave: int, state: str) -> None:
    """A task that was skipped, or marked as success by hand, moves nothing."""
    fleet.write({"orders": {"reads": ["orders"]}, "refunds": {"writes": ["orders"], "wave": wave}})
    fleet.run(*BEFORE, f"jobs_of_wave_{wave}")
    fleet.worker.states = {f"{END}_0": state}
    number = 2 - wave
    with pytest.raises(HandoverError, match=r"after orders, which was not moved: .*Move it first"):
        fleet.turn(number, wave)
    _move(fleet, "orders", "mm2_fleet:manual__1:wave_1.move:orders")
    assert fleet.turn(number, wave).type == "SucceedTask"


def test_a_turn_that_was_ended_by_hand_moves_nothing(fleet: Fleet) -> None:
    """Marked as success, or skipped, while it waits: no step of the job runs."""
    fleet.write({"orders": {"reads": ["orders"]}, "refunds": {"writes": ["orders"]}})
    fleet.run(*BEFORE, "jobs_of_wave_1")
    vars(fleet.task("wave_1.turn"))["deferrable"] = True
    assert fleet.turn(1).type == "DeferTask"
    for step in ("check", "stop_source"):
        with pytest.raises(HandoverError, match=r"wave_1.turn has not ended by itself.*Clear that"):
            fleet.worker.run(fleet.task(f"wave_1.move.{step}"))
    assert fleet.jobs["refunds"].requested_stop() is None
    fleet.worker.states = {"wave_1.move.check_1": "failed"}
    assert fleet.worker.run(fleet.task("wave_1.move.roll_back")).type == "SucceedTask"


@pytest.mark.parametrize("mode", FailoverMode)
def test_a_job_that_was_moved_without_a_fence_counts_as_moved(
    fleet: Fleet, mode: FailoverMode
) -> None:
    """Its control location was lost then, and has come back; until the job has left its target."""
    job = jobs_of(fleet.run("read_manifest"))[0]
    target = UPath(job.target_checkpoint)
    checkpoints.write(Path(target.path), {"offsets/0": checkpoints.batch(STARTING)})
    claim_target(target, "mm2_fleet:earlier:wave_1.move:orders", has_fence=False)
    told = moved_before(job, storage_path, mode=mode)
    assert told == "the job was moved by 'mm2_fleet:earlier:wave_1.move:orders'"
    _leave(f"{job.target_folder}/control", "mm2_failover:home", job.source_folder)
    assert moved_before(job, storage_path, mode=mode) is None


def test_a_claim_beside_a_fence_moves_nothing(fleet: Fleet) -> None:
    """The fence says whether the job was handed over."""
    job = jobs_of(fleet.run("read_manifest"))[0]
    target = UPath(job.target_checkpoint)
    checkpoints.write(Path(target.path), {"offsets/0": checkpoints.batch(STARTING)})
    claim_target(target, "mm2_fleet:earlier:wave_1.move:orders")
    assert moved_before(job, storage_path) is None


def test_a_job_that_was_moved_before_is_skipped(fleet: Fleet) -> None:
    """By every task of its failover: nothing is asked of it, and no job is started."""
    _move(fleet, "orders", "mm2_fleet:earlier:wave_1.move:orders")
    preview = fleet.run(*BEFORE[:2])
    assert preview["totals"]["moved_before"] == 1
    fleet.run("approve_fleet", "jobs_of_wave_1")
    fleet.turn(0)
    assert "was moved to" in fleet.worker.xcoms["wave_1.turn", "moved"]
    for step in (*MOVING, "roll_back"):
        ended = fleet.worker.run(fleet.task(f"wave_1.move.{step}"))
        assert ended.state == "skipped", step
    assert fleet.worker.triggered == {}


NEVER = {"approve": "never"}
"""What a preview can't say would ask a person."""


def test_a_job_that_was_handed_over_and_never_began_is_refused(fleet: Fleet) -> None:
    """A second hand-over might start a second job: the first run is to be finished."""
    _move(fleet, "orders", "mm2_fleet:earlier:wave_1.move:orders", begins=False)
    fleet.worker.conf = {**fleet.worker.conf, **NEVER}
    fleet.run(*BEFORE, "jobs_of_wave_1")
    with pytest.raises(HandoverError, match=r"no job has begun in .*clear its task submit_target"):
        fleet.turn(0)


def test_a_job_that_was_moved_elsewhere_is_refused(fleet: Fleet) -> None:
    """The manifest names another target than the one where it runs."""
    _move(fleet, "orders", "mm2_failover:other", to="elsewhere")
    fleet.worker.conf = {**fleet.worker.conf, **NEVER}
    fleet.run(*BEFORE, "jobs_of_wave_1")
    with pytest.raises(HandoverError, match="correct target_folder of job orders"):
        fleet.turn(0)


@pytest.mark.parametrize(("state", "is_refused"), [("running", True), ("failed", False)])
def test_a_job_that_another_run_moves_is_refused(
    fleet: Fleet, state: str, *, is_refused: bool
) -> None:
    """A run that has ended is taken over."""
    other = new_fence("mm2_fleet:manual__a:b:wave_1.move:orders", f"{fleet.folder}/orders-target")
    raise_fence(str(fleet.jobs["orders"].control), other)
    fleet.worker.triggered["mm2_fleet", "manual__a:b"] = {}
    fleet.worker.run_states["mm2_fleet", "manual__a:b"] = state
    fleet.run(*BEFORE, "jobs_of_wave_1")
    if is_refused:
        with pytest.raises(NotReadyError, match="that run has not ended"):
            fleet.turn(0)
    else:
        fleet.turn(0)


@pytest.mark.parametrize("has_moved", [True, False])
def test_a_run_whose_id_begins_alike_is_another_run(fleet: Fleet, *, has_moved: bool) -> None:
    """A run's id may hold colons: what the run manual__1:2 does is not this run's."""
    other = "mm2_fleet:manual__1:2:wave_1.move:orders"
    fleet.worker.triggered["mm2_fleet", "manual__1:2"] = {}
    if has_moved:
        _move(fleet, "orders", other)
    else:
        raise_fence(str(fleet.jobs["orders"].control), new_fence(other, "anywhere"))
    fleet.run(*BEFORE, "jobs_of_wave_1")
    if has_moved:
        fleet.turn(0)
        assert "was moved to" in fleet.worker.xcoms["wave_1.turn", "moved"]
    else:
        with pytest.raises(NotReadyError, match="that run has not ended"):
            fleet.turn(0)


READER_AND_WRITER = {"orders": {"reads": ["orders"]}, "refunds": {"writes": ["orders"]}}
SAYS_WRITER = r"job refunds writes a topic that this job reads.*Bring refunds home first"


def _raise_of_writer(fleet: Fleet, state: FenceState) -> None:
    """Let the writer have been moved alone, or be on its way."""
    if state is FenceState.MOVED:
        _move(fleet, "refunds", "mm2_failover:manual__0")
    else:
        raise_fence(str(fleet.jobs["refunds"].control), new_fence("mm2_failover:manual__0", "/x"))


@pytest.mark.parametrize("state", FenceState)
def test_a_reader_is_not_moved_after_its_writer(fleet: Fleet, state: FenceState) -> None:
    """Its plan would skip what the writer has written on the target. The order is asked of fences.

    The writer was moved by mm2_failover, or before the reader was added to the manifest.
    """
    fleet.write(READER_AND_WRITER)
    _raise_of_writer(fleet, state)
    fleet.worker.conf = {**fleet.worker.conf, **NEVER}
    fleet.run(*BEFORE, "jobs_of_wave_1")
    with pytest.raises(HandoverError, match=SAYS_WRITER):
        fleet.turn(0)


@pytest.mark.parametrize("step", ["check", "translate", "submit_target"])
def test_a_writer_that_is_moved_after_the_turn_of_its_reader_holds_it(
    fleet: Fleet, step: str
) -> None:
    """Each step asks again, up to the one that hands the job over: nothing is started."""
    fleet.write(READER_AND_WRITER)
    fleet.run(*BEFORE, "jobs_of_wave_1")
    fleet.turn(0)
    failover = fleet.failover("orders")
    for each in MOVING[: MOVING.index(step)]:
        failover.run(each)
    _raise_of_writer(fleet, FenceState.MOVED)
    with pytest.raises(HandoverError, match=SAYS_WRITER):
        failover.run(step)
    assert failover.fence_state() is not FenceState.MOVED
    assert not fleet.worker.triggered


@pytest.mark.parametrize("step", ["check", "submit_target"])
def test_a_writer_is_not_handed_over_once_its_reader_is_home(fleet: Fleet, step: str) -> None:
    """Its turn has come hours ago; a later task of it is cleared, or the turn is marked by hand."""
    fleet.write(READER_AND_WRITER)
    fleet.run(*BEFORE, "jobs_of_wave_1")
    _move(fleet, "orders", "mm2_fleet:manual__1:wave_1.move:orders")
    fleet.worker.states = {f"{END}_0": "success"}
    fleet.turn(1)
    failover = fleet.failover("refunds")
    for each in MOVING[: MOVING.index(step)]:
        failover.run(each)
    (fleet.jobs["orders"].control / "fence.json").unlink()
    with pytest.raises(HandoverError, match=r"after orders, which was not moved.*Move it first"):
        failover.run(step)
    assert not fleet.worker.triggered


def test_a_reader_that_was_handed_over_is_not_held_by_its_writer(fleet: Fleet) -> None:
    """All its tasks may be cleared after the writer was moved, too: it starts nothing again."""
    fleet.write(READER_AND_WRITER)
    fleet.run(*BEFORE, "jobs_of_wave_1")
    fleet.turn(0)
    failover = fleet.failover("orders")
    for each in MOVING:
        failover.run(each)
    _move(fleet, "refunds", "mm2_fleet:manual__1:wave_1.move:refunds")
    assert fleet.turn(0).type == "SucceedTask"
    failover.run("submit_target")
    assert len(fleet.worker.triggered) == 1


@pytest.mark.parametrize(
    ("state", "problem"),
    [(FenceState.MOVED, "has left it since.*Correct source_folder"), (FenceState.STOPPING, "wait")],
)
@pytest.mark.parametrize("number", [0, 1])
def test_a_job_that_has_left_its_target_is_not_moved_before(
    fleet: Fleet, state: FenceState, problem: str, number: int
) -> None:
    """It came home to a new folder, or is on the way; its old fence stays. Its writer waits."""
    fleet.write(READER_AND_WRITER)
    _move(fleet, "orders", "mm2_fleet:earlier:wave_1.move:orders")
    control = f"{fleet.folder}/orders-target/control"
    if state is FenceState.MOVED:
        _leave(control, "mm2_failover:home", f"{fleet.folder}/orders-home")
    else:
        raise_fence(control, new_fence("mm2_failover:home", f"{fleet.folder}/orders-home"))
    fleet.worker.conf = {**fleet.worker.conf, **NEVER}
    assert fleet.run("read_manifest", "preview")["totals"]["moved_before"] == 0
    fleet.run("approve_fleet", "jobs_of_wave_1")
    fleet.worker.states = {f"{END}_0": "skipped"}
    with pytest.raises(HandoverError, match=problem):
        fleet.turn(number)


@pytest.mark.parametrize(
    ("jobs", "problem"),
    [
        (
            {"orders": {"reads": ["Orders"]}},
            "reads of job orders names Orders, .* reads orders",
        ),
        ({"orders": {"reads": ["orders", "more"]}}, "names more, orders, and"),
        ({"orders": {}, "refunds": {"writes": ["orders"]}}, "reads of job orders names nothing"),
    ],
)
def test_reads_that_are_not_the_checkpoints_are_refused(
    fleet: Fleet, jobs: dict[str, Any], problem: str
) -> None:
    """They would put the job in no order, in silence."""
    fleet.write(jobs)
    with pytest.raises(ConfigurationError, match=problem):
        fleet.run("read_manifest", "preview")


def test_a_report_that_is_old_credits_no_job(fleet: Fleet) -> None:
    """The job has come home since, and its cleared tasks were marked as success by hand."""
    fleet.write({"orders": {}})
    fleet.run(*BEFORE, "jobs_of_wave_1")
    _move(fleet, "orders", "mm2_fleet:manual__1:wave_1.move:orders")
    moved = {"outcome": "moved", "next": [], "run": {}, "steps": []}
    fleet.worker.xcoms |= {(END, "return_value"): moved}
    fleet.worker.states = {f"{END}_0": "success"}
    assert fleet.run("report_fleet")["totals"]["moved"] == 1
    (fleet.jobs["orders"].control / "fence.json").unlink()
    with pytest.raises(Exception, match="1 of 1 jobs are not moved: orders"):
        fleet.run("report_fleet")
    told = fleet.worker.xcoms["report_fleet", "return_value"]["jobs"][0]
    assert told["outcome"] == "not_on_target"
    assert "it may have come home" in told["next"]


def test_a_roll_back_needs_a_failure_of_its_own_job(fleet: Fleet) -> None:
    """A neighbour's failure undoes nothing."""
    fleet.run(*BEFORE, "jobs_of_wave_1")
    fleet.turn(0)
    fleet.worker.states = {"wave_1.move.check_1": "failed"}
    roll_back = fleet.task("wave_1.move.roll_back")
    assert fleet.worker.run(roll_back).state == "skipped"
    fleet.worker.states = {"wave_1.move.check_0": "failed"}
    assert fleet.worker.run(roll_back).type == "SucceedTask"


def test_one_report_names_every_job(fleet: Fleet) -> None:
    """What has failed or not begun fails it, and both files are written."""
    fleet.run(*BEFORE, "jobs_of_wave_1")
    fleet.worker.states = {f"{END}_0": "success", f"{END}_1": "failed"}
    report = {"outcome": "rolled_back", "next": ["Start it again."], "run": {}, "steps": []}
    fleet.worker.xcoms[END, "return_value"] = report
    with pytest.raises(Exception, match="3 of 3 jobs are not moved: orders, refunds, search"):
        fleet.run("report_fleet")
    told = fleet.worker.xcoms["report_fleet", "return_value"]
    assert [job["outcome"] for job in told["jobs"]] == ["rolled_back", "rolled_back", "not_begun"]
    markdown = next(fleet.folder.glob("reports/*.md")).read_text()
    assert "| search | 2 | not_begun |" in markdown
    assert json.loads(next(fleet.folder.glob("reports/*.json")).read_text())["totals"]["moved"] == 0


def test_a_skipped_job_counts_only_if_it_was_moved_before(fleet: Fleet) -> None:
    """A run that is marked as failed by hand skips what had not begun."""
    fleet.run(*BEFORE, "jobs_of_wave_1")
    fleet.worker.states = {f"{END}_0": "skipped", f"{END}_1": "skipped"}
    with pytest.raises(Exception, match="3 of 3 jobs are not moved"):
        fleet.run("report_fleet")
    _move(fleet, "orders", "mm2_fleet:earlier:wave_1.move:orders")
    fleet.turn(0)
    with pytest.raises(Exception, match="jobs are not moved"):
        fleet.run("report_fleet")
    told = fleet.worker.xcoms["report_fleet", "return_value"]["jobs"][0]
    assert told["outcome"] == "moved_before"
    assert "was moved to" in told["next"]


@pytest.mark.parametrize("outcome", ["failed_before_stop", None])
def test_a_job_that_an_earlier_run_moved_is_told_so(fleet: Fleet, outcome: str | None) -> None:
    """Its turn may have failed, or not begun, in this run: the fence counts."""
    fleet.run(*BEFORE, "jobs_of_wave_1")
    _move(fleet, "orders", "mm2_fleet:earlier:wave_1.move:orders")
    if outcome:
        fleet.worker.states = {f"{END}_0": "failed"}
        report = {"outcome": outcome, "next": ["?"], "run": {}, "steps": []}
        fleet.worker.xcoms[END, "return_value"] = report
    with pytest.raises(Exception, match="2 of 3 jobs are not moved: refunds, search"):
        fleet.run("report_fleet")
    told = fleet.worker.xcoms["report_fleet", "return_value"]["jobs"][0]
    assert told["outcome"] == "moved_before"
    assert "was moved to" in told["next"]


def test_a_changed_manifest_credits_no_other_job(fleet: Fleet) -> None:
    """Read again alone, it gives the places of the wave to other jobs."""
    fleet.run(*BEFORE, "jobs_of_wave_1")
    fleet.turn(0)
    moved = {"outcome": "moved", "next": [], "run": {}, "steps": []}
    fleet.worker.xcoms[END, "return_value"] = moved
    fleet.worker.states = {f"{END}_0": "success"}
    fleet.write({"refunds": {}, "orders": {}})
    fleet.run("read_manifest")
    with pytest.raises(Exception, match="2 of 2 jobs are not moved: refunds, orders"):
        fleet.run("report_fleet")
    told = fleet.worker.xcoms["report_fleet", "return_value"]["jobs"][0]
    assert "manifest was changed since this run expanded its waves" in told["next"]


@pytest.mark.parametrize(
    "changed",
    [
        {"refunds": {}, "orders": {}},
        {"orders": {}},
        {"orders": {}, "refunds": {"source_folder": "/elsewhere"}},
    ],
)
def test_a_job_keeps_its_place_in_a_run(fleet: Fleet, changed: dict[str, Any]) -> None:
    """Another job would get what the tasks of its place have told of the one before.

    The same manifest is read again, and so is one with more jobs behind those that have begun.
    """
    fleet.run(*BEFORE, "jobs_of_wave_1")
    fleet.turn(1)
    fleet.write(changed)
    fleet.worker.conf = {**fleet.worker.conf, **NEVER}
    with pytest.raises(HandoverError, match=r"place 1 of wave 1 was that of job refunds.*new run"):
        fleet.run(*BEFORE, "jobs_of_wave_1")
    fleet.write({"orders": {}, "refunds": {"kill_after": 60}, "search": {}})
    jobs = fleet.run(*BEFORE, "jobs_of_wave_1")
    assert [job["number"] for job in jobs] == [0, 1, 2]


def test_a_restart_takes_nothing_that_another_job_has_read(fleet: Fleet) -> None:
    """A map index of an edited manifest may hold the positions of the job that was there before."""
    fleet.write({"orders": {"on_failure": "restart"}})
    fleet.run(*BEFORE, "jobs_of_wave_1")
    fleet.turn(0)
    failover = fleet.failover("orders")
    failover.run("stop_source")
    read = "wave_1.move.read_positions"
    reads = format_offsets(read_checkpoint(UPath(fleet.jobs["orders"].checkpoint)).positions)
    other = {"topics": "refunds", "positions": '{"refunds":{"0":9000}}'}
    fleet.worker.xcoms |= {(read, key): value for key, value in other.items()}
    fleet.worker.states = {f"{read}_0": "failed"}
    fleet.worker.run(fleet.task("wave_1.move.roll_back"))
    (restarted,) = fleet.worker.triggered.values()
    assert (restarted["topic"], restarted["starting_offsets"]) == ("orders", reads)


@pytest.mark.parametrize("word", [True, False])
def test_the_preview_plans_as_the_jobs_will(
    fleet: Fleet, clusters: Clusters, monkeypatch: pytest.MonkeyPatch, *, word: bool
) -> None:
    """By the word for a lost source of copies that keep offsets; what a wave's task fills waits."""
    extra = {"replication_policy": "identity", "mapping": "identity"}
    define(monkeypatch, "mm2_default", extra=extra)
    clusters.target.delete_records("orders", 0, 2)
    clusters.source.is_running = False
    told = {"sole_writer": word, "first_plan": "{{ ti.xcom_pull(task_ids='wave_1.turn') }}"}
    with DAG("mm2_fleet", schedule=None) as fleet.dag:
        fleet_tasks(
            manifest=fleet.worker.conf["manifest"],
            mode="disaster",
            arguments={"translate": told},
        )
    totals = fleet.run("read_manifest", "preview")["totals"]
    assert totals["refused"] == (0 if word else len(NAMES))


def test_no_mode_but_planned_and_disaster(worker: Worker, tmp_path: Path) -> None:
    """A drill of a fleet would have one folder for all jobs."""
    with DAG("evacuate", schedule=None) as dag:
        fleet_tasks(manifest=f"{tmp_path}/m.yaml", archive="/a", mode="drill")
    read = dag.get_task("read_manifest")
    assert isinstance(read, BaseOperator)
    with pytest.raises(ConfigurationError, match="a fleet is moved by disaster or planned"):
        worker.run(read)


def test_each_task_waits_itself_for_what_it_reads() -> None:
    """Within the group of a job; the settings come with the group's first task."""
    dag = parse(FOLDER / "mm2_fleet.py").dags["mm2_fleet"]
    for task_id, names in templated_reads(dag).items():
        task = dag.get_task(task_id)
        assert names <= task.get_flat_relative_ids(upstream=True) | {task_id}, task_id


def test_the_report_waits_for_every_job_of_every_wave() -> None:
    """A failure ends the later waves at once, while its neighbours are still at work."""
    dag = parse(FOLDER / "mm2_fleet.py").dags["mm2_fleet"]
    ends = {f"wave_{wave}.move.report" for wave in (1, 2, 3)}
    assert dag.get_task("report_fleet").upstream_task_ids == {*ends, "read_manifest"}


def test_only_tasks_of_the_modes_of_a_fleet_are_added() -> None:
    """Each task of a group costs each job a worker's start."""
    dag = parse(FOLDER / "mm2_fleet.py").dags["mm2_fleet"]
    steps = {task_id.rpartition(".")[2] for task_id in dag.task_ids if ".move." in task_id}
    assert steps == {*MOVING, "roll_back"}


def test_a_mapped_group_without_job_names_is_refused() -> None:
    """All its jobs would share one run id and one fence."""
    from airflow.providers.common.compat.sdk import task_group  # noqa: PLC0415 - one test

    with DAG("evacuate", schedule=None):

        @task_group
        def move(job: str) -> None:  # noqa: ARG001 - Airflow maps over it
            failover_tasks(source_folder="/a", target_folder="/b", stream_dag_id="s")

        with pytest.raises(ConfigurationError, match="give job_name"):
            move.expand(job=["a", "b"])


@pytest.mark.parametrize(
    ("told", "problem"),
    [({"arguments": {"trun": {}}}, "names trun; name one of read_manifest"), ({"waves": 0}, "1")],
)
def test_wrong_arguments_are_refused_at_once(told: dict[str, Any], problem: str) -> None:
    """While the DAG is parsed."""
    with DAG("evacuate", schedule=None), pytest.raises(ConfigurationError, match=problem):
        fleet_tasks(manifest="/m", archive="/a", **told)


def _move(fleet: Fleet, name: str, request_id: str, *, to: str = "", begins: bool = True) -> None:
    """Let an earlier run have moved a job."""
    control = str(fleet.jobs[name].control)
    target = fleet.folder / (to or f"{name}-target")
    _leave(control, request_id, str(target))
    if begins:
        checkpoints.write(target / "checkpoint", {"offsets/0": checkpoints.batch(STARTING)})


def _leave(control: str, request_id: str, moved_to: str) -> None:
    raise_fence(control, new_fence(request_id, moved_to))
    mark_moved(control, request_id, moved_to)


def _files(folder: Path) -> dict[str, float]:
    return {str(path): path.stat().st_mtime for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("archive", ["", None])
def test_no_archive_is_kept_where_none_is_given(fleet: Fleet, archive: str | None) -> None:
    """The step is skipped, and the rest of the run goes on."""
    fleet.worker.conf = {**fleet.worker.conf, "archive": archive}
    fleet.run("read_manifest")
    assert fleet.worker.run(fleet.task("archive_syncs")).state == "skipped"
    assert fleet.run("preview")["totals"]["exact"] == 12
