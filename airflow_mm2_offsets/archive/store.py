"""An archive as files in a folder, on any storage that fsspec knows.

A file never changes. Every run adds one; compaction adds one that holds what others do, then
deletes those. Files may overlap: syncs are told apart by their offset on the syncs topic, so
retries, runs at the same time and a compaction that stopped half-way all read as the same. What
no file covers though later ones exist is a gap, and never passed over in silence.
"""

import logging
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from upath import UPath

from airflow_mm2_offsets.archive.filenames import FileName, gaps
from airflow_mm2_offsets.archive.values import Header, Marks, PairIdentity
from airflow_mm2_offsets.core import TopicPartition
from airflow_mm2_offsets.errors import ArchiveError, ConfigurationError
from airflow_mm2_offsets.storage import (
    list_directory,
    open_location,
    read_bytes,
    storage_errors,
    write_bytes,
)

if TYPE_CHECKING:
    from airflow_mm2_offsets.archive.codec import Segment
    from airflow_mm2_offsets.archive.history import ArchivedSyncs
    from airflow_mm2_offsets.kafka.sync_log import SyncRecords

log = logging.getLogger(__name__)

COMPACT_OVER = 20
"""As many files are read within a tenth of the time that the topic would take."""
_AT_ONCE = 16
"""Files that are read together: an object store lets each wait for some 30 ms."""
_LOOKS = 20
"""How often a folder that changes while it is read is read again."""


class SyncArchive:
    """Every offset sync ever seen of one pair of clusters.

    Args:
        location: A folder of its own, on any storage that fsspec knows; it need not exist yet.
        skip_damaged: Go on without files that are damaged, of another format version or missing,
            with a warning for each; what only they held is treated as lost.
    """

    def __init__(self, location: UPath | str, *, skip_damaged: bool = False) -> None:
        """Keep the settings; nothing is read yet."""
        self.location = location
        self.skip_damaged = skip_damaged

    def read(self, pair: PairIdentity | None = None) -> "ArchivedSyncs":
        """Read everything.

        Args:
            pair: The archive must be of it; None takes any.

        Raises:
            ArchiveError: The archive is of another pair, out of reach, damaged or incomplete.
            ConfigurationError: pyarrow is not installed.
        """
        segments, damaged = self._segments()
        if pair is not None:
            for segment in segments.values():
                pair.check(segment.header.pair, self.location)
        for missing in gaps(segments):
            self._damage(damaged, f"{self.location}: the file that covers {missing} is missing")
        history = _import("history")
        held: ArchivedSyncs = history.assemble(segments, damaged)
        return held

    def append(
        self,
        *,
        header: Header,
        syncs: "Mapping[TopicPartition, SyncRecords]",
        marks: Mapping[TopicPartition, Marks],
    ) -> None:
        """Add what one run has read; adding it again changes nothing.

        Args:
            header: The clusters, the life of the syncs topic (see ``ArchivedSyncs.next_read``)
                and the run.
            syncs: The records that the run has read.
            marks: The watermarks of the replicated partitions after that.

        Raises:
            ArchiveError: The file can't be written.
            ConfigurationError: pyarrow is not installed.
        """
        codec, columns = _import("codec"), _import("columns")
        seen = codec.marks_table(marks, header.runs[-1].time)
        data = codec.encode(header, columns.SyncColumns.of_records(syncs), seen)
        self._write(FileName.of(header, data), data)

    def compact(self, *, over: int = COMPACT_OVER, keep: timedelta | None = None) -> int:
        """Make one file of all where there are more than ``over``; return how many went into it.

        Args:
            over: The number of files that are left as they are.
            keep: For how long syncs are kept at least; see ``archive.compaction``. None keeps all.

        Raises:
            ArchiveError: See ``read``; damaged files are never compacted away. Or what was
                written does not read as what it must hold: nothing was deleted.
        """
        if len(self._list()) <= over:
            return 0
        compaction = _import("compaction")
        held = SyncArchive(self.location).read()
        since = None if keep is None else int((datetime.now(UTC) - keep).timestamp() * 1000)
        kept = compaction.kept(held, since=since)
        written = set()
        for name, data in compaction.compacted(kept):
            self._write(name, data)
            written.add(name)
        self._verify(kept, written)
        replaced = [name for name in held.segments if name not in written]
        for name in replaced:
            self._delete(name)
        return len(replaced)

    def _verify(self, kept: "ArchivedSyncs", written: Collection[FileName]) -> None:
        """Read the files of a compaction again: only then may the originals go."""
        read = self._read(written, [])
        there = {name: segment for name, segment in read.items() if segment is not None}
        lacking = _import("compaction").difference(kept, there)
        if lacking:
            raise ArchiveError(
                f"{self.location}: what compaction has written does not hold the same {lacking} "
                f"as the files that it was to replace; those are all there still. See that the "
                f"storage keeps what is written, and compact again"
            )

    def _segments(self) -> tuple[dict[FileName, "Segment"], list[str]]:
        """Read the files of one moment: those that were there before and after."""
        read: dict[FileName, Segment | None] = {}
        damaged: list[str] = []
        names = self._list(damaged)
        for _ in range(_LOOKS):
            read |= self._read(names - set(read), damaged)
            before, names = names, self._list()
            if names == before and names <= set(read):
                found = ((name, read[name]) for name in sorted(names))
                return {name: each for name, each in found if each is not None}, damaged
        raise ArchiveError(
            f"{self.location} changed {_LOOKS} times while it was read; see what writes to it"
        )

    def _read(
        self, names: Collection[FileName], damaged: list[str]
    ) -> dict[FileName, "Segment | None"]:
        """Return what files hold: None what is damaged; what is gone by now is absent."""
        folder = open_location(self.location, ArchiveError)
        ordered = sorted(names)
        paths = [folder / str(name) for name in ordered]
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            read = pool.map(partial(read_bytes, error=ArchiveError), paths)
            return {
                name: self._decode(name, data, damaged)
                for name, data in zip(ordered, read, strict=True)
                if data is not None
            }

    def _list(self, damaged: list[str] | None = None) -> set[FileName]:
        path = open_location(self.location, ArchiveError)
        names = set()
        for text in list_directory(path, ArchiveError):
            if name := FileName.parse(text):
                names.add(name)
            elif not text.startswith((".", "_")) and damaged is not None:
                self._damage(damaged, f"{path / text} is no file of an archive")
        return names

    def _decode(self, name: FileName, data: bytes, damaged: list[str]) -> "Segment | None":
        codec = _import("codec")
        path = f"{self.location}/{name}"
        if not name.matches(data):
            self._damage(
                damaged, f"{path} is damaged: its {len(data)} bytes are not those that were written"
            )
            return None
        try:
            segment: Segment = codec.decode(data)
        except codec.FormatError as error:
            self._damage(damaged, f"{path} {error}")
            return None
        return segment

    def _damage(self, damaged: list[str], what: str) -> None:
        if not self.skip_damaged:
            raise ArchiveError(
                f"{what}; restore it from a copy, or move it away and let the next run read again "
                f"what the syncs topic still holds, or skip what is damaged (skip_damaged)"
            )
        log.warning("Skipped: %s", what)
        damaged.append(what)

    def _write(self, name: FileName, data: bytes) -> None:
        write_bytes(self._path(name), data, ArchiveError)

    def _delete(self, name: FileName) -> None:
        path = self._path(name)
        with storage_errors(path, ArchiveError):
            path.unlink(missing_ok=True)

    def _path(self, name: FileName) -> UPath:
        return open_location(self.location, ArchiveError) / str(name)


def _import(module: str) -> Any:  # noqa: ANN401 - a module
    """Return a module of this room that needs pyarrow: an extra, and slow for a DAG file."""
    try:
        return import_module(f"airflow_mm2_offsets.archive.{module}")
    except ImportError as error:
        raise ConfigurationError(
            f"an archive needs pyarrow ({error}); install airflow-mm2-offsets[archive]"
        ) from error
