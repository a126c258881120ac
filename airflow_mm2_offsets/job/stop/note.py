"""``<checkpoint>.control.json``: which control location the job of a checkpoint runs with.

A job may get another control location. The files in the old one are then outdated; and if the job
was moved away by the old one, the new one has no fence. The note shows both.
"""

from __future__ import annotations

import logging
from contextlib import closing
from typing import TYPE_CHECKING, Any

from airflow_mm2_offsets.job.files import HadoopFiles
from airflow_mm2_offsets.job.stop.fences import SCHEMA_VERSION, Fences, JobMovedError
from airflow_mm2_offsets.job.stop.heartbeat import STORAGE_ERRORS
from airflow_mm2_offsets.job.stop.stream import summary

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)


class CheckpointNote:
    """The note beside a query's checkpoint, whose location is spelled as Spark names it."""

    def __init__(self, open_files: Callable[[str], HadoopFiles], checkpoint: str) -> None:
        """Read the earlier note."""
        parent, _, name = checkpoint.rstrip("/").rpartition("/")
        self._open = open_files
        self._parent = f"{parent}/"
        self._name = f"{name}.control.json"
        self._earlier: dict[str, Any] | None = None
        try:
            with closing(self._open(self._parent)) as files:
                self._earlier = files.read(self._name)
        except STORAGE_ERRORS as error:
            log.warning("Can't read %s: %s", self.path, summary(error))

    @property
    def path(self) -> str:
        """Where it is."""
        return f"{self._parent}{self._name}"

    def check(self, control: str) -> None:
        """Raise if the job was moved away by another control location than ``control``.

        Raises:
            JobMovedError: By the other one's newest fence it must not run.
            OSError: The other one can't be read.
        """
        noted = (self._earlier or {}).get("control")
        if not noted or noted == control:
            return
        try:
            with closing(self._open(noted)) as files:
                Fences(files, noted.rpartition("/")[0]).begin()
        except STORAGE_ERRORS as error:
            raise OSError(
                f"{self.path} says that the job ran with the control location {noted}, which "
                f"can't be read, so it may have been moved away: {summary(error)}. If it was not, "
                f"delete {self.path}"
            ) from error

    def write(self, control: str, application_id: str) -> None:
        """Note the job's control location; a job that may not write there runs on."""
        names = {"control": control, "application_id": application_id}
        self._write({"schema_version": SCHEMA_VERSION, **names})

    def put_back(self) -> None:
        """Write the earlier note."""
        if self._earlier is not None:
            self._write(self._earlier)

    def _write(self, note: dict[str, Any]) -> None:
        try:
            with closing(self._open(self._parent)) as files:
                files.write(self._name, note)
        except STORAGE_ERRORS as error:
            log.warning("Can't write %s: %s", self.path, summary(error))


def note_control(
    spark: SparkSession, checkpoints: Sequence[str], control: str, application_id: str
) -> None:
    """Note beside each checkpoint which control location its job runs with.

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
