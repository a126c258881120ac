"""Files on any storage that fsspec knows: local, s3, gs, abfs, hdfs."""

import errno
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from upath import UPath

from airflow_mm2_offsets.errors import ConfigurationError, Mm2OffsetsError
from airflow_mm2_offsets.locations import spark_location, without_login
from airflow_mm2_offsets.whole_files import (
    CHUNK,
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


def open_location(location: UPath | str, error: type[Mm2OffsetsError]) -> UPath:
    """Return ``location`` as a path whose listings are not remembered; Spark's spelling will do.

    Object stores' file systems remember what they once listed; a job elsewhere goes on writing.

    Raises:
        Mm2OffsetsError: ``error``, when no library for its storage is installed.
    """
    with storage_errors(location, error):
        if isinstance(location, str):
            location = spark_location(location) or UPath(location)
        location.fs.invalidate_cache()
    return location


def list_directory(directory: UPath, error: type[Mm2OffsetsError]) -> dict[str, dict[str, Any]]:
    """Return what fsspec says of each entry by its name; nothing when there's no such directory.

    Raises:
        Mm2OffsetsError: ``error``, when the storage refuses.
    """
    with storage_errors(directory, error):
        try:
            entries = directory.fs.ls(directory.path, detail=True)
        except FileNotFoundError:
            return {}
    named = {entry["name"].rsplit("/", 1)[-1]: entry for entry in entries}
    named.pop("", None)  # an object store's marker of the directory itself
    return named


def list_files(root: UPath, error: type[Mm2OffsetsError]) -> dict[str, dict[str, Any]]:
    """Return what fsspec says of each file below ``root``, by its path from there.

    Raises:
        Mm2OffsetsError: ``error``, when the storage refuses.
    """
    with storage_errors(root, error):
        root.fs.invalidate_cache()
        found = root.fs.find(root.path, detail=True)
    prefix = root.fs._strip_protocol(root.path).rstrip("/") + "/"  # noqa: SLF001 - as fsspec itself does
    named = {entry["name"]: entry for entry in found.values()}
    return {
        name.removeprefix(prefix): entry for name, entry in named.items() if not name.endswith("/")
    }


def change_mark(entry: Mapping[str, Any]) -> str:
    """Return what fsspec says of a file that changes when it is written again."""
    return " ".join(str(entry[mark]) for mark in _CHANGE_MARKS if mark in entry)


def read_text(path: UPath, error: type[Mm2OffsetsError]) -> str | None:
    """Return a file's text, or None when there's no such file.

    Raises:
        Mm2OffsetsError: ``error``, when the storage refuses or the file is not UTF-8.
    """
    data = read_bytes(path, error)
    if data is None:
        return None
    with storage_errors(path, error):
        return data.decode()


def read_bytes(path: UPath, error: type[Mm2OffsetsError]) -> bytes | None:
    """Return what a file holds, or None when there's no such file.

    Raises:
        Mm2OffsetsError: ``error``, when the storage refuses.
    """
    with storage_errors(path, error):
        for left in reversed(range(_READS)):
            try:
                return path.read_bytes() or _content_of_cut_off_write(path)
            except FileNotFoundError:
                return None
            except OSError as refused:
                # An object that is written while it is read: s3fs asks for what it was before.
                if refused.errno not in _CHANGED or not left:
                    raise
                path.fs.invalidate_cache()
    return None


def _content_of_cut_off_write(path: UPath) -> bytes:
    """Return what an empty file is to hold: its writer crashed or is at work (``replacing``)."""
    if not is_hdfs(path):
        return b""
    with suppress(FileNotFoundError):
        return whole_copy(path).read_bytes()
    return path.read_bytes()  # Its writer has just finished, or it is meant to be empty.


@contextmanager
def storage_errors(place: UPath | str, error: type[Mm2OffsetsError]) -> Iterator[None]:
    """Raise ``error``, naming the place, for whatever a storage library raises.

    Each of them has exceptions of its own, and few are OSErrors. A storage comes back, so that a
    later try may not have the error; a location that can't even be opened (ConfigurationError) is
    a wrong setting.
    """
    try:
        yield
    except Exception as cause:
        shown = without_login(str(place))
        has_login = shown != str(place)
        # Libraries name the login in messages of their own.
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
    """Write a file, its folder too; readers see the whole text or what was there before.

    Raises:
        Mm2OffsetsError: ``error``, when the storage refuses.
    """
    write_bytes(path, text.encode(), error)


def write_bytes(path: UPath, data: bytes, error: type[Mm2OffsetsError]) -> None:
    """Write a file, its folder too; readers see all of it or what was there before.

    Raises:
        Mm2OffsetsError: ``error``, when the storage refuses.
    """
    with storage_errors(path, error), replacing(path) as place:
        place.write_bytes(data)


def remove_file(path: UPath, error: type[Mm2OffsetsError]) -> None:
    """Remove a file; one that is not there is no error.

    Raises:
        Mm2OffsetsError: ``error``, when the storage refuses.
    """
    with storage_errors(path, error):
        if is_hdfs(path):
            whole_copy(path).unlink(missing_ok=True)
        path.unlink(missing_ok=True)


def finish_write(path: UPath, error: type[Mm2OffsetsError]) -> None:
    """Complete a write that was cut off, for readers other than this package, such as Spark.

    Raises:
        Mm2OffsetsError: ``error``, when the storage refuses.
    """
    with storage_errors(path, error):
        finish_replacing(path)


def copy_file(source: UPath, target: UPath, error: type[Mm2OffsetsError]) -> None:
    """Copy a file, its folder too; where both lie on one object store, it does the copying.

    Raises:
        Mm2OffsetsError: ``error``, when a storage refuses.
    """
    with storage_errors(f"{source} or {target}", error):
        if is_object(target) and source.fs == target.fs:
            source.fs.cp_file(source.path, target.path)
            return
        with replacing(target) as place, source.open("rb") as original, place.open("wb") as copy:
            shutil.copyfileobj(original, copy, CHUNK)


def fetch_files(
    source: UPath, folder: Path, names: Iterable[str], error: type[Mm2OffsetsError]
) -> None:
    """Copy files to a folder on this machine, many at once; those that are there stay.

    Raises:
        Mm2OffsetsError: ``error``, when the storage refuses.
    """
    lacking = [name for name in names if not (folder / name).exists()]
    for parent in {(folder / name).parent for name in lacking}:
        parent.mkdir(parents=True, exist_ok=True)
    if lacking:
        places = [f"{source.path.rstrip('/')}/{name}" for name in lacking]
        with storage_errors(source, error):
            source.fs.get(places, [str(folder / name) for name in lacking])


def same_content(one: UPath, other: UPath, error: type[Mm2OffsetsError]) -> bool:
    """Tell whether two files hold the same bytes.

    Raises:
        Mm2OffsetsError: ``error``, when a storage refuses.
    """
    with storage_errors(f"{one} or {other}", error), one.open("rb") as a, other.open("rb") as b:
        while True:
            chunk = a.read(CHUNK)
            if chunk != b.read(CHUNK):
                return False
            if not chunk:
                return True
