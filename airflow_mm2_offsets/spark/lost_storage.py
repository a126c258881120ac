"""Tells whether a job's folder can be reached: in a disaster its storage may be lost.

The check, the stop and the hand-over ask, where a user has given his word that the job does not
run, and in a disaster of a checkpoint.
"""

from upath import UPath

from airflow_mm2_offsets.errors import StopError
from airflow_mm2_offsets.storage import list_directory, open_location


def why_lost(location: UPath, of_job: str | None = None) -> str | None:
    """Return why a folder can't be reached, as a sentence; None if it is there.

    A folder that is empty or does not exist counts too: the mount of a lost storage is an empty
    folder.

    Args:
        location: The folder.
        of_job: A file that the job writes there, where others write too; without it the folder
            counts as lost.
    """
    try:
        root = open_location(location, StopError)
        names = list_directory(root, StopError)
    except StopError as error:
        return str(error)
    if of_job and names and of_job not in names:
        return f"{location} has no {of_job}, so no job has written there"
    return None if names else f"{location} does not exist, or is empty"
