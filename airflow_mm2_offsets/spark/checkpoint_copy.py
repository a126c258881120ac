"""Writes the copy of a checkpoint for ``migration/``; half a copy is no checkpoint to anybody.

While the copy is being written, its file ``metadata`` holds a text that Spark fails on
(``StreamMetadata.read``), and the migration's plan. The original's ``metadata`` is written last.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

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
"""The report of a migration; Spark ignores it."""

_UNFINISHED = "This checkpoint is still being copied; no query may start from it.\n"
_WORKERS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointCopy:
    """A location, and how far the migration that writes it has come."""

    root: UPath
    identity: Mapping[str, Any]
    """What tells this migration from another one."""
    plan: Mapping[str, Any] | None = None
    """The plan of an earlier try that did not finish, if any."""
    report: Mapping[str, Any] | None = None
    """The report of an earlier try that finished, if any."""

    @classmethod
    def open(cls, root: UPath, identity: Mapping[str, Any]) -> "CheckpointCopy":
        """Read what an earlier try has left.

        Raises:
            CheckpointError: The location holds other files, or the storage can't be read.
        """
        open_location(root, CheckpointError)
        finish_write(root / METADATA, CheckpointError)
        metadata = read_text(root / METADATA, CheckpointError)
        if metadata is None:
            if names := sorted(list_files(root, CheckpointError)):
                raise CheckpointError(
                    f"{root}: holds {', '.join(names[:3])} already; give another location"
                )
            return cls(root=root, identity=identity)
        if metadata.startswith(_UNFINISHED):
            plan = _parse(root, METADATA, metadata.removeprefix(_UNFINISHED), identity)
            return cls(root=root, identity=identity, plan=plan)
        marker = read_text(root / MARKER, CheckpointError)
        if marker is None:
            raise CheckpointError(
                f"{root}: holds a checkpoint that no migration wrote; give another location"
            )
        return cls(root=root, identity=identity, report=_parse(root, MARKER, marker, identity))

    def begin(self, plan: Mapping[str, Any]) -> None:
        """Claim the location, and save the plan for later tries."""
        text = json.dumps({"identity": self.identity, "kept": plan})
        write_text(self.root / METADATA, f"{_UNFINISHED}{text}", CheckpointError)

    def fill(self, original: UPath, names: Mapping[str, int], written: Mapping[str, str]) -> None:
        """Write all files but the last, and read each of them back.

        Args:
            original: The checkpoint to copy from.
            names: The files that are copied unchanged, and their sizes in bytes.
            written: The texts of the other files, by name.

        Raises:
            CheckpointError: A storage failed, a file reads back differently, or the location holds
                another file.
        """
        sizes = {name: entry["size"] for name, entry in self._files().items()}
        _for_each(
            (
                name
                for name, size in names.items()
                if sizes.get(name) != size or not self._is_copied(original, name)
            ),
            lambda name: copy_file(original / name, self.root / name, CheckpointError),
        )
        for name, text in written.items():
            write_text(self.root / name, text, CheckpointError)
        self._check_names({*names, *written})

        def check(name: str) -> None:
            if name in written:
                data = read_bytes(self.root / name, CheckpointError)
                is_equal = data == written[name].encode()
            else:
                is_equal = self._is_copied(original, name)
            if not is_equal:
                raise CheckpointError(
                    f"{self.root / name}: what was written does not read back; check its storage"
                )

        _for_each([*names, *written], check)

    def finish(self, original: UPath, report: Mapping[str, Any]) -> None:
        """Save the report, and make the copy a checkpoint."""
        text = json.dumps({"identity": self.identity, "kept": report}, indent=1)
        write_text(self.root / MARKER, text, CheckpointError)
        metadata = read_bytes(original / METADATA, CheckpointError)
        if metadata is None:
            raise CheckpointError(f"{original / METADATA} is gone; the original must not change")
        write_bytes(self.root / METADATA, metadata, CheckpointError)

    def _files(self) -> dict[str, dict[str, Any]]:
        """Return all files but metadata, report, and what a killed try left."""
        return {
            name: entry
            for name, entry in list_files(self.root, CheckpointError).items()
            if name not in {METADATA, MARKER} and not is_temporary(name)
        }

    def _is_copied(self, original: UPath, name: str) -> bool:
        return same_content(original / name, self.root / name, CheckpointError)

    def _check_names(self, expected: set[str]) -> None:
        wrong = sorted(self._files().keys() ^ expected)
        if wrong:
            raise CheckpointError(
                f"{self.root}: {', '.join(wrong[:3])} should not be there, or is missing after it "
                f"was written; give another location"
            )


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
    """Return the name of the file with Hadoop's check sum, on a local disk."""
    folder, slash, last = name.rpartition("/")
    return f"{folder}{slash}.{last}.crc"


def is_temporary(name: str) -> bool:
    """Tell whether a writer that did not finish has left a file."""
    last = name.rpartition("/")[2]
    return last.startswith(".") and (last.endswith((".tmp", ".tmp.crc")))


def _parse(root: UPath, name: str, text: str, identity: Mapping[str, Any]) -> Mapping[str, Any]:
    try:
        record = json.loads(text)
        other, kept = record["identity"], record["kept"]
    except (ValueError, KeyError, TypeError) as error:
        raise CheckpointError(
            f"{root / name}: not what a migration of this release writes ({error!r}); delete "
            f"{root}, or give another location"
        ) from error
    if other != identity:
        raise CheckpointError(
            f"{root}: a copy of another checkpoint, or of this one at another time ({other}, not "
            f"{identity}); give another location, or delete it if no job was started from it"
        )
    return dict(kept)


def _for_each(names: Iterable[str], do: Callable[[str], object]) -> None:
    """Do it for many names at a time; the first failure ends it."""
    pool = ThreadPoolExecutor(_WORKERS)
    try:
        list(pool.map(do, list(names)))
    finally:
        pool.shutdown(cancel_futures=True)
