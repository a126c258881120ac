"""A forecast beside the truth: the source is lost at a random moment of a simulated mirror."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

import pytest

from airflow_mm2_offsets.archive import SyncArchive, incremental_read
from airflow_mm2_offsets.archive.update import archive_syncs
from airflow_mm2_offsets.core import FailoverPlan, SyncsLocation, TopicPartition
from airflow_mm2_offsets.core.forecast import FailoverForecast, ForecastRequest
from airflow_mm2_offsets.core.policy import DISASTER
from airflow_mm2_offsets.planning import forecast, lost_parts
from airflow_mm2_offsets.planning.forecast import forecast_failover
from airflow_mm2_offsets.planning.options import PlanOptions
from airflow_mm2_offsets.planning.partial_plan import plan_from_what_is_left
from airflow_mm2_offsets.testing import Mm2Simulation, simulated_mm2
from airflow_mm2_offsets.testing.logs import TargetLog
from airflow_mm2_offsets.testing.mirror import MirrorSettings

SEEDS = int(os.environ.get("MM2_OFFSETS_RUNS", "1000")) // 125
"""A world takes a quarter of a second: parts that don't answer are waited for."""
KEY = TopicPartition("orders", 0)
BEGAN = 1_800_000_000_000
MINUTE = 60_000


class Clock:
    """The time of archive and forecast: it only goes on when a world does."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.now = BEGAN
        for module in (incremental_read, forecast):
            patch.setattr(module, "now_in_milliseconds", lambda: self.now)
        patch.setattr(lost_parts, "PROBE_SECONDS", 0.02)


@dataclass
class World:
    """A mirror, its archive, and a job that reads the source."""

    simulation: Mm2Simulation
    archive: SyncArchive
    clock: Clock
    random: Random
    position: int = 0
    rate: int = 0
    """The most records that are written in a minute."""
    fastest: int = 0
    """The most offsets that a minute added."""

    def minute(self) -> None:
        """Let a minute pass: records are written, some are copied, and the job reads some."""
        source, random, rate = self.simulation.source, self.random, self.rate
        before = source.log(*KEY).high
        for _ in range(random.randrange(rate // 2, rate + 1)):
            source.produce("orders", 0, [b"value"])
            if random.random() < 0.02:
                source.skip_offsets("orders", 0, random.randrange(1, 4))
        self.simulation.mirror(max_records=random.randrange(2 * rate), commit=random.random() < 0.5)
        if random.random() < 0.1:
            self.simulation.restart_worker()
        if random.random() < 0.7:
            self.position = random.randint(self.position, source.log(*KEY).high)
        self.fastest = max(self.fastest, source.log(*KEY).high - before)
        self.clock.now += MINUTE

    def lost(self, plan: FailoverPlan) -> int:
        """Return how many records neither the source job nor the target job reads."""
        start = plan.partitions[0].start or 0
        target = self.simulation.target.log(*self.simulation.pair.on_target(KEY))
        assert isinstance(target, TargetLog)
        read = {entry.origin for entry in target.entries[start:]}
        records = self.simulation.source.records("orders", 0)
        return sum(offset not in read for offset in records if offset >= self.position)

    def read_again(self, plan: FailoverPlan) -> int:
        """Return how many records both jobs process, and the target job more than once."""
        start = plan.partitions[0].start or 0
        target = self.simulation.target.log(*self.simulation.pair.on_target(KEY))
        assert isinstance(target, TargetLog)
        return sum(0 <= entry.origin < self.position for entry in target.entries[start:])


@contextmanager
def world(seed: int, folder: Path, location: SyncsLocation) -> Iterator[World]:
    random = Random(seed)  # noqa: S311 - the same seed makes the same world
    with pytest.MonkeyPatch.context() as patch:
        settings = MirrorSettings(lag_max=random.choice((0, 5, 100)))
        with simulated_mm2(syncs_location=location, settings=settings) as simulation:
            pair = simulation.pair
            simulation.pair = replace(pair, source=replace(pair.source, timeout=0.02))
            archive = SyncArchive(str(folder / "archive"))
            made = World(simulation, archive, Clock(patch), random, rate=random.choice((20, 60)))
            simulation.source.create_topic("orders")
            for _ in range(random.randrange(3, 12)):
                made.minute()
                if random.random() < 0.6:
                    try:
                        archive_syncs(simulation.pair, archive)
                    except LookupError:
                        continue  # No sync was written yet.
            yield made
            shutil.rmtree(folder / "archive", ignore_errors=True)


def _forecast(made: World, plan: FailoverPlan, **request: object) -> FailoverForecast:
    about = ForecastRequest(
        policy=DISASTER,
        plan_digest=plan.to_json()["digest"],
        **request,  # type: ignore[arg-type]
    )
    return forecast_failover(made.simulation.pair, plan, about, archive=made.archive)


@pytest.mark.parametrize("location", list(SyncsLocation))
@pytest.mark.parametrize("kept_connect", [True, False])
def test_a_lost_source_costs_no_more_than_was_told(
    tmp_path: Path, location: SyncsLocation, *, kept_connect: bool
) -> None:
    """Lost records lie in the range while the rate is kept; records read again always do."""
    told = 0
    for seed in range(SEEDS):
        with world(seed, tmp_path, location) as made:
            simulation = made.simulation
            simulation.source.is_running = False
            simulation.connect.is_running = kept_connect
            positions = {"orders": {0: made.position}}
            options = PlanOptions(archive=made.archive)
            try:
                plan = plan_from_what_is_left(simulation.pair, positions, options=options)
            except LookupError:
                continue  # Neither the archive nor the topic holds a sync.
            if plan.refused:
                continue
            # Without the user's word: no minute has more than twice the records of another.
            max_rate = made.fastest / 60 if made.random.random() < 0.5 else None
            (line,) = _forecast(made, plan, max_rate=max_rate).partitions
            lost, again = made.lost(plan), made.read_again(plan)
            assert line.at_risk.at_least <= lost, (seed, line)
            assert line.read_again.at_most is not None
            assert line.read_again.at_least <= again <= line.read_again.at_most, (seed, line)
            if line.at_risk.at_most is not None:
                told += 1
                assert lost <= line.at_risk.at_most, (seed, lost, line)
    assert told > SEEDS // 3


def test_a_loss_before_the_source_was_last_seen_does_not_count(tmp_path: Path) -> None:
    """A person gives too early a time: what the archive has seen since is not left out."""
    seen = 0
    for seed in range(SEEDS):
        with world(seed, tmp_path, SyncsLocation.TARGET) as made:
            made.simulation.source.is_running = False
            positions = {"orders": {0: made.position}}
            options = PlanOptions(archive=made.archive)
            plan = plan_from_what_is_left(made.simulation.pair, positions, options=options)
            began = incremental_read.iso_time(BEGAN)
            told = _forecast(made, plan, lost_at=began)
            archived = [age.as_of for age in told.ages if age.fact == "archive"]
            seen += bool(archived)
            assert told.lost_at == max([began, *archived])
            assert any(
                f"lost_at, {began}, does not count" in each for each in told.assumptions
            ) is (told.lost_at != began)
    assert seen


def test_a_source_that_answers_is_told_narrowly(tmp_path: Path) -> None:
    """While the source answers, what is at risk is what it holds and the target does not."""
    for seed in range(SEEDS):
        with world(seed, tmp_path, SyncsLocation.TARGET) as made:
            positions = {"orders": {0: made.position}}
            plan = plan_from_what_is_left(made.simulation.pair, positions)
            if plan.refused:
                continue
            told = _forecast(made, plan)
            assert told.lost_at is None
            (line,) = told.partitions
            lost, again = made.lost(plan), made.read_again(plan)
            assert line.at_risk.at_most is not None
            assert line.read_again.at_most is not None
            assert line.at_risk.at_least <= lost <= line.at_risk.at_most, (seed, lost, line)
            assert again <= line.read_again.at_most, (seed, again, line)


def test_where_all_is_copied_nothing_is_at_risk(tmp_path: Path) -> None:
    """Planned: everything before the end is copied and committed, so both ranges are 0."""
    for seed in range(5):
        with world(seed, tmp_path, SyncsLocation.SOURCE) as made:
            made.simulation.mirror()
            made.position = made.simulation.source.log(*KEY).high
            plan = plan_from_what_is_left(made.simulation.pair, {"orders": {0: made.position}})
            told = _forecast(made, plan)
            assert (told.at_risk.at_least, told.at_risk.at_most) == (0, 0)
            assert (told.at_risk_seconds, told.lost_at) == (0.0, None)
            assert told.read_again.at_most == plan.max_reread == 0


def test_older_positions_are_read_again_to_the_end(tmp_path: Path) -> None:
    """The job went on after its positions were saved: what it may have processed counts."""
    for seed in range(SEEDS):
        with world(seed, tmp_path, SyncsLocation.TARGET) as made:
            saved = made.position
            made.minute()
            made.simulation.source.is_running = False
            plan = plan_from_what_is_left(
                made.simulation.pair,
                {"orders": {0: saved}},
                options=PlanOptions(archive=made.archive),
            )
            if plan.refused:
                continue
            told = _forecast(made, plan, positions_as_of="2027-01-15T08:00:00+00:00")
            assert told.read_again.at_most is not None
            assert made.read_again(plan) <= told.read_again.at_most
