"""The DAG mm2_fleet: three jobs in two waves, carried out task by task."""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import DAG, AirflowFailException, BaseOperator
from upath import UPath

from airflow_mm2_offsets.core.policy import PLANNED
from airflow_mm2_offsets.errors import ApprovalError, ConfigurationError, HandoverError
from airflow_mm2_offsets.moves.jobs import SparkJob
from airflow_mm2_offsets.moves.journal import Entry, Event, Journal
from airflow_mm2_offsets.moves.move import Mover
from airflow_mm2_offsets.operators.moving import INTENT
from airflow_mm2_offsets.task_groups.fleet import fleet_tasks
from tests.unit.dags.dags_folder import FOLDER, parse
from tests.unit.operators.clusters import RECORDS, Clusters
from tests.unit.operators.spark_job import Job
from tests.unit.operators.worker import Worker, events, rebuild
from tests.unit.spark import checkpoints

NAMES = ("orders", "refunds", "search")
READER_AND_WRITER = {"refunds": {"writes": ["orders"]}, "orders": {"reads": ["orders"]}}
END = "wave_1.move.report"
STEPS = ("stop_source", "wait_replicated", "translate", "approve", "start_target")
ASKS = {"AwaitInputTask", "DeferTask"}
"""How Airflow from 3.3 on, and before, waits for an answer."""
ANSWER = {"responded_at": "2026-11-22T03:15:00Z", "responded_by_user": {"id": "7", "name": "ann"}}


@dataclass
class Fleet:
    """A run of the DAG on jobs that are only played."""

    worker: Worker
    folder: Path

    def __post_init__(self) -> None:
        self.parse()
        self.played = {name: Job(self.folder / name / "source", 4, 6, 3, 2) for name in NAMES}
        self.write({name: {"wave": 2 if name == "search" else 1} for name in NAMES})
        self.worker.conf = {"to": "target"}

    def parse(self) -> None:
        self.dag: DAG = parse(FOLDER / "mm2_fleet.py").dags["mm2_fleet"]
        for task in self.dag.tasks:
            if task.task_id.endswith(("wait_replicated", "wait_started", "turn")):
                vars(task).update(poke_interval=0.02, timeout=5)
            if task.task_id.endswith("stop_source"):
                vars(task).update(quiet_period=0.05, poll_interval=0.02)

    def write(self, jobs: Mapping[str, Mapping[str, Any]]) -> None:
        self.jobs = {
            name: SparkJob.from_json(
                {
                    "name": name,
                    "homes": {
                        side: f"{self.folder}/{name}/{side}" for side in ("source", "target")
                    },
                    "dag": "orders_stream",
                    "records": f"{self.folder}/records",
                    **more,
                }
            )
            for name, more in jobs.items()
        }
        content = {"jobs": [job.to_json() for job in self.jobs.values()]}
        (self.folder / "jobs.yaml").write_text(json.dumps(content))

    def ask(self, **conf: Any) -> None:
        self.worker.conf = {"to": "target", **conf}
        self.parse()

    def task(self, task_id: str) -> BaseOperator:
        task = self.dag.get_task(task_id)
        assert isinstance(task, BaseOperator)
        return task

    def run(self, *task_ids: str) -> Any:  # noqa: ANN401 - what the last one returned
        self.worker.map_index = -1
        for task_id in task_ids:
            self.worker.run(self.task(task_id))
        return self.worker.xcoms.get((task_ids[-1], "return_value"))

    def begin(self) -> Any:  # noqa: ANN401 - the names of the first wave
        return self.run("preview", "approve_fleet", "jobs_of_wave_1")

    def step(self, name: str, step: str, wave: int = 1) -> Any:  # noqa: ANN401 - how it ended
        """Run a task of a job, and go on where it is not deferred for long."""
        names = self.worker.xcoms[f"jobs_of_wave_{wave}", "return_value"]
        self.worker.map_index, self.worker.ti_count = names.index(name), len(names)
        task = self.task(f"wave_{wave}.{step}")
        ended = self.worker.run(task)
        if ended.type == "DeferTask" and step != "turn" and "approve" not in step:
            if "stop_source" in step:
                self.played[name].acknowledge()
            (event,) = events(rebuild(ended))
            ended = self.worker.run(task, after=ended, event=event)
        return ended

    def move(self, name: str, *steps: str, wave: int = 1) -> None:
        """Carry a move out up to the hand-over, or to the last of the steps."""
        for step in steps or STEPS:
            self.step(name, f"move.{step}", wave)

    def arrive(self, name: str, wave: int = 1) -> None:
        folder = self.folder / name / "target"
        starts = checkpoints.orders(9, 6, 3, 2)
        files = {"sources/0/0": checkpoints.start(starts), "offsets/0": checkpoints.batch(starts)}
        checkpoints.write(folder / "checkpoint", {**files, "commits/0": checkpoints.commit()})
        self.step(name, "move.wait_started", wave)

    def entries(self, name: str) -> list[Entry]:
        return Journal(UPath(self.jobs[name].journal)).entries()

    def settle(self, name: str, *events: Event, run: str = "mm2_failover:single") -> None:
        """Let another run have moved a job, to the last of the events."""
        mover = Mover(self.jobs[name], run, PLANNED, UPath)
        mover.ask()
        for event in events:
            mover.record(mover.find(), event)


GONE = (Event.PROVE, Event.HAND_OVER, Event.ARRIVE)


@pytest.fixture
def fleet(
    worker: Worker, clusters: Clusters, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Fleet:
    clusters.copy_the_rest()
    for partition in (2, 3):
        clusters.source.produce("orders", partition, RECORDS)
    for partition in (1, 2, 3):
        clusters.sync(9, 9, partition)
    monkeypatch.setenv("AIRFLOW__MM2_OFFSETS__JOBS_FILE", f"{tmp_path}/jobs.yaml")
    return Fleet(worker, tmp_path)


def test_the_jobs_of_a_wave_are_moved_each_by_its_journal(fleet: Fleet) -> None:
    """One DAG runs them all, and the run of each is its own."""
    assert fleet.begin() == ["orders", "refunds"]
    for name in ("refunds", "orders"):
        assert fleet.step(name, "turn").type == "SucceedTask"
        fleet.move(name)
        fleet.arrive(name)
        assert fleet.entries(name)[-1].home == f"{fleet.folder}/{name}/target"
    assert fleet.entries("search") == []
    assert {run: conf["folder"] for (_, run), conf in fleet.worker.triggered.items()} == {
        f"mm2_fleet__manual__1__{name}__1": f"{fleet.folder}/{name}/target"
        for name in ("refunds", "orders")
    }


def test_the_preview_reads_only(fleet: Fleet) -> None:
    """It has the numbers in total and of each job; three jobs that share a topic, too."""
    before = _files(fleet.folder)
    preview = fleet.run("preview")
    assert preview["totals"] == {
        "jobs": 3,
        "there_already": 0,
        "partitions": 12,
        "not_copied_yet": 0,
        "exact": 12,
        "bounded": 0,
        "refused": 0,
        "read_again_at_most": 0,
        "lost_at_most": 0,
    }
    assert [job["exact"] for job in preview["jobs"]] == [4, 4, 4]
    assert "3 jobs with 12 partitions: 12 exact" in preview["summary"]
    assert _files(fleet.folder) == before


def test_a_job_that_is_there_stays(fleet: Fleet) -> None:
    """It is not moved back, and nothing is asked of it."""
    fleet.settle("orders", *GONE)
    entries = fleet.entries("orders")
    assert fleet.begin() == ["refunds"]
    preview = fleet.worker.xcoms["preview", "return_value"]
    assert preview["totals"]["there_already"] == 1
    assert f"There already: orders: at target ({fleet.folder}/orders/target)" in preview["summary"]
    assert fleet.entries("orders") == entries


def test_a_job_that_came_home_is_moved_again(fleet: Fleet) -> None:
    """The journal says where it is: nobody changes the file."""
    fleet.settle("orders", *GONE)
    fleet.settle("orders", *GONE, run="mm2_failover:home")
    fleet.worker.conf = {"to": "target", "jobs": "orders", "approve": "never"}
    fleet.run("preview", "approve_fleet")
    assert fleet.run("jobs_of_wave_1") == ["orders"]


@pytest.mark.parametrize(
    ("conf", "problem"),
    [
        ({"to": "moon"}, "no job goes to 'moon': the jobs have homes at source, target"),
        ({"jobs": "order"}, "there is no job 'order'; did you mean orders"),
        ({"jobs": "orders", "out_of": "moon"}, "job orders has homes at source, target"),
        ({"policy": "drill"}, "drill"),
        ({"dryrun": True}, "'dryrun' .did you mean dry_run"),
    ],
)
def test_a_wrong_request_is_refused_first(fleet: Fleet, conf: dict[str, Any], problem: str) -> None:
    """Before any journal is written."""
    fleet.worker.conf = {"to": "target", **conf}
    with pytest.raises(Exception, match=problem):
        fleet.run("preview")
    assert not (fleet.folder / "records").exists()


@pytest.mark.parametrize(
    ("jobs", "problem"),
    [
        ({"orders": {"wave": 4}}, r"the DAG has 3 waves, .* orders \(4\)"),
        ({"orders": {"after": ["refunds"]}, "refunds": {"after": ["orders"]}}, "wait for each"),
        ({"orders": {"dag": None}}, "orders: a fleet moves jobs that a DAG runs"),
        ({"orders": {"reads": ["Orders"]}}, "reads of job orders names Orders"),
        ({"orders": {}, "refunds": {"writes": ["orders"]}}, "reads of job orders names nothing"),
    ],
)
def test_jobs_that_a_fleet_can_not_move_are_refused_first(
    fleet: Fleet, jobs: dict[str, Any], problem: str
) -> None:
    """The message names the job."""
    fleet.write({name: {k: v for k, v in job.items() if v} for name, job in jobs.items()})
    if problem.startswith("orders: a fleet"):
        text = (fleet.folder / "jobs.yaml").read_text()
        (fleet.folder / "jobs.yaml").write_text(text.replace('"dag": "orders_stream", ', ""))
    with pytest.raises(ConfigurationError, match=problem):
        fleet.run("preview")


def test_a_job_after_one_that_is_not_moved_is_refused(fleet: Fleet) -> None:
    """The reader was left out of the list; it is moved first, or is there already."""
    fleet.write(READER_AND_WRITER)
    fleet.worker.conf = {"to": "target", "jobs": "refunds"}
    with pytest.raises(ConfigurationError, match="job refunds moves after orders, which this run"):
        fleet.run("preview")
    fleet.settle("orders", *GONE)
    assert fleet.run("preview")["totals"]["jobs"] == 1


class TestApproval:
    """One for all jobs; each job is bounded by what was approved."""

    def ask(self, fleet: Fleet) -> Any:  # noqa: ANN401 - how it ended
        """Ask for a fleet of which one job can't be planned."""
        (fleet.played["refunds"].checkpoint / "metadata").write_text("damaged")
        fleet.run("preview")
        return fleet.worker.run(fleet.task("approve_fleet"))

    def test_a_job_that_can_not_be_previewed_asks_a_person(self, fleet: Fleet) -> None:
        """Its numbers are unknown, which is above every threshold; the others' are there."""
        self.ask(fleet)
        preview = fleet.worker.xcoms["preview", "return_value"]
        by_name = {job["name"]: job for job in preview["jobs"]}
        assert by_name["orders"]["exact"] == 4
        assert "metadata" in by_name["refunds"]["problem"]
        (question,) = fleet.worker.questions
        assert question.subject.startswith("Failover (planned) of 3 jobs: unknown refused")
        assert "moves 3 jobs to target, wave by wave" in question.body
        assert " ".join(preview["summary"].split()) in " ".join(question.body.split())

    @pytest.mark.parametrize("option", ["Approve", "Reject"])
    def test_an_answer_counts_for_the_numbers_that_were_shown(
        self, fleet: Fleet, option: str
    ) -> None:
        """Also where another preview was made meanwhile."""
        parked = self.ask(fleet)
        fleet.worker.xcoms["preview", "return_value"]["jobs"][0]["lost_at_most"] = 99
        event = {"chosen_options": [option], "params_input": {}, **ANSWER}
        if option == "Reject":
            with pytest.raises(ApprovalError, match="ann has rejected it"):
                fleet.worker.run(fleet.task("approve_fleet"), after=parked, event=event)
            return
        fleet.worker.run(fleet.task("approve_fleet"), after=parked, event=event)
        assert fleet.worker.xcoms["approve_fleet", "return_value"]["by"] == "ann"
        assert fleet.worker.xcoms["approve_fleet", "approved"]["orders"]["lost_at_most"] == 0

    @pytest.mark.parametrize(("approved", "asks"), [({}, True), ({"orders": 5}, False)])
    def test_a_job_asks_above_what_was_approved_for_it(
        self, fleet: Fleet, approved: dict[str, int], *, asks: bool
    ) -> None:
        """Where nobody was asked, its own thresholds alone count."""
        fleet.begin()
        numbers = {"refused": 0, "read_again_at_most": 5, "lost_at_most": None}
        fleet.worker.xcoms["approve_fleet", "approved"] = dict.fromkeys(approved, numbers)
        fleet.step("orders", "turn")
        fleet.move("orders", *STEPS[:3])
        mover = Mover(fleet.jobs["orders"], "mm2_fleet:manual__1", PLANNED, UPath)
        more = {"refused": 0, "read_again_at_most": 5, "lost_at_most": 0}
        mover.record(mover.find(), Event.NOTE, numbers=more)
        expected = ASKS if asks else {"SucceedTask"}
        assert fleet.step("orders", "move.approve").type in expected

    def test_never_counts_for_each_job(self, fleet: Fleet) -> None:
        """The preview was above the thresholds, and so is the plan."""
        fleet.ask(approve="never")
        assert self.ask(fleet).type == "SucceedTask"
        fleet.run("jobs_of_wave_1")
        fleet.step("orders", "turn")
        fleet.move("orders", *STEPS[:3])
        mover = Mover(fleet.jobs["orders"], "mm2_fleet:manual__1", PLANNED, UPath)
        mover.record(mover.find(), Event.NOTE, numbers={"refused": 3})
        assert fleet.step("orders", "move.approve").type == "SucceedTask"


class TestTurn:
    """When a job begins."""

    def test_a_job_waits_for_a_place_and_for_what_it_is_after(self, fleet: Fleet) -> None:
        """Of two at once the third waits until one has ended, however it ended."""
        fleet.write({"orders": {}, "refunds": {}, "search": {"after": ["orders"]}})
        fleet.ask(at_once=2)
        fleet.begin()
        assert fleet.step("orders", "turn").type == "SucceedTask"
        assert fleet.step("refunds", "turn").type == "SucceedTask"
        fleet.worker.states = {f"{END}_1": "failed"}
        assert fleet.step("search", "turn").type == "DeferTask"
        fleet.worker.states |= {f"{END}_0": "success"}
        fleet.settle("orders", *GONE)
        assert fleet.step("search", "turn").type == "SucceedTask"

    def test_jobs_behind_a_job_free_no_place_for_it(self, fleet: Fleet) -> None:
        """They had ended when the jobs before them were cleared."""
        fleet.write({name: {} for name in NAMES})
        fleet.ask(at_once=1)
        fleet.begin()
        fleet.worker.states = {f"{END}_2": "success"}
        assert fleet.step("orders", "turn").type == "SucceedTask"
        assert fleet.step("refunds", "turn").type == "DeferTask"

    def test_a_job_behind_that_is_at_work_takes_a_place(self, fleet: Fleet) -> None:
        """Its earlier neighbour failed, which let it begin, and was cleared then."""
        fleet.ask(at_once=1)
        fleet.begin()
        fleet.worker.states = {"wave_1.turn_1": "success"}
        assert fleet.step("orders", "turn").type == "DeferTask"
        fleet.worker.states |= {f"{END}_1": "failed"}
        assert fleet.step("orders", "turn").type == "SucceedTask"

    def test_no_place_at_all_is_refused(self, fleet: Fleet) -> None:
        """Each job would wait for a day."""
        fleet.begin()
        vars(fleet.task("wave_1.turn"))["at_once"] = 0
        with pytest.raises(ConfigurationError, match="at_once is 0; give a number from 1"):
            fleet.step("orders", "turn")

    @pytest.mark.parametrize("state", ["failed", "skipped", "success"])
    @pytest.mark.parametrize("wave", [1, 2])
    def test_a_job_after_one_that_was_not_moved_is_refused(
        self, fleet: Fleet, wave: int, state: str
    ) -> None:
        """A task that was skipped, or marked as success by hand, moves nothing."""
        fleet.write({"orders": {}, "refunds": {"after": ["orders"], "wave": wave}})
        fleet.begin()
        fleet.run(f"jobs_of_wave_{wave}")
        fleet.worker.states = {f"{END}_0": state}
        with pytest.raises(HandoverError, match=r"job refunds moves after orders.*Move it to"):
            fleet.step("refunds", "turn", wave)
        fleet.settle("orders", *GONE)
        assert fleet.step("refunds", "turn", wave).type == "SucceedTask"


class TestOrder:
    """A reader moves before the writer of its topic, whatever was cleared or marked by hand."""

    @pytest.mark.parametrize("events", [(), GONE[:1], GONE[:2], GONE])
    def test_a_reader_of_a_writer_that_has_left_is_refused(
        self, fleet: Fleet, events: tuple[Event, ...]
    ) -> None:
        """Or is about to: it was moved alone."""
        fleet.write(READER_AND_WRITER)
        fleet.begin()
        fleet.settle("refunds", *events)
        with pytest.raises(HandoverError, match="refunds writes a topic that job orders reads"):
            fleet.step("orders", "turn")

    @pytest.mark.parametrize("step", ["check", "stop_source", "translate", "start_target"])
    def test_each_step_asks_again(self, fleet: Fleet, step: str) -> None:
        """The writer has left after the turn; nothing is started."""
        fleet.write(READER_AND_WRITER)
        fleet.begin()
        fleet.step("orders", "turn")
        if step in STEPS[1:]:
            fleet.move("orders", *STEPS[: STEPS.index(step)])
        fleet.settle("refunds", *GONE)
        with pytest.raises(HandoverError, match="refunds writes a topic that job orders reads"):
            fleet.step("orders", f"move.{step}")
        assert not fleet.worker.triggered

    def test_a_turn_that_was_marked_by_hand_decides_nothing(self, fleet: Fleet) -> None:
        """The first step of the move asks the journals itself."""
        fleet.write(READER_AND_WRITER)
        fleet.begin()
        with pytest.raises(HandoverError, match="job refunds moves after orders"):
            fleet.step("refunds", "move.check")
        assert fleet.entries("refunds") == []

    def test_a_reader_that_was_handed_over_is_not_held_by_its_writer(self, fleet: Fleet) -> None:
        """All its tasks may be cleared after the writer was moved, too: it starts nothing again."""
        fleet.write(READER_AND_WRITER)
        fleet.begin()
        fleet.step("orders", "turn")
        fleet.move("orders")
        fleet.settle("refunds", *GONE)
        assert fleet.step("orders", "turn").type == "SucceedTask"
        fleet.step("orders", "move.start_target")
        assert len(fleet.worker.triggered) == 1


class TestReport:
    """One row for each job, by its journal."""

    def rows(self, fleet: Fleet) -> dict[str, str]:
        """Report a fleet of which jobs are left; return their outcomes."""
        with pytest.raises(AirflowFailException, match="Correct what the report says of each"):
            fleet.run("report_fleet")
        report = fleet.worker.xcoms["report_fleet", "return_value"]
        return {job["name"]: job["outcome"] for job in report["jobs"]}

    def test_it_names_every_job(self, fleet: Fleet) -> None:
        """One was moved, one is stopped, and one was not reached."""
        fleet.begin()
        vars(fleet.task("report_fleet"))["reports"] = str(fleet.folder / "reports")
        fleet.step("orders", "turn")
        fleet.move("orders")
        fleet.arrive("orders")
        fleet.step("refunds", "turn")
        fleet.move("refunds", *STEPS[:2])
        outcomes = {"orders": "moved", "refunds": "stopped", "search": "not begun"}
        assert self.rows(fleet) == outcomes
        report = fleet.worker.xcoms["report_fleet", "return_value"]
        assert report["totals"] == {"jobs": 3, "there": 1}
        orders = report["jobs"][0]
        assert (orders["read_again_at_most"], orders["lost_at_most"], orders["next"]) == (0, 0, "")
        assert "clear it to go on" in report["jobs"][1]["next"]
        markdown = next(fleet.folder.glob("reports/*.md")).read_text()
        assert "# Fleet: 1 of 3 jobs are at target" in markdown
        assert "| search | 2 | not begun | ? | ? | ? |" in markdown

    def test_a_fleet_that_is_there_succeeds(self, fleet: Fleet) -> None:
        """Whichever run has moved its jobs."""
        for name in NAMES:
            fleet.settle(name, *GONE)
        fleet.begin()
        report = fleet.run("report_fleet")
        assert {job["outcome"] for job in report["jobs"]} == {"there already"}

    def test_a_job_that_has_left_since_is_not_credited(self, fleet: Fleet) -> None:
        """It was moved by this run, and came home."""
        fleet.begin()
        fleet.settle("orders", *GONE, run="mm2_fleet:manual__1")
        fleet.settle("orders", *GONE, run="mm2_failover:home")
        assert self.rows(fleet)["orders"] == "not there"

    def test_a_failed_task_of_a_moved_job_fails_it(self, fleet: Fleet) -> None:
        """As a verification after the move."""
        for name in NAMES[1:]:
            fleet.settle(name, *GONE)
        fleet.begin()
        fleet.settle("orders", *GONE)
        fleet.worker.states = {f"{END}_0": "failed"}
        with pytest.raises(AirflowFailException, match="has failed: orders"):
            fleet.run("report_fleet")

    def test_a_job_without_a_journal_that_can_be_read_is_unknown(self, fleet: Fleet) -> None:
        """The others have their rows."""
        fleet.begin()
        folder = Path(fleet.jobs["refunds"].journal)
        folder.mkdir(parents=True)
        (folder / "000001.json").write_text("{")
        assert self.rows(fleet) == {
            "orders": "not begun",
            "refunds": "unknown",
            "search": "not begun",
        }


def test_a_dry_run_changes_nothing(fleet: Fleet) -> None:
    """Each step says what it would do, in every wave."""
    fleet.write({"orders": {}, "refunds": {}, "search": {"wave": 2, "after": ["orders"]}})
    fleet.ask(dry_run=True)
    before = _files(fleet.folder)
    fleet.begin()
    fleet.run("jobs_of_wave_2")
    assert fleet.step("search", "turn", 2).type == "SucceedTask"
    fleet.move("search", wave=2)
    intent = fleet.worker.xcoms["wave_2.move.stop_source", INTENT]
    assert intent.startswith("stop job search at source")
    report = fleet.run("report_fleet")
    assert {job["outcome"] for job in report["jobs"]} == {"dry run"}
    assert _files(fleet.folder) == before


def test_a_job_is_named_in_airflow(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of its tasks bears the job's name in place of a number."""
    fleet.begin()
    sent: list[Any] = []
    answer = fleet.worker.send

    def record(msg: object) -> object:
        sent.append(getattr(msg, "rendered_map_index", None))
        return answer(msg)

    monkeypatch.setattr(fleet.worker, "send", record)
    for step in ("turn", "move.report"):
        with suppress(AirflowFailException):  # nothing was moved
            fleet.step("refunds", step)
        assert set(filter(None, sent)) == {"refunds"}
        sent.clear()


def test_the_report_waits_for_every_job_of_every_wave(fleet: Fleet) -> None:
    """A failure ends the later waves at once, while its neighbours are still at work."""
    ends = {f"wave_{wave}.move.report" for wave in (1, 2, 3)}
    assert fleet.dag.get_task("report_fleet").upstream_task_ids == {*ends, "preview"}
    for wave in (2, 3):
        before = fleet.dag.get_task(f"jobs_of_wave_{wave}").upstream_task_ids
        assert before == {"preview", f"wave_{wave - 1}.move.report"}


def test_the_form_has_few_params(fleet: Fleet) -> None:
    """A person on call reads all of them."""
    assert len(fleet.dag.params) <= 8


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"arguments": {"trun": {}}}, "names trun; name one of preview"),
        ({"arguments": {"translate": {"pre_execute": print}}}, "gives pre_execute to translate"),
        ({"waves": 0}, "waves is 0"),
    ],
)
def test_wrong_arguments_are_refused_at_once(arguments: dict[str, Any], problem: str) -> None:
    """While the DAG is parsed."""
    with DAG("evacuate", schedule=None), pytest.raises(ConfigurationError, match=problem):
        fleet_tasks(to="west", **arguments)


def _files(folder: Path) -> dict[str, float]:
    return {str(path): path.stat().st_mtime for path in folder.rglob("*") if path.is_file()}
