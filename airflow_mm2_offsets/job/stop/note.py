"""``<checkpoint>.control.json``: which control location the job of a checkpoint runs with.

A job may be given another control location. What the old one says of it is not true any more; and
where the job was moved by the old one, no fence stands in the new one. The note shows both.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from airflow_mm2_offsets.job.files import HadoopFiles
from airflow_mm2_offsets.job.stop.heartbeat import STORAGE_ERRORS
from airflow_mm2_offsets.job.stop.requests import JobMovedError, moved_error
from airflow_mm2_offsets.job.stop.stream import summary

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)


class CheckpointNote:
    """The note beside a query's checkpoint.

    Args:
        open_files: Opens a directory.
        checkpoint: The checkpoint location, as Spark names it.
    """

    def __init__(self, open_files: Callable[[str], HadoopFiles], checkpoint: str) -> None:
        """Read the note that is there."""
        parent, _, name = checkpoint.rstrip("/").rpartition("/")
        self._open = open_files
        self._parent = f"{parent}/"
        self._name = f"{name}.control.json"
        self._earlier: dict[str, Any] | None = None
        try:
            self._earlier = self._read(self._parent, self._name)
        except STORAGE_ERRORS as error:
            log.warning("Can't read %s: %s", self.path, summary(error))

    @property
    def path(self) -> str:
        """Where it is."""
        return f"{self._parent}{self._name}"

    def check(self, control: str) -> None:
        """Raise where the job was moved away by another control location than its own.

        Args:
            control: Its own.

        Raises:
            JobMovedError: A fence stands there.
            OSError: It can't be read.
        """
        noted = (self._earlier or {}).get("control")
        if not noted or noted == control:
            return
        try:
            fence = self._read(noted, "fence.json")
        except STORAGE_ERRORS as error:
            raise OSError(
                f"{self.path} says that the job ran with the control location {noted}, which "
                f"can't be read, so it may have been moved away: {summary(error)}. If no fence "
                f"stands there, delete {self.path}"
            ) from error
        if fence is not None:
            raise moved_error(fence, noted)

    def write(self, control: str, application_id: str) -> None:
        """Note the control location that the job runs with; a job that may not write runs on."""
        said = {"schema_version": 1, "control": control, "application_id": application_id}
        self._write(said)

    def put_back(self) -> None:
        """Write the note that was there before."""
        if self._earlier is not None:
            self._write(self._earlier)

    def _read(self, folder: str, name: str) -> dict[str, Any] | None:
        files = self._open(folder)
        try:
            return files.read(name)
        finally:
            files.close()

    def _write(self, said: dict[str, Any]) -> None:
        try:
            files = self._open(self._parent)
            try:
                files.write(self._name, said)
            finally:
                files.close()
        except STORAGE_ERRORS as error:
            log.warning("Can't write %s: %s", self.path, summary(error))


def note_control(
    spark: SparkSession, checkpoints: Sequence[str], control: str, application_id: str
) -> None:
    """Note beside each checkpoint which control location its job runs with.

    Args:
        spark: The job's session.
        checkpoints: The checkpoint locations of its queries, as Spark names them.
        control: Its control location, likewise.
        application_id: The driver's.

    Raises:
        JobMovedError: The job was moved away by another control location, which the note named.
        OSError: That location can't be read.
    """
    notes = [
        CheckpointNote(lambda folder: HadoopFiles(spark, folder), checkpoint)
        for checkpoint in checkpoints
    ]
    for note in notes:
        note.check(control)
    for note in notes:
        note.write(control, application_id)
    try:
        for note in notes:
            note.check(control)  # of a stop and a start in one moment, one sees the other
    except (JobMovedError, OSError):
        for note in notes:
            note.put_back()
        raise
