"""Files on any storage that fsspec knows: local, s3, gs, abfs, hdfs."""

import errno
import os
import shutil
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from upath import UPath

from airflow_mm2_offsets.errors import ConfigurationError, Mm2OffsetsError
from airflow_mm2_offsets.locations import LOCAL, spark_location, storage_kind

_CHANGE_MARKS = ("ETag", "etag", "mtime", "LastModified", "last_modified", "updated", "created")
_CHUNK = 2**20
_CHANGED = frozenset({errno.EBUSY, errno.EINVAL})
"""What s3fs says of an object that has changed since it was opened (``FileExpired``)."""
_READS = 5
_NO_FSYNC = frozenset({errno.EINVAL, errno.ENOTSUP, errno.ENOSYS})
"""What mounted object stores and some network file systems say to the fsync of a folder."""


def open_location(location: UPath | str, error: type[Mm2OffsetsError]) -> UPath:
    """Return ``location`` as a path whose storage is read anew; Spark's spelling will do.

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
                return path.read_bytes()
            except FileNotFoundError:
                return None
            except OSError as refused:
                # An object that is written while it is read: s3fs asks for what it was before.
                if refused.errno not in _CHANGED or not left:
                    raise
                path.fs.invalidate_cache()
    return None


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
        problem = error(
            f"{place} is out of reach: {type(cause).__name__}: {cause}; check the path, the "
            f"credentials and that the library for its storage is installed"
        )
        problem.fields = {"file": str(place)}
        problem.retryable = error is not ConfigurationError
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
    with storage_errors(path, error), _whole(path) as place:
        place.write_bytes(data)


def remove_file(path: UPath, error: type[Mm2OffsetsError]) -> None:
    """Remove a file; one that is not there is no error.

    Raises:
        Mm2OffsetsError: ``error``, when the storage refuses.
    """
    with storage_errors(path, error):
        path.unlink(missing_ok=True)


def copy_file(source: UPath, target: UPath, error: type[Mm2OffsetsError]) -> None:
    """Copy a file, its folder too; where both lie on one object store, it does the copying.

    Raises:
        Mm2OffsetsError: ``error``, when a storage refuses.
    """
    with storage_errors(f"{source} or {target}", error):
        if target.protocol not in LOCAL and source.fs == target.fs:
            source.fs.cp_file(source.path, target.path)
            return
        with _whole(target) as place, source.open("rb") as given, place.open("wb") as taken:
            shutil.copyfileobj(given, taken, _CHUNK)


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
            chunk = a.read(_CHUNK)
            if chunk != b.read(_CHUNK):
                return False
            if not chunk:
                return True


@contextmanager
def _whole(path: UPath) -> Iterator[UPath]:
    """Yield where to write ``path``: readers see it once it is whole, after a power cut too.

    The disk holds the content before the name, and the name before the caller goes on.
    """
    if storage_kind(path.protocol) == "hdfs":
        with _named_last(path) as place:
            yield place
        return
    if path.protocol not in LOCAL:
        yield path  # object stores show a file once it is whole
        return
    _make_folder(Path(path.path).parent)
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        yield temporary
        _flush(Path(temporary.path))
        Path(temporary.path).replace(path.path)
        _flush(Path(path.path).parent)
    finally:
        Path(temporary.path).unlink(missing_ok=True)


def _make_folder(folder: Path) -> None:
    made = [each for each in (folder, *folder.parents) if not each.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for each in made:
        _flush(each.parent)


def _flush(path: Path) -> None:
    """Return once the disk holds a file's content, or the names in a folder."""
    is_folder = path.is_dir()
    if is_folder and os.name == "nt":
        return  # Windows opens no folder.
    descriptor = os.open(path, os.O_RDONLY if is_folder else os.O_RDWR)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if not (is_folder and error.errno in _NO_FSYNC):
            raise
    finally:
        os.close(descriptor)


@contextmanager
def _named_last(path: UPath) -> Iterator[UPath]:
    """Yield where to write ``path`` on HDFS, which shows files that are being written."""
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    path.fs.makedirs(path.parent.path, exist_ok=True)
    try:
        yield temporary
        if path.exists():
            path.fs.rm_file(path.path)  # it renames to no name that is taken
        path.fs.mv(temporary.path, path.path)
    finally:
        if temporary.exists():
            path.fs.rm_file(temporary.path)
