"""Whether each folder can be read and written from here; nothing is written into a job's folders.

An object store does not tell without a try whether it lets a user write. So a probe is written
only where the user says: ``probe_folder``.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

from upath import UPath

from airflow_mm2_offsets.core.readiness import ReadinessCheck
from airflow_mm2_offsets.core.readiness_names import CheckName
from airflow_mm2_offsets.errors import ConfigurationError, Mm2OffsetsError
from airflow_mm2_offsets.locations import LOCAL
from airflow_mm2_offsets.readiness.answers import failed, not_asked, ok, unknown
from airflow_mm2_offsets.readiness.request import ReadinessRequest
from airflow_mm2_offsets.storage import list_directory, read_text, remove_file, write_text

_ON_SOURCE = frozenset({"checkpoint", "control"})
_WRITTEN = ("control", "checkpoint", "target_checkpoint", "plan_path")
"""What a failover writes: the fence, notes beside checkpoints, the plan."""


def check_folders(request: ReadinessRequest) -> Iterator[ReadinessCheck]:
    """Yield whether the folders can be read, and whether they can be written."""
    paths = dict(_open_all(request))
    if not paths:
        for name in (CheckName.FOLDERS_READABLE, CheckName.FOLDERS_WRITABLE):
            yield not_asked(name, "no folder is given")
        return
    yield from _check_readable(request, paths)
    yield from _check_writable(request, paths)
    if request.probe_folder:
        yield _probe(request, request.probe_folder)


def _open_all(request: ReadinessRequest) -> Iterator[tuple[str, UPath]]:
    """Yield each folder that can be opened; the check that needs another one reports it."""
    for field in (*_WRITTEN, "target_control", "archive"):
        location: str | None = getattr(request, field)
        if not location:
            continue
        try:
            path = request.open(location)
        except Mm2OffsetsError:
            continue
        yield field, path.parent if field == "plan_path" else path


def _check_readable(request: ReadinessRequest, paths: dict[str, UPath]) -> Iterator[ReadinessCheck]:
    problems = []
    for field, path in paths.items():
        try:
            list_directory(path, ConfigurationError)
        except Mm2OffsetsError as error:
            may_be_lost = request.policy.source_may_be_lost and field in _ON_SOURCE
            make = unknown if may_be_lost else failed
            problems.append(make(CheckName.FOLDERS_READABLE, f"{field}: {error}"))
    yield from problems or [ok(CheckName.FOLDERS_READABLE, f"{len(paths)} folders can be listed")]


def _check_writable(request: ReadinessRequest, paths: dict[str, UPath]) -> Iterator[ReadinessCheck]:
    written = {field: path for field, path in paths.items() if field in _WRITTEN}
    local = {field: path for field, path in written.items() if path.protocol in LOCAL}
    problems = []
    for field, path in local.items():
        # A note or a claim is written beside a checkpoint.
        folder = path.parent if field.endswith("checkpoint") else path
        if (problem := _write_problem(Path(folder.path))) is not None:
            may_be_lost = request.policy.source_may_be_lost and field in _ON_SOURCE
            make = unknown if may_be_lost else failed
            problems.append(make(CheckName.FOLDERS_WRITABLE, f"{field}: {problem}"))
    stores = sorted({path.protocol for path in written.values()} - LOCAL)
    if stores and not request.probe_folder:
        value = f"{', '.join(stores)} does not tell without a try whether we may write"
        problems.append(unknown(CheckName.FOLDERS_WRITABLE, value))
    yield from problems or [ok(CheckName.FOLDERS_WRITABLE, f"{len(local)} local folders")]


def _write_problem(folder: Path) -> str | None:
    """Return why a folder, or the nearest parent that exists, can't be written."""
    existing = next(each for each in (folder, *folder.parents) if each.exists())
    if not existing.is_dir():
        return f"{existing} is not a folder, and {folder} is to be written"
    if not os.access(existing, os.W_OK | os.X_OK):
        return f"{existing} can't be written by this process's user"
    return None


def _probe(request: ReadinessRequest, location: str) -> ReadinessCheck:
    """Write, read and remove a file in the folder that the user names for it."""
    name = f"readiness-probe-{uuid4().hex}"
    try:
        path = request.open(location) / name
        write_text(path, name, ConfigurationError)
        try:
            content = read_text(path, ConfigurationError)
        finally:
            remove_file(path, ConfigurationError)
    except Mm2OffsetsError as error:
        return failed(CheckName.FOLDERS_WRITABLE, f"probe_folder: {error}", subject=location)
    if content != name:
        value = f"probe_folder: {location} gives back another content than was written"
        return failed(CheckName.FOLDERS_WRITABLE, value, subject=location)
    return ok(CheckName.FOLDERS_WRITABLE, f"a probe in {location} was written and removed")
