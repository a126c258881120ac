"""Writes files whole: readers see all of a file or what was there before, after a crash too.

``storage.py`` calls it. Object stores do so by themselves. On local disks a temporary file is
renamed over the old one, or linked to a name that must be free.

HDFS has no such rename for clients outside Java: a name that is taken must be freed first. A file
that is absent in between would be wrong to others: a job without a fence starts, and Spark gives a
checkpoint without ``metadata`` a new query id. So a file that exists is overwritten in its place,
from a whole copy beside it. HDFS shows it empty until the writer closes it; Spark and the jobs
refuse an empty file. Our readers take the copy where the file is empty. After a crash the copy is
still there, and the next write completes the one that was cut off.
"""

import errno
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from upath import UPath

from airflow_mm2_offsets.locations import storage_kind

CHUNK = 2**20
"""Bytes that are copied at a time."""

_EXCLUSIVE = frozenset({"s3", "gs", "abfs", "memory"})
"""Storages whose fsspec driver creates a file only if there is none, by one request.

fsspec's own ``pipe_file(mode="create")`` looks first and writes then, which is no exclusion. That
is what drivers do that have none of their own: sftp, smb, webhdfs, and pyarrow's for HDFS.
"""

_NO_FSYNC = frozenset({errno.EINVAL, errno.ENOTSUP, errno.ENOSYS})
"""What mounted object stores and some network file systems say to the fsync of a folder."""
_NO_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.ENOSYS})
"""What disks without hard links, and mounted object stores, say to a link."""


def is_hdfs(path: UPath) -> bool:
    """Tell whether a file lies on HDFS."""
    return storage_kind(path.protocol) == "hdfs"


def is_object(path: UPath) -> bool:
    """Tell whether a file lies on a storage that shows it only when it is whole."""
    return storage_kind(path.protocol) not in {"file", "hdfs"}


@contextmanager
def replacing(path: UPath) -> Iterator[UPath]:
    """Yield where to write the new content of ``path``; its folder is created.

    Raises:
        OSError: The storage refuses; other libraries raise errors of their own.
    """
    if is_object(path):
        yield path
        return
    with _replacing_on_hdfs(path) if is_hdfs(path) else _replacing_on_disk(path) as temporary:
        yield temporary


class NotExclusiveError(OSError):
    """A storage can't create a file only if there is none of that name."""


def create_whole(path: UPath, data: bytes) -> None:
    """Create a file with all of its content, and its folder.

    Raises:
        FileExistsError: There is a file of that name; it stays as it is.
        NotExclusiveError: The storage can't tell.
        OSError: The storage refuses; other libraries raise errors of their own.
    """
    kind = storage_kind(path.protocol)
    if kind in _EXCLUSIVE:
        path.fs.pipe_file(path.path, data, mode="create")
    elif kind == "file":
        _create_on_disk(path, data)
    elif kind == "hdfs":
        _create_on_hdfs(path, data)
    else:
        raise NotExclusiveError(
            f"the driver of {kind}:// can't create a file only if there is none"
        )


def _create_on_disk(path: UPath, data: bytes) -> None:
    target, temporary = Path(path.path), Path(_temporary(path).path)
    _make_folder(target.parent)
    try:
        temporary.write_bytes(data)
        _flush(temporary)
        os.link(temporary, target)
        _flush(target.parent)
    except OSError as error:
        if error.errno in _NO_LINKS:
            raise NotExclusiveError(f"{target.parent} is on a disk without hard links") from error
        raise
    finally:
        temporary.unlink(missing_ok=True)


def _create_on_hdfs(path: UPath, data: bytes) -> None:
    """Rename a whole file to a name that must be free: the name node refuses one that is taken."""
    driver = type(path.fs).__module__.partition(".")[0]
    if driver != "hdfs_native":
        raise NotExclusiveError(
            f"the HDFS driver of {driver} does not say whether a rename writes over a file; "
            f"install hdfs-native, whose rename does not (`pip install hdfs-native`)"
        )
    temporary = _temporary(path)
    path.fs.makedirs(path.parent.path, exist_ok=True)
    try:
        temporary.write_bytes(data)
        path.fs.mv(temporary.path, path.path)
    finally:
        if temporary.exists():
            path.fs.rm_file(temporary.path)


def whole_copy(path: UPath) -> UPath:
    """Return where the new content of an HDFS file lies while the file is overwritten."""
    return path.with_name(f".{path.name}.whole.tmp")


def finish_replacing(path: UPath) -> None:
    """Complete a write on HDFS that was cut off; nothing to do where there is no such write."""
    copy = whole_copy(path)
    if not is_hdfs(path) or not copy.exists():
        return
    # A file with content is the old one or the new one, or was written by somebody else since.
    if not path.exists() or not path.stat().st_size:
        _overwrite(path, copy)
    path.fs.rm_file(copy.path)


def _overwrite(path: UPath, copy: UPath) -> None:
    with copy.open("rb") as source, path.open("wb") as target:
        shutil.copyfileobj(source, target, CHUNK)


@contextmanager
def _replacing_on_hdfs(path: UPath) -> Iterator[UPath]:
    temporary = _temporary(path)
    path.fs.makedirs(path.parent.path, exist_ok=True)
    try:
        yield temporary
        finish_replacing(path)
        if not path.exists():
            path.fs.mv(temporary.path, path.path)
            return
        copy = whole_copy(path)
        path.fs.mv(temporary.path, copy.path)
        _overwrite(path, copy)
        path.fs.rm_file(copy.path)
    finally:
        if temporary.exists():
            path.fs.rm_file(temporary.path)


@contextmanager
def _replacing_on_disk(path: UPath) -> Iterator[UPath]:
    """Yield a temporary file; the disk has its content before the name, after a power cut too."""
    _make_folder(Path(path.path).parent)
    temporary = _temporary(path)
    try:
        yield temporary
        _flush(Path(temporary.path))
        Path(temporary.path).replace(path.path)
        _flush(Path(path.path).parent)
    finally:
        Path(temporary.path).unlink(missing_ok=True)


def _temporary(path: UPath) -> UPath:
    return path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")


def _make_folder(folder: Path) -> None:
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for each in missing:
        _flush(each.parent)


def _flush(path: Path) -> None:
    """Return once the disk has a file's content, or the names in a folder."""
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
