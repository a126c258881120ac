"""The note that a run may have submitted its target job to a platform, beside the target's claims.

``BeforeSubmit`` writes it directly before the platform is called. Nothing else tells a second try
that the first one may have started a job, until that job begins its checkpoint.
"""

from upath import UPath

from airflow_mm2_offsets.locations import beside
from airflow_mm2_offsets.spark.claim import run_file, run_files, write_run_file


def submission_file(target_checkpoint: UPath, request_id: str) -> UPath:
    """Return the file of a run's note, for messages."""
    return run_file(_folder(target_checkpoint), request_id)


def submitted_by(target_checkpoint: UPath, request_id: str) -> str | None:
    """Return which try of a run's task may have submitted the job; None if none has.

    Raises:
        HandoverError: A note can't be read.
    """
    note = run_files(_folder(target_checkpoint)).get(request_id)
    return None if note is None else str(note.values.get("try"))


def note_submission(target_checkpoint: UPath, request_id: str, task_try: str) -> None:
    """Note that a try is about to submit the job.

    Raises:
        HandoverError: The note can't be written.
    """
    write_run_file(_folder(target_checkpoint), request_id, {"try": task_try})


def _folder(target_checkpoint: UPath) -> UPath:
    return beside(target_checkpoint, "submissions")
