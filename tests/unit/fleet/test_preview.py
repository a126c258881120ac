"""What a preview reads: the syncs topic once, whatever the number of jobs."""

from dataclasses import replace
from pathlib import Path

import pytest
from upath import UPath

from airflow_mm2_offsets.archive import SyncArchive, incremental_read
from airflow_mm2_offsets.archive.update import archive_syncs
from airflow_mm2_offsets.core.mode import FailoverMode
from airflow_mm2_offsets.fleet.job import FleetJob
from airflow_mm2_offsets.fleet.preview import JobPreview, PreviewRequest, preview_fleet
from airflow_mm2_offsets.kafka import sync_log
from airflow_mm2_offsets.planning.options import PlanOptions
from airflow_mm2_offsets.planning.plan import plan_failover
from airflow_mm2_offsets.testing import Mm2Simulation, Record
from tests.support.foreign_checkpoints import NOTINGS, Noting
from tests.unit.fleet.manifests import job
from tests.unit.operators.clusters import _NAMING
from tests.unit.spark import checkpoints

JOBS = 5
SYNCS = 40


class Fleet:
    """Jobs that read a topic each, of which MirrorMaker 2 has copied everything."""

    def __init__(self, folder: Path) -> None:
        self.simulation = Mm2Simulation(_NAMING)
        self.pair = replace(self.simulation.pair, connect=None)
        self.archive = SyncArchive(UPath(folder / "archive"))
        self.jobs = [self._job(folder, f"topic{number}") for number in range(JOBS)]

    def _job(self, folder: Path, topic: str) -> FleetJob:
        for cluster in (self.simulation.source, self.simulation.target):
            cluster.create_topic(topic, partitions=1)
            cluster.produce(topic, 0, [Record(b"%d" % number, b"") for number in range(SYNCS)])
        for number in range(SYNCS):
            self.simulation.write_sync(topic, 0, number, number)
        self.write_checkpoint(folder / topic / "checkpoint", topic)
        return job(
            topic, source_folder=str(folder / topic), target_folder=str(folder / "t" / topic)
        )

    @staticmethod
    def write_checkpoint(location: Path, topic: str, position: int = SYNCS) -> None:
        line = f'{{"{topic}":{{"0":{position}}}}}'
        files = {"offsets/0": checkpoints.batch(line), "commits/0": checkpoints.commit()}
        checkpoints.write(location, {"sources/0/0": checkpoints.start(line), **files})

    def preview(
        self, *, mode: FailoverMode = FailoverMode.PLANNED, give_up: int = 0
    ) -> tuple[JobPreview, ...]:
        return preview_fleet(
            self.jobs,
            PreviewRequest(
                pair=self.pair,
                mode=mode,
                options=PlanOptions(archive=self.archive, give_up=give_up),
                open_place=UPath,
            ),
        )

    def pass_over(self, number: int) -> None:
        """Let each topic have so many records more that were not copied, and one that was."""
        for each in self.jobs:
            records = [Record(b"more %d" % one, b"") for one in range(number + 1)]
            self.simulation.source.produce(each.name, 0, records)
            self.simulation.target.produce(each.name, 0, records[-1:])
            self.simulation.write_sync(each.name, 0, SYNCS + number, SYNCS)


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    return Fleet(tmp_path)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many records of the syncs topic each read has taken."""
    counts: list[int] = []
    read = sync_log.read_syncs_topic

    def counted(*arguments: object, **named: object) -> object:
        result = read(*arguments, **named)  # type: ignore[arg-type]
        counts.append(result.records_read)
        return result

    monkeypatch.setattr(incremental_read, "read_syncs_topic", counted)
    return counts


def test_the_syncs_topic_is_read_once_for_all(fleet: Fleet, reads: list[int]) -> None:
    """The archive takes all; the preview and each job's plan take what is new since: nothing."""
    archive_syncs(fleet.pair, fleet.archive)
    fleet.preview()
    for each in fleet.jobs:
        options = PlanOptions(archive=fleet.archive)
        plan_failover(fleet.pair, {each.name: {0: SYNCS}}, options=options)
    assert reads == [JOBS * SYNCS, 0, *(0 for _ in fleet.jobs)]
    fleet.simulation.write_sync("topic0", 0, SYNCS, SYNCS)
    fleet.preview()
    assert reads[-1] == 1


def test_jobs_of_one_topic_partition_are_planned_apart(fleet: Fleet, tmp_path: Path) -> None:
    """A plan holds one position of each; both jobs get their own."""
    archive_syncs(fleet.pair, fleet.archive)
    second = tmp_path / "second"
    fleet.write_checkpoint(second / "checkpoint", "topic0", position=7)
    fleet.jobs.append(job("second", source_folder=str(second)))
    plans = {each.job.name: each.plan for each in fleet.preview()}
    positions = {
        name: plan.source_positions()["topic0"][0]
        for name, plan in plans.items()
        if plan and name in {"topic0", "second"}
    }
    assert positions == {"topic0": SYNCS, "second": 7}


def test_one_job_that_can_not_be_planned_holds_no_other(fleet: Fleet) -> None:
    """Its topic is gone: they are planned one by one, and it has a problem of its own."""
    archive_syncs(fleet.pair, fleet.archive)
    fleet.write_checkpoint(Path(fleet.jobs[1].checkpoint), "gone")
    first, broken, *_ = fleet.preview()
    assert (first.problem, first.refused, first.read_again, first.at_risk) == (None, 0, 0, 0)
    assert "gone" in str(broken.problem)
    assert (broken.refused, broken.read_again, broken.at_risk) == (None, None, None)


def test_what_is_not_copied_yet_has_no_cost_yet(fleet: Fleet) -> None:
    """A failover waits for it; it is no refusal to be approved."""
    archive_syncs(fleet.pair, fleet.archive)
    fleet.simulation.source.produce("topic0", 0, [Record(b"new", b"")] * 3)
    fleet.write_checkpoint(Path(fleet.jobs[0].checkpoint), "topic0", position=SYNCS + 3)
    first, *_ = fleet.preview()
    assert (first.not_copied_yet, first.refused, first.read_again) == (1, 0, 0)


def test_a_disaster_forecasts_each_job(fleet: Fleet) -> None:
    """What the source has and the target lacks is at risk, of that job alone."""
    archive_syncs(fleet.pair, fleet.archive)
    fleet.simulation.source.produce("topic0", 0, [Record(b"new", b"")] * 3)
    first, second, *_ = fleet.preview(mode=FailoverMode.DISASTER)
    assert (first.at_risk, second.at_risk) == (3, 0)
    assert first.not_copied_yet == 0


@pytest.mark.parametrize("mode", [FailoverMode.PLANNED, FailoverMode.DISASTER])
@pytest.mark.parametrize("note", NOTINGS)
def test_a_job_that_reads_the_target_is_not_planned(
    fleet: Fleet, note: Noting, mode: FailoverMode
) -> None:
    """Its checkpoint is of the other cluster: the preview names the file that says so."""
    file = note(Path(fleet.jobs[0].checkpoint), fleet.simulation.target)
    first, *others = fleet.preview(mode=mode)
    assert first.plan is None
    assert first.problem is not None
    assert file in first.problem
    assert all(each.problem is None for each in others)


@pytest.mark.parametrize("mode", [FailoverMode.PLANNED, FailoverMode.DISASTER])
def test_what_the_jobs_may_give_up_counts_for_each(fleet: Fleet, mode: FailoverMode) -> None:
    """As in the plan of each job alone; the total to be approved has it as records at risk."""
    fleet.pass_over(3)
    archive_syncs(fleet.pair, fleet.archive)
    given_up = fleet.preview(mode=mode, give_up=3)
    assert [(each.refused, each.at_risk) for each in given_up] == [(0, 3)] * JOBS
    assert [each.refused for each in fleet.preview(mode=mode, give_up=2)] == [1] * JOBS


@pytest.mark.parametrize("mode", [FailoverMode.PLANNED, FailoverMode.DISASTER])
def test_each_job_gives_up_its_own_number(fleet: Fleet, mode: FailoverMode) -> None:
    """What one job gives up counts for no other."""
    fleet.pass_over(3)
    archive_syncs(fleet.pair, fleet.archive)
    numbers = (0, 3, 0, 2, 4)
    fleet.jobs = [
        replace(each, give_up=number) for each, number in zip(fleet.jobs, numbers, strict=True)
    ]
    assert [each.refused for each in fleet.preview(mode=mode)] == [1, 0, 1, 1, 0]
