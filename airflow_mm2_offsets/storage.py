"""Files on any storage that fsspec knows: local, s3, gs, abfs, hdfs.

Every function raises the class ``error`` if the storage refuses, no library for it is installed, or
a text is not UTF-8.
"""

import errno
import os
import shutil
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from upath import UPath

from airflow_mm2_offsets.errors import ConfigurationError, Mm2OffsetsError
from airflow_mm2_offsets.locations import LOCAL, spark_location
from airflow_mm2_offsets.logins import without_login
from airflow_mm2_offsets.silent_storage import check_answers
from airflow_mm2_offsets.whole_files import (
    CHUNK,
    NotExclusiveError,
    create_whole,
    finish_replacing,
    is_hdfs,
    is_object,
    replacing,
    whole_copy,
)

_CHANGE_MARKS = ("ETag", "etag", "mtime", "LastModified", "last_modified", "updated", "created")
_CHANGED = frozenset({errno.EBUSY, errno.EINVAL})
"""What s3fs says of an object that has changed since it was opened (``FileExpired``)."""
_READS = 5
_TRIES = 3


def open_location(location: UPath | str, error: type[Mm2OffsetsError]) -> UPath:
    """Return ``location``, also in Spark's spelling, as a path with an empty cache of listings.

    The file systems of object stores cache listings, while a job elsewhere goes on writing.
    """
    with storage_errors(location, error):
        if isinstance(location, str):
            location = spark_location(location) or UPath(location)
        location.fs.invalidate_cache()
    return location


def list_directory(directory: UPath, error: type[Mm2OffsetsError]) -> dict[str, dict[str, Any]]:
    """Return fsspec's description of each entry by its name; empty if there's no directory."""
    with storage_errors(directory, error):
        try:
            entries = directory.fs.ls(directory.path, detail=True)
        except FileNotFoundError:
            return {}
    named = {entry["name"].rsplit("/", 1)[-1]: entry for entry in entries}
    named.pop("", None)  # an object store's marker of the directory itself
    return named


def list_files(root: UPath, error: type[Mm2OffsetsError]) -> dict[str, dict[str, Any]]:
    """Return fsspec's description of each file below ``root``, by its path from there."""
    with storage_errors(root, error):
        root.fs.invalidate_cache()
        entries = root.fs.find(root.path, detail=True)
    prefix = root.fs._strip_protocol(root.path).rstrip("/") + "/"  # noqa: SLF001 - as fsspec itself does
    named = {entry["name"]: entry for entry in entries.values()}
    return {
        name.removeprefix(prefix): entry for name, entry in named.items() if not name.endswith("/")
    }


class TreeEntry(NamedTuple):
    """Something below a folder."""

    name: str
    """Its path from the folder; an object store's marker of a folder ends with ``/``."""
    is_folder: bool


def list_tree(root: UPath, error: type[Mm2OffsetsError]) -> list[TreeEntry]:
    """List everything below a folder, the content of each folder before the folder itself.

    No symbolic link is followed: it is listed as a file.
    """
    with storage_errors(root, error):
        if root.protocol in LOCAL:
            return [*_walk(root.path)]
        root.fs.invalidate_cache()
        entries = root.fs.find(root.path, withdirs=True, detail=True)
    prefix = root.fs._strip_protocol(root.path).rstrip("/") + "/"  # noqa: SLF001 - as fsspec itself does
    below = [
        TreeEntry(name.removeprefix(prefix), entry["type"] == "directory")
        for name, entry in entries.items()
        if name.startswith(prefix) and name != prefix
    ]
    return sorted(below, key=lambda entry: (-entry.name.count("/"), entry.is_folder, entry.name))


def _walk(root: str) -> Iterator[TreeEntry]:
    for folder, folders, files in os.walk(root, topdown=False):
        for name in (*files, *folders):
            path = Path(folder, name)
            if path.is_mount():
                raise OSError(f"{path} is a mount: what lies there is not this folder's")
            is_folder = name in folders and not path.is_symlink()
            yield TreeEntry(str(path.relative_to(root)), is_folder)


def remove_entry(root: UPath, entry: TreeEntry, error: type[Mm2OffsetsError]) -> None:
    """Remove a file, a link (not what it leads to) or an empty folder, if it exists."""
    path = f"{root.path.rstrip('/')}/{entry.name}"
    with storage_errors(root / entry.name, error), suppress(FileNotFoundError):
        if root.protocol in LOCAL:
            (os.rmdir if entry.is_folder else os.unlink)(path)
        elif entry.is_folder:
            with suppress(OSError):  # an object store has no folders, only names with slashes
                root.fs.rmdir(path)
        else:
            root.fs.rm_file(path)  # fs.rm would take [ and * in a name for a pattern


def change_mark(entry: Mapping[str, Any]) -> str:
    """Return the fields of a file's description that change when it is written again."""
    return " ".join(str(entry[mark]) for mark in _CHANGE_MARKS if mark in entry)


def read_text(path: UPath, error: type[Mm2OffsetsError]) -> str | None:
    """Return a file's text, or None when there's no such file."""
    data = read_bytes(path, error)
    try:
        return None if data is None else data.decode()
    except UnicodeDecodeError as cause:
        shown = without_login(str(path))
        problem = error(
            f"is not UTF-8, so it is half-written, damaged or another program's: {cause}; look at "
            f"it, and at who writes it",
            file=shown,
        )
        problem.retryable = error is not ConfigurationError
        raise problem from cause


def read_bytes(path: UPath, error: type[Mm2OffsetsError]) -> bytes | None:
    """Return a file's content, or None when there's no such file."""
    with storage_errors(path, error):
        for retries_left in reversed(range(_READS)):
            try:
                return path.read_bytes() or _content_of_cut_off_write(path)
            except FileNotFoundError:
                return None
            except OSError as cause:
                # The object was written while it was read: s3fs requests its earlier version.
                if cause.errno not in _CHANGED or not retries_left:
                    raise
                path.fs.invalidate_cache()
    return None


def _content_of_cut_off_write(path: UPath) -> bytes:
    """Return the content of an empty file whose writer crashed or is at work; see ``replacing``."""
    if not is_hdfs(path):
        return b""
    with suppress(FileNotFoundError):
        return whole_copy(path).read_bytes()
    return path.read_bytes()  # The writer has just finished, or the file is meant to be empty.


@contextmanager
def storage_errors(location: UPath | str, error: type[Mm2OffsetsError]) -> Iterator[None]:
    """Raise ``error``, which names the location, for any exception of a storage library.

    Each library has its own exceptions, and few are OSErrors. The error is retryable, since a
    storage may answer again; a location that can't be opened (ConfigurationError) is a wrong
    setting. A storage that answers nothing is not waited for more than once.
    """
    try:
        if not isinstance(location, str):
            check_answers(location)
        yield
    except Exception as cause:
        shown = without_login(str(location))
        has_login = shown != str(location)
        # The messages of libraries may contain the login.
        reason = type(cause).__name__ if has_login else f"{type(cause).__name__}: {cause}"
        problem = error(
            f"{shown} is out of reach: {reason}; check the path, the credentials and that the "
            f"library for its storage is installed"
        )
        problem.fields = {"file": shown}
        problem.retryable = error is not ConfigurationError
        if has_login:
            raise problem from None
        raise problem from cause


def write_text(path: UPath, text: str, error: type[Mm2OffsetsError]) -> None:
    """Write a file, and create its folder; readers see all of the text or the earlier file."""
    write_bytes(path, text.encode(), error)


def write_bytes(path: UPath, data: bytes, error: type[Mm2OffsetsError]) -> None:
    """Write a file, and create its folder; readers see all of it or the earlier file."""
    with storage_errors(path, error), replacing(path) as temporary:
        temporary.write_bytes(data)


def create_new(path: UPath, data: bytes, error: type[Mm2OffsetsError]) -> bool:
    """Create a file whole, and its folder, if there is none of that name; else return False.

    Of all that try at the same moment one succeeds: on local disks and NFS (a hard link), S3
    (``If-None-Match: *``), GCS (``ifGenerationMatch=0``), Azure (``If-None-Match: *``) and HDFS (a
    rename). If the answer of a storage is lost, the file says whose it is: ``data`` must be the
    caller's own.

    Raises:
        Mm2OffsetsError: Of the class ``error``: the storage refuses, or can't create exclusively.
    """
    with storage_errors(path, error):
        try:
            return _create(path, data, error)
        except NotExclusiveError as cause:
            reason = str(cause)
    raise _not_exclusive(path.parent, reason, error)


def _create(path: UPath, data: bytes, error: type[Mm2OffsetsError]) -> bool:
    for tries_left in reversed(range(_TRIES)):
        try:
            create_whole(path, data)
        except NotExclusiveError:
            raise
        except Exception:
            path.fs.invalidate_cache()
            if (found := read_bytes(path, error)) is not None:
                return found == data
            # S3 says 409 while another write of that name has not ended.
            if not tries_left:
                raise
        else:
            break
    return True


def check_exclusive(folder: UPath, error: type[Mm2OffsetsError]) -> None:
    """Raise unless files of a folder can be created exclusively, by trying it.

    Some storages with an interface like S3's ignore ``If-None-Match``.

    Raises:
        Mm2OffsetsError: Of the class ``error``; it says where such files can lie.
    """
    probe = folder / f".exclusive-{uuid.uuid4().hex}"
    try:
        if not create_new(probe, b"first", error) or create_new(probe, b"second", error):
            reason = "this storage writes over a file that is to be created only if there is none"
            raise _not_exclusive(folder, reason, error)
    finally:
        with suppress(Mm2OffsetsError):
            remove_file(probe, error)


def _not_exclusive(folder: UPath, reason: str, error: type[Mm2OffsetsError]) -> Mm2OffsetsError:
    problem = error(
        f"{reason}, so two runs could move one job at once. Give a folder on a local disk, NFS, "
        f"S3, GCS, Azure or HDFS",
        file=without_login(str(folder)),
    )
    problem.retryable = False
    return problem


def remove_file(path: UPath, error: type[Mm2OffsetsError]) -> None:
    """Remove a file, if it exists."""
    with storage_errors(path, error):
        if is_hdfs(path):
            whole_copy(path).unlink(missing_ok=True)
        path.unlink(missing_ok=True)


def finish_write(path: UPath, error: type[Mm2OffsetsError]) -> None:
    """Complete a write that was cut off, for readers other than this package, such as Spark."""
    with storage_errors(path, error):
        finish_replacing(path)


def copy_file(source: UPath, target: UPath, error: type[Mm2OffsetsError]) -> None:
    """Copy a file, and create its folder; an object store that holds both does the copying."""
    with storage_errors(f"{source} or {target}", error):
        if is_object(target) and source.fs == target.fs:
            source.fs.cp_file(source.path, target.path)
            return
        with replacing(target) as part, source.open("rb") as original, part.open("wb") as copy:
            shutil.copyfileobj(original, copy, CHUNK)


def rename_folder(folder: UPath, target: UPath, error: type[Mm2OffsetsError]) -> bool:
    """Rename a folder, if it exists; return False on an object store, which has no folders."""
    if is_object(folder):
        return False
    with storage_errors(folder, error):
        if folder.exists():
            folder.fs.mv(folder.path.rstrip("/"), target.path.rstrip("/"), recursive=True)
    return True


def fetch_files(
    source: UPath, folder: Path, names: Iterable[str], error: type[Mm2OffsetsError]
) -> None:
    """Copy files to a folder on this machine, many at once; existing files are not replaced."""
    absent = [name for name in names if not (folder / name).exists()]
    for parent in {(folder / name).parent for name in absent}:
        parent.mkdir(parents=True, exist_ok=True)
    if absent:
        paths = [f"{source.path.rstrip('/')}/{name}" for name in absent]
        with storage_errors(source, error):
            source.fs.get(paths, [str(folder / name) for name in absent])


def same_content(one: UPath, other: UPath, error: type[Mm2OffsetsError]) -> bool:
    """Tell whether two files hold the same bytes."""
    with storage_errors(f"{one} or {other}", error), one.open("rb") as a, other.open("rb") as b:
        while True:
            chunk = a.read(CHUNK)
            if chunk != b.read(CHUNK):
                return False
            if not chunk:
                return True
