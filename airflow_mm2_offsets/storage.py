"""Files on any storage that fsspec knows: local, s3, gs, abfs, hdfs."""

import shutil
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from upath import UPath

from airflow_mm2_offsets.errors import ConfigurationError, Mm2OffsetsError

_CHANGE_MARKS = ("ETag", "etag", "mtime", "LastModified", "last_modified", "updated", "created")
_LOCAL = frozenset({"", "file", "local"})
_CHUNK = 2**20


def open_location(location: UPath | str, error: type[Mm2OffsetsError]) -> UPath:
    """Return ``location`` as a path whose storage is read anew.

    Object stores' file systems remember what they once listed; a job elsewhere goes on writing.

    Raises:
        Mm2OffsetsError: ``error``, when no library for its storage is installed.
    """
    with storage_errors(location, error):
        path = location if isinstance(location, UPath) else UPath(location)
        path.fs.invalidate_cache()
    return path


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
        try:
            return path.read_bytes()
        except FileNotFoundError:
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
        if target.protocol not in _LOCAL and source.fs == target.fs:
            source.fs.cp_file(source.path, target.path)
            return
        with _whole(target) as place, source.open("rb") as given, place.open("wb") as taken:
            shutil.copyfileobj(given, taken, _CHUNK)


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
    """Yield where to write ``path``: readers see it once it is whole."""
    if path.protocol not in _LOCAL:
        yield path  # object stores show a file once it is whole
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        yield temporary
        Path(temporary.path).replace(path.path)
    finally:
        Path(temporary.path).unlink(missing_ok=True)
