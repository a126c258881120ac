"""The folders of a job's home, told from copies of them.

A copy (a backup, an old path, a replica in another bucket) shows an old state of a job: that it has
ended, or has answered a stop. Meanwhile the job may run elsewhere. So the job writes where its
locations are, and check, stop and hand-over compare.
"""

from collections.abc import Callable
from dataclasses import dataclass

from upath import UPath

from airflow_mm2_offsets.errors import StopError
from airflow_mm2_offsets.job.liveness import next_beat
from airflow_mm2_offsets.locations import beside, same_folder, spark_location
from airflow_mm2_offsets.moves.fences import read_fence
from airflow_mm2_offsets.moves.jobs import Home
from airflow_mm2_offsets.spark.control import (
    Acknowledgement,
    Driver,
    StopProof,
    read_driver,
    read_last_acknowledgement,
)
from airflow_mm2_offsets.spark.control_files import field_of, read_object
from airflow_mm2_offsets.spark.lost_storage import why_lost
from airflow_mm2_offsets.storage import storage_errors


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFolders:
    """A home's two folders as Airflow reaches them, and as Spark names them where that differs."""

    control: UPath
    checkpoint: UPath
    spark_control: str | None = None
    """The folder that the user says ``control`` is to Spark: a mount, another name node..."""
    spark_checkpoint: str | None = None
    """The same of the checkpoint location."""
    checkpoint_is_lost: bool = False
    """In a disaster: nothing beside the checkpoint can be read; only names are compared."""

    @classmethod
    def of(
        cls, home: Home, open_path: Callable[[str], UPath], *, may_be_lost: bool = False
    ) -> "JobFolders":
        """Return the folders of a home; ``may_be_lost``: its checkpoint may be gone."""
        checkpoint = open_path(home.checkpoint)
        return cls(
            control=open_path(home.control),
            checkpoint=checkpoint,
            spark_control=home.spark_name("control"),
            spark_checkpoint=home.spark_name("checkpoint"),
            checkpoint_is_lost=may_be_lost and why_lost(checkpoint) is not None,
        )

    def problems(self, driver: Driver) -> list[str]:
        """Return why either location may be a copy, as sentences."""
        return [*filter(None, (self.control_problem(driver), self.checkpoint_problem(driver)))]

    def control_problem(self, driver: Driver) -> str | None:
        """Return why the control location may be a copy; None if the driver names the same."""
        written = [driver.control] if driver.control else []
        return _copy_problem("control", self.control, self.spark_control, written)

    def checkpoint_problem(self, driver: Driver) -> str | None:
        """Return why the checkpoint may be a copy; None if it is the one of a driver's query."""
        written = sorted(driver.checkpoints.values())
        return _copy_problem("checkpoint", self.checkpoint, self.spark_checkpoint, written)

    def note_problem(self, driver: Driver) -> str | None:
        """Return a problem if the note beside the checkpoint names another control location.

        Raises:
            StopError: The note can't be read.
        """
        if self.checkpoint_is_lost:
            return None
        path = beside(self.checkpoint, "control.json")
        note = read_object(path, may_be_empty=True)
        noted = field_of(note, "control", str, path) if note else driver.control
        # The job has written both; Airflow may reach the folder by another name.
        if noted == driver.control or same_folder(self.control, noted):
            return None
        return (
            f"{path} says that the job runs with the control location {noted}, and not with "
            f"{self.control}: a stop there would not reach it. Give {noted}; only if no job runs "
            f"with that one any more, delete {path}"
        )


def _copy_problem(kind: str, path: UPath, spark_name: str | None, written: list[str]) -> str | None:
    if not written:
        return (
            f"the job in {path} does not write where its {kind} location is, so a copy would look "
            f"the same: start the job with this release's files"
        )
    named = (spark_location(spark_name) or UPath(spark_name)) if spark_name else path
    if any(same_folder(named, location) for location in written):
        return None
    return (
        f"{spark_name or path} is not the {kind} location of the job, which writes to "
        f"{', '.join(written)}: a copy does not show where the job is now. Give the job's own; "
        f"only if Airflow reaches that one as {path}, give the home a spark_folder that leads to "
        f"{written[0]}"
    )


def is_beating(control: UPath, driver: Driver) -> bool:
    """Wait for another heartbeat, as long as a driver that lives may need for one.

    Raises:
        StopError: The control location can't be read.
    """
    if driver.ended:
        return False
    beat = next_beat(lambda: read_driver(control), driver, driver.interval)
    return beat is not None and not beat.ended


def check_before_stop(folders: JobFolders, request_id: str) -> None:
    """Raise if a job counts as stopped already, and its control location may be a copy.

    A stop that this run has begun in this folder before was checked then.

    Raises:
        StopError: No job has ever run there; the driver names another location, or no location; the
            job runs with another control location; or the location can't be read.
    """
    control = folders.control
    with storage_errors(control, StopError):
        exists = control.exists()
    if not exists:
        raise StopError("no job has ever run here; is it the job's folder?", file=str(control))
    fence, driver = read_fence(control), read_driver(control)
    if driver is None or (fence is not None and fence.request_id == request_id):
        return
    if problem := folders.note_problem(driver):
        raise StopError(problem)
    last = read_last_acknowledgement(control)
    is_answered = last is not None and last.answers(request_id, driver)
    if (driver.ended or is_answered) and (problem := folders.control_problem(driver)):
        raise StopError(problem)


def check_stopped(
    folders: JobFolders,
    request_id: str,
    driver: Driver | None,
    answer: Acknowledgement | None,
    *,
    agrees: bool,
) -> None:
    """Raise unless a stop's proof is about the job, and not about a copy of its folders.

    A job that has answered this stop has read the request in this control location. An answer that
    ``agrees`` with the checkpoint's last batch proves the checkpoint. Otherwise the names that the
    job has written count.

    Raises:
        StopError: The driver names other locations, or no location; or the job runs with another
            control location by now.
    """
    if driver is None:
        return
    problems = [folders.note_problem(driver)]
    if not _answers_here(folders.control, request_id, answer):
        problems.append(folders.control_problem(driver))
    if not agrees:
        problems.append(folders.checkpoint_problem(driver))
    if sentences := [*filter(None, problems)]:
        raise StopError("; ".join(sentences))


def _answers_here(control: UPath, request_id: str, answer: Acknowledgement | None) -> bool:
    """Tell whether the job has answered a stop that was requested in this folder, not in a copy."""
    if answer is None or (answer.request_id, answer.proof) != (request_id, StopProof.ACKNOWLEDGED):
        return False
    fence = read_fence(control)
    if fence is None or fence.request_id != request_id:
        return False
    return same_folder(control, f"{fence.home}/control")


def find_unproved(folders: JobFolders, driver: Driver, answer: Acknowledgement | None) -> list[str]:
    """Return which location is neither proved by the stop nor, without a proof, the driver's.

    Raises:
        StopError: The note beside the checkpoint can't be read.
    """
    if problem := folders.note_problem(driver):
        return [problem]
    if answer is None or answer.proved_control is None or answer.proved_checkpoint is None:
        return folders.problems(driver)
    proved = {
        folders.control: answer.proved_control,
        folders.checkpoint: answer.proved_checkpoint,
    }
    return [
        f"{path} is not {proof}, for which the stop was proved: give every task the same location"
        for path, proof in proved.items()
        if not same_folder(path, proof)
    ]
