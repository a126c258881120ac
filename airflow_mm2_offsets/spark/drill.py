"""The throw-away folder of a drill: which drill made it, and its removal.

The start and the tear-down of a drill call it; ``moves/drill.py`` says where it may lie. The
file ``drill.json`` marks the folder, and is all that a drill records: it is created before anything
else and removed last, and a folder without it is never removed.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from upath import UPath

from airflow_mm2_offsets.core.times import parse_zoned
from airflow_mm2_offsets.errors import DrillError
from airflow_mm2_offsets.locations import folder_id, same_folder, storage_kind
from airflow_mm2_offsets.storage import (
    TreeEntry,
    create_new,
    list_tree,
    open_location,
    read_text,
    remove_entry,
    storage_errors,
)

MARK = "drill.json"
NAMED_ENTRIES = 5
"""How many names of a folder a message shows at most."""
ANOTHER = "give another drill folder, which only drills of this job use"


@dataclass(frozen=True, slots=True, kw_only=True)
class DrillMark:
    """What ``drill.json`` says."""

    request_id: str
    """The drill: DAG id and run id."""
    at: datetime
    """When the folder was marked, with its zone."""
    folder: str
    """The folder, by ``folder_id``; a copy of the file elsewhere marks nothing."""
    created_folders: int
    """How many folders were created for it: its own, and those above it."""
    dag_id: str = ""
    run_id: str = ""
    """The DAG run of the drill's job."""
    cluster: str = ""
    """The cluster where the drill's job runs, by its alias."""
    last_entry: int = 0
    """The number of the last entry in the running job's journal when the drill began; 0: none."""


def read_mark(folder: UPath) -> DrillMark | None:
    """Return which drill made a folder; None if no drill did.

    Raises:
        DrillError: The mark can't be read.
    """
    text = read_text(folder / MARK, DrillError)
    if text is None:
        return None
    try:
        return _parse_mark(json.loads(text))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DrillError(
            f"{folder / MARK} does not say which drill made the folder: {text[:100]!r}; look what "
            f"the folder holds, and delete it if no drill needs it"
        ) from error


def _parse_mark(values: Mapping[str, Any]) -> DrillMark:
    at = parse_zoned(values["at"])
    if at is None:
        raise ValueError(values["at"])
    return DrillMark(
        request_id=str(values["request_id"]),
        at=at,
        folder=str(values["folder"]),
        created_folders=int(values["created_folders"]),
        dag_id=str(values.get("dag_id", "")),
        run_id=str(values.get("run_id", "")),
        cluster=str(values.get("cluster", "")),
        last_entry=int(values.get("last_entry", 0)),
    )


def mark_drill(
    folder: UPath,
    request_id: str,
    *,
    dag_id: str = "",
    run_id: str = "",
    cluster: str = "",
    last_entry: int = 0,
) -> DrillMark:
    """Mark a folder as a drill's, before anything else is written there; return its mark.

    What an earlier drill has left is removed first. A second call of the same drill changes
    nothing. Of two drills that mark it at the same moment one succeeds.

    Args:
        folder: The folder.
        request_id: The drill.
        dag_id: See ``DrillMark``, as for the following.
        run_id: The DAG run of the drill's job.
        cluster: Where it runs.
        last_entry: The number of the last entry in the running job's journal.

    Raises:
        DrillError: The folder holds something that no drill has made, another drill has just
            marked it, or it can't be written.
    """
    earlier = read_mark(folder)
    if earlier is not None and earlier.request_id == request_id:
        check_mark(folder, earlier, request_id)
        return earlier
    if earlier is not None:
        remove_drill(folder, earlier.request_id)
    if names := foreign_entries(folder):
        raise DrillError(f"{folder} holds {listed(names)} already: {ANOTHER}")
    mark = DrillMark(
        request_id=request_id,
        at=datetime.now(UTC).replace(microsecond=0),
        folder=folder_id(folder),
        created_folders=_missing_folders(folder),
        dag_id=dag_id,
        run_id=run_id,
        cluster=cluster,
        last_entry=last_entry,
    )
    values = {"schema_version": 1, **asdict(mark), "at": mark.at.isoformat()}
    if create_new(folder / MARK, json.dumps(values).encode(), DrillError):
        return mark
    standing = read_mark(folder)
    if standing is None or standing.request_id != request_id:
        raise DrillError(f"another drill has just marked {folder}: {standing}; {ANOTHER}")
    return standing


def check_mark(folder: UPath, mark: DrillMark, request_id: str) -> None:
    """Raise unless a mark is a drill's own, and was written in this folder.

    Raises:
        DrillError: It is another drill's, or a copy.
    """
    if mark.request_id != request_id:
        raise DrillError(
            f"{folder} is of the drill {mark.request_id!r}, and not of {request_id!r}, so it stays"
        )
    if not same_folder(folder, mark.folder):
        raise DrillError(
            f"{folder / MARK} was written in {mark.folder}, so {folder} is a copy, and stays: "
            f"delete it yourself if nothing needs it"
        )


def remove_drill(folder: UPath, request_id: str) -> int:
    """Remove a drill's folder with all that it holds; return the number of files removed.

    Call it when the drill's job has ended. A try that was cut off can be repeated, because the mark
    is removed last. Symbolic links are removed, and what they lead to stays.

    Raises:
        DrillError: The folder is another drill's, a copy, or holds another drill's folder; a job
            still writes there; or the storage refuses.
    """
    open_location(folder, DrillError)
    mark = read_mark(folder)
    if mark is None:
        return 0
    check_mark(folder, mark, request_id)
    entries = _entries(folder)
    if nested := [entry.name for entry in entries if entry.name.endswith(f"/{MARK}")]:
        raise DrillError(
            f"{folder} holds the folder of another drill ({listed(nested)}), so nothing is "
            f"removed: remove that one first, and give each drill a separate folder"
        )
    for entry in entries:
        if not entry.is_folder:
            remove_entry(folder, entry, DrillError)
    if names := [entry.name for entry in _entries(folder) if not entry.is_folder]:
        raise DrillError(
            f"{folder}: {listed(names)} appeared while the folder was removed, so a job still "
            f"writes there; end it and clear the task"
        )
    for entry in entries:
        if entry.is_folder:
            remove_entry(folder, entry, DrillError)
    remove_entry(folder, TreeEntry(MARK, is_folder=False), DrillError)
    _remove_created(folder, mark.created_folders)
    return sum(not entry.is_folder and not entry.name.endswith("/") for entry in entries)


def _entries(folder: UPath) -> list[TreeEntry]:
    """Return everything in a folder but its mark."""
    return [entry for entry in list_tree(folder, DrillError) if entry.name != MARK]


def foreign_entries(folder: UPath) -> list[str]:
    """Return what a folder holds, but not an attempt to mark it that was cut off."""
    names = {entry.name.partition("/")[0] for entry in _entries(folder)}
    return [name for name in names if not (name.startswith(f".{MARK}.") and name.endswith(".tmp"))]


def listed(names: Sequence[str]) -> str:
    """Return the first few names, for a message."""
    more = len(names) - NAMED_ENTRIES
    return ", ".join(sorted(names)[:NAMED_ENTRIES]) + (f" and {more} more" if more > 0 else "")


def _missing_folders(folder: UPath) -> int:
    """Return how many folders the first file in a folder creates."""
    if storage_kind(folder.protocol) == "file":
        path = Path(folder.path)
        return sum(not each.exists() for each in (path, *path.parents))
    with storage_errors(folder, DrillError):
        return int(not folder.exists())


def _remove_created(folder: UPath, count: int) -> None:
    """Remove the folders that were created for a drill, as far as they are empty."""
    if not count:
        return
    if (kind := storage_kind(folder.protocol)) != "file":
        # A client of HDFS removes a folder with its content: never one above the drill's own.
        name = folder.name if kind == "hdfs" else f"{folder.name}/"
        remove_entry(folder.parent, TreeEntry(name, is_folder=kind == "hdfs"), DrillError)
        return
    path = Path(folder.path)
    for each in (path, *path.parents)[:count]:
        try:
            each.rmdir()
        except OSError:  # another drill or user has put something there
            return
