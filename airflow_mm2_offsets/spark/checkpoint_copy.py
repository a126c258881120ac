"""The copy of a checkpoint: until it is whole, neither Spark nor this package takes it for one.

While it is being written, its file ``metadata`` holds a text that Spark fails on
(``StreamMetadata.read``), with what the migration has decided. Its own comes last.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from upath import UPath

from airflow_mm2_offsets.errors import CheckpointError
from airflow_mm2_offsets.storage import (
    change_mark,
    copy_file,
    finish_write,
    list_files,
    open_location,
    read_bytes,
    read_text,
    same_content,
    write_bytes,
    write_text,
)

METADATA = "metadata"
MARKER = "_mm2_migration.json"
"""What a migration did; Spark passes it over."""

_UNFINISHED = "This checkpoint is still being copied; no query may start from it.\n"
_WORKERS = 16
_File = TypeVar("_File")


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointCopy:
    """A location, and what is known of the migration that it is for."""

    root: UPath
    identity: Mapping[str, Any]
    """What tells this migration from another one."""
    decided: Mapping[str, Any] | None
    """What an earlier try decided; None where there was none."""
    whole: Mapping[str, Any] | None
    """What an earlier try did; None unless the copy is whole."""

    @classmethod
    def open(cls, root: UPath, identity: Mapping[str, Any]) -> "CheckpointCopy":
        """Look at what is there.

        Raises:
            CheckpointError: Something else is there, or the storage can't be read.
        """
        open_location(root, CheckpointError)
        finish_write(root / METADATA, CheckpointError)
        metadata = read_text(root / METADATA, CheckpointError)
        if metadata is None:
            if there := sorted(list_files(root, CheckpointError)):
                raise CheckpointError(
                    f"{root}: holds {', '.join(there[:3])} already; give another location"
                )
            return cls(root=root, identity=identity, decided=None, whole=None)
        if metadata.startswith(_UNFINISHED):
            decided = _parse(root, METADATA, metadata.removeprefix(_UNFINISHED), identity)
            return cls(root=root, identity=identity, decided=decided, whole=None)
        marker = read_text(root / MARKER, CheckpointError)
        if marker is None:
            raise CheckpointError(
                f"{root}: holds a checkpoint that no migration wrote; give another location"
            )
        return cls(
            root=root,
            identity=identity,
            decided=None,
            whole=_parse(root, MARKER, marker, identity),
        )

    def begin(self, decided: Mapping[str, Any]) -> None:
        """Take the location, and keep what was decided: a later try goes by it."""
        text = json.dumps({"identity": self.identity, "kept": decided})
        write_text(self.root / METADATA, f"{_UNFINISHED}{text}", CheckpointError)

    def fill(self, original: UPath, names: Mapping[str, int], written: Mapping[str, str]) -> None:
        """Write all files but the last, and read each of them back.

        Args:
            original: The checkpoint to copy from.
            names: The files that are copied as they are, and their sizes in bytes.
            written: The files that are not, and their texts.

        Raises:
            CheckpointError: A storage failed, a file differs after all, or another one is there.
        """
        there = {name: entry["size"] for name, entry in self._files().items()}
        _each(
            (name for name in names if not self._has(original, name, there, names[name])),
            lambda name: copy_file(original / name, self.root / name, CheckpointError),
        )
        for name, text in written.items():
            write_text(self.root / name, text, CheckpointError)
        self._check_names({*names, *written})
        _each(names, lambda name: self._check_copied(original, name))
        for name, text in written.items():
            if read_bytes(self.root / name, CheckpointError) != text.encode():
                raise _differs(self.root / name)

    def finish(self, original: UPath, done: Mapping[str, Any]) -> None:
        """Say what was done, and make it a checkpoint."""
        text = json.dumps({"identity": self.identity, "kept": done}, indent=1)
        write_text(self.root / MARKER, text, CheckpointError)
        metadata = read_bytes(original / METADATA, CheckpointError)
        if metadata is None:
            raise CheckpointError(f"{original / METADATA} is gone; nothing may touch the original")
        write_bytes(self.root / METADATA, metadata, CheckpointError)

    def _files(self) -> dict[str, dict[str, Any]]:
        """Return all but what this copy itself has to say, and what a killed try left."""
        found = list_files(self.root, CheckpointError)
        own = {METADATA, MARKER}
        return {
            name: each for name, each in found.items() if not (name in own or is_temporary(name))
        }

    def _has(self, original: UPath, name: str, there: Mapping[str, int], size: int) -> bool:
        if there.get(name) != size:
            return False
        return same_content(original / name, self.root / name, CheckpointError)

    def _check_names(self, expected: set[str]) -> None:
        wrong = sorted(self._files().keys() ^ expected)
        if wrong:
            raise CheckpointError(
                f"{self.root}: {', '.join(wrong[:3])} should not be there, or is missing after it "
                f"was written; give another location"
            )

    def _check_copied(self, original: UPath, name: str) -> None:
        if not same_content(original / name, self.root / name, CheckpointError):
            raise _differs(self.root / name)


def inventory(root: UPath) -> dict[str, tuple[int, str]]:
    """Return the size and the mark of change of each file of a checkpoint, by its path.

    Raises:
        CheckpointError: The storage can't be read.
    """
    return {
        name: (entry["size"] or 0, change_mark(entry))
        for name, entry in list_files(root, CheckpointError).items()
    }


def crc_name(name: str) -> str:
    """Return where Hadoop keeps the check sum of a file on a local disk."""
    folder, slash, last = name.rpartition("/")
    return f"{folder}{slash}.{last}.crc"


def is_temporary(name: str) -> bool:
    """Tell whether a file is what a writer left that did not end."""
    last = name.rpartition("/")[2]
    return last.startswith(".") and (last.endswith((".tmp", ".tmp.crc")))


def _parse(root: UPath, name: str, text: str, identity: Mapping[str, Any]) -> Mapping[str, Any]:
    try:
        record = json.loads(text)
        found, kept = record["identity"], record["kept"]
    except (ValueError, KeyError, TypeError) as error:
        raise CheckpointError(
            f"{root / name}: not what a migration of this release writes ({error!r}); delete "
            f"{root}, or give another location"
        ) from error
    if found != identity:
        raise CheckpointError(
            f"{root}: a copy of another checkpoint, or of this one at another time ({found}, not "
            f"{identity}); give another location, or delete it if no job was started from it"
        )
    return dict(kept)


def _each(items: Iterable[_File], do: Callable[[_File], object]) -> None:
    """Do it for each, many at a time; the first failure ends it."""
    pool = ThreadPoolExecutor(_WORKERS)
    try:
        for _ in pool.map(do, list(items)):
            pass
    finally:
        pool.shutdown(cancel_futures=True)


def _differs(path: UPath) -> CheckpointError:
    return CheckpointError(f"{path}: what was written does not read back; see to its storage")
