"""The numbered fences of a control location, as a driver obeys them."""

from pathlib import Path
from typing import Any, cast

import pytest

from airflow_mm2_offsets.job import StopControl
from airflow_mm2_offsets.job.stop.fences import Fence, Fences, JobMovedError
from tests.support.stop_step import JOURNAL, RUN, StopStep
from tests.unit.job.drivers import Files, driver

OFFSETS = '{"orders":{"0":42}}'
FIRST, SECOND = f"{RUN}#1", f"{RUN}#5"


class _Files(Files):
    """A control location that lists what it is told to, and counts what is read."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.reads: list[str] = []
        self.listing: list[str] | None = None

    def names_in(self, folder: str) -> list[str]:
        return super().names_in(folder) if self.listing is None else self.listing

    def read(self, name: str) -> Any:  # noqa: ANN401 - as JSON has it
        self.reads.append(name)
        return super().read(name)


@pytest.fixture
def step(tmp_path: Path) -> StopStep:
    return StopStep(tmp_path / "control")


@pytest.fixture
def files(step: StopStep) -> _Files:
    return _Files(step.control)


@pytest.fixture
def fences(files: _Files, tmp_path: Path) -> Fences:
    return Fences(cast("Any", files), str(tmp_path))


def test_a_home_without_fences_is_open(fences: Fences) -> None:
    """There is no folder yet: the job was never moved."""
    fences.begin()
    assert fences.look() == Fence()


def test_the_highest_number_counts(step: StopStep, fences: Fences) -> None:
    """A run that writes late writes a lower number; a million entries have a digit more."""
    step.let_run(FIRST, number=999_999)
    step.let_run(SECOND, number=1_000_000)
    step.move()
    step.fence("moved", FIRST, number=999_998)
    (step.control / "fence" / "1000001.json").unlink()
    fences.begin()
    assert fences.look().number == 1_000_000


@pytest.mark.parametrize(
    "name",
    ["0000002.json", "2.json", "000002.json.tmp", ".000002.json", "٠٠٠٠٠٢.json", "a000002.json"],
)
def test_other_names_are_ignored(step: StopStep, fences: Fences, name: str) -> None:
    """Temporary files, and numbers that the journal does not write."""
    step.let_run()
    (step.control / "fence" / name).write_text('{"state": "moved"}')
    fences.begin()
    assert fences.look().number == 1


def test_each_file_is_read_once(step: StopStep, files: _Files, fences: Fences) -> None:
    """A look is one listing: a job looks every two seconds for months."""
    step.move()
    step.let_run()
    fences.begin()
    step.ask(FIRST)
    for _ in range(3):
        assert fences.look().state == "stopping"
    assert files.reads == ["fence/000002.json", "fence/000003.json"]


@pytest.mark.parametrize("state", ["stopping", "moved"])
def test_a_fence_keeps_a_job_from_starting(
    step: StopStep, fences: Fences, tmp_path: Path, state: str
) -> None:
    """The error names run, target, time, and the command that lets the job run."""
    step.fence(state, FIRST, at="2026-11-28T02:12:10+00:00")
    with pytest.raises(JobMovedError) as refused:
        fences.begin()
    assert f"moved to the target by {FIRST} at 2026-11-28T02:12:10+00:00" in str(refused.value)
    command = f"airflow-mm2-offsets jobs settle --journal {JOURNAL} --at {tmp_path}"
    assert str(refused.value).endswith(f"stop the job at the other home first, and then: {command}")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "{}",
        '{"state": "gone"}',
        '{"state": "stopping"}',
        '{"state": "open", "at": 1}',
    ],
)
def test_a_damaged_fence_counts(step: StopStep, fences: Fences, text: str) -> None:
    """Empty, cut off or unknown: it keeps a job from starting, and ends one that runs."""
    step.let_run()
    fences.begin()
    damaged = step.control / "fence" / "000002.json"
    damaged.write_text(text)
    for obey in (fences.look, fences.begin):
        with pytest.raises(JobMovedError, match=r"000002.json is damaged.*--journal <journal>"):
            obey()


def test_a_fence_of_protocol_1_keeps_a_job_from_starting(step: StopStep, fences: Fences) -> None:
    """Numbered fences do not take its place: it may say that the job runs elsewhere."""
    step.let_run()
    (step.control / "fence.json").touch()
    with pytest.raises(JobMovedError, match=r"fence.json is a fence of an earlier release.*Delete"):
        fences.begin()
    (step.control / "fence.json").unlink()
    fences.begin()


def test_an_outdated_listing_takes_nothing_back(
    step: StopStep, files: _Files, fences: Fences
) -> None:
    """A fence that was seen once counts."""
    fences.begin()
    step.ask(FIRST)
    assert fences.look().request_id == FIRST
    files.listing = []
    assert fences.look().request_id == FIRST


def test_a_fence_that_is_listed_and_not_there_is_looked_for_again(
    step: StopStep, files: _Files, fences: Fences
) -> None:
    """Until it can be read nothing is known, so the look fails."""
    fences.begin()
    files.listing = ["000001.json"]
    with pytest.raises(OSError, match=r"000001.json is listed, and can't be read"):
        fences.look()
    step.move()
    with pytest.raises(JobMovedError):
        fences.look()


def test_a_driver_that_was_paused_while_the_job_was_away_ends(
    step: StopStep, fences: Fences, tmp_path: Path
) -> None:
    """The newest fence is open, but for a driver that begins where the job is now."""
    fences.begin()
    step.ask(FIRST)
    step.move()
    step.let_run(SECOND)
    for _ in range(2):
        with pytest.raises(JobMovedError, match=rf"may run at {tmp_path} again.*start another one"):
            fences.look()
    fences.begin()
    assert fences.look().state == "open"


def test_a_stop_that_was_withdrawn_ends_no_driver(step: StopStep, fences: Fences) -> None:
    """The later fence repeats the offsets of the hand-over."""
    step.let_run(FIRST, starting_offsets=OFFSETS)
    fences.begin()
    step.ask(SECOND)
    step.let_run(SECOND, starting_offsets=OFFSETS)
    assert fences.look().number == 3


def test_a_fence_that_is_written_late_ends_no_driver(step: StopStep, fences: Fences) -> None:
    """The job was moved away before it came back here: only fences after the driver's count."""
    step.let_run(SECOND, number=6)
    fences.begin()
    step.fence("moved", FIRST, number=3)
    assert fences.look().number == 6


Written = tuple[str, dict[str, Any]]
AWAY: Written = ("moved", {})
BACK: Written = ("open", {"starting_offsets": OFFSETS, "topics": "eu.orders"})
WITHDRAWN: tuple[Written, ...] = (("stopping", {}), BACK)


@pytest.mark.parametrize(
    ("written", "offsets"),
    [
        ([], None),
        ([BACK], OFFSETS),
        ([AWAY, BACK], OFFSETS),
        # The driver of the hand-over may not have begun a batch.
        ([AWAY, BACK, *WITHDRAWN, *WITHDRAWN], OFFSETS),
        # No job was ever handed over to this home.
        ([("stopping", {}), ("open", {})], None),
    ],
)
def test_the_job_starts_where_it_was_handed_over(
    step: StopStep,
    monkeypatch: pytest.MonkeyPatch,
    written: list[Written],
    offsets: str | None,
) -> None:
    """At what the newest hand-over to this home says, or else as the job itself says."""
    step.control.mkdir()
    for number, (state, fields) in enumerate(written, 1):
        step.fence(state, f"{RUN}#{number}", **fields)
    control = driver(monkeypatch, step.control, "app-1")
    control._start()  # noqa: SLF001 - what constructing it does
    assert control.starting_offsets() == (offsets or "earliest")
    assert control.starting_offsets("latest") == (offsets or "latest")
    assert control.topics("orders") == ("eu.orders" if offsets else "orders")


def test_the_offsets_are_those_that_the_driver_began_under(
    step: StopStep, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stop that comes before the query is started does not let it begin at the default."""
    step.control.mkdir()
    step.let_run(FIRST, starting_offsets=OFFSETS)
    control = driver(monkeypatch, step.control, "app-1")
    control._start()  # noqa: SLF001 - as above
    step.ask(SECOND)
    assert control.starting_offsets() == OFFSETS


@pytest.mark.parametrize("home", ["s3a://lake/orders", "s3a://lake/orders/"])
def test_a_home_names_its_folders(monkeypatch: pytest.MonkeyPatch, home: str) -> None:
    """Checkpoint, control location and output are folders in it."""
    opened: list[str] = []

    def files(_spark: object, location: str) -> Files:
        opened.append(location)
        return Files(Path("/nowhere"))

    module = StopControl.__module__
    monkeypatch.setattr(f"{module}.HadoopFiles", files)
    monkeypatch.setattr(f"{module}.Heartbeat", lambda *_: None)
    monkeypatch.setattr(StopControl, "_start", lambda _: None)
    control = StopControl(cast("Any", None), home)
    assert opened == ["s3a://lake/orders/control"]
    assert control.home == "s3a://lake/orders"
    assert control.checkpoint == "s3a://lake/orders/checkpoint"
    assert control.output == "s3a://lake/orders/output"
