"""An archive: files in a folder, on any storage that fsspec knows.

A file never changes. Each run adds one. A compaction writes one file with the contents of several,
then deletes those. Files may overlap: the offset on the syncs topic identifies a sync, so retries,
runs at the same time and an interrupted compaction do not change what is read. Offsets that no file
covers, though later files exist, are a gap: reading the archive raises an error.
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
from airflow_mm2_offsets.archive.values import COMPACT_OVER, Header, PairIdentity, WatermarkPair
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

_AT_ONCE = 16
"""Files that are read at the same time: each read of an object store takes some 30 ms."""
_TRIES = 20
"""How often a folder is read if it changes meanwhile."""


class SyncArchive:
    """Every offset sync ever seen of one pair of clusters.

    Args:
        location: A folder for this archive alone, on any storage that fsspec knows; it need not
            exist yet.
        skip_damaged: Skip files that are damaged, of another format version or missing, with a
            warning for each; syncs that only they held are treated as lost.
    """

    def __init__(self, location: UPath | str, *, skip_damaged: bool = False) -> None:
        """Keep the settings; nothing is read yet."""
        self.location = location
        self.skip_damaged = skip_damaged

    def read(self, pair: PairIdentity | None = None) -> "ArchivedSyncs":
        """Read everything.

        Args:
            pair: The clusters that the archive must belong to; None: any.

        Raises:
            ArchiveError: The archive is of another pair, out of reach, damaged or incomplete.
            ConfigurationError: pyarrow is not installed.
        """
        segments, damaged = self._segments()
        if pair is not None:
            for segment in segments.values():
                pair.check(segment.header.pair, self.location)
        for gap in gaps(segments):
            self._damage(damaged, f"{self.location}: the file that covers {gap} is missing")
        archived: ArchivedSyncs = _import("history").assemble(segments, damaged)
        return archived

    def append(
        self,
        *,
        header: Header,
        syncs: "Mapping[TopicPartition, SyncRecords]",
        watermarks: Mapping[TopicPartition, WatermarkPair],
    ) -> None:
        """Add the records of one run; adding them again changes nothing.

        Args:
            header: The clusters, the incarnation of the syncs topic (see
                ``ArchivedSyncs.next_read``) and the run.
            syncs: The records that the run has read.
            watermarks: The watermarks of the replicated partitions after the read.

        Raises:
            ArchiveError: The file can't be written.
            ConfigurationError: pyarrow is not installed.
        """
        codec, columns = _import("codec"), _import("columns")
        table = codec.watermarks_table(watermarks, header.runs[-1].time)
        data = codec.encode(header, columns.SyncColumns.of_records(syncs), table)
        self._write(FileName.of(header, data), data)

    def compact(self, *, over: int = COMPACT_OVER, keep: timedelta | None = None) -> int:
        """Replace all files by one if there are more than ``over``; return how many it replaced.

        Args:
            over: As many files are left as they are.
            keep: For how long syncs are kept at least; see ``archive.compaction``. None keeps all.

        Raises:
            ArchiveError: See ``read``: a compaction never removes damaged files. Or the new file
                does not have the same contents: nothing was deleted.
        """
        if len(self._list()) <= over:
            return 0
        compaction = _import("compaction")
        archived = SyncArchive(self.location).read()
        since = None if keep is None else int((datetime.now(UTC) - keep).timestamp() * 1000)
        remaining = compaction.without_old_syncs(archived, since=since)
        written = set()
        for name, data in compaction.compacted(remaining):
            self._write(name, data)
            written.add(name)
        self._verify(remaining, written)
        replaced = [name for name in archived.segments if name not in written]
        for name in replaced:
            path = self._path(name)
            with storage_errors(path, ArchiveError):
                path.unlink(missing_ok=True)
        return len(replaced)

    def _verify(self, expected: "ArchivedSyncs", written: Collection[FileName]) -> None:
        """Read the files of a compaction back, before the originals are deleted."""
        segments = {name: segment for name, segment in self._read(written, []).items() if segment}
        if difference := _import("compaction").difference(expected, segments):
            raise ArchiveError(
                f"{self.location}: the file that compaction wrote does not hold the same "
                f"{difference} as the files that it should replace; those still exist. Check that "
                f"the storage keeps what is written, and compact again"
            )

    def _segments(self) -> tuple[dict[FileName, "Segment"], list[str]]:
        """Read the files that exist both before and after the read."""
        read: dict[FileName, Segment | None] = {}
        damaged: list[str] = []
        names = self._list(damaged)
        for _ in range(_TRIES):
            read |= self._read(names - set(read), damaged)
            before, names = names, self._list()
            if names == before and names <= set(read):
                segments = ((name, read[name]) for name in sorted(names))
                return {name: segment for name, segment in segments if segment}, damaged
        raise ArchiveError(
            f"{self.location} changed during each of {_TRIES} reads; find out what writes to it"
        )

    def _read(
        self, names: Collection[FileName], damaged: list[str]
    ) -> dict[FileName, "Segment | None"]:
        """Return the contents of files: None for a damaged one; one that is gone is absent."""
        folder = open_location(self.location, ArchiveError)
        ordered = sorted(names)
        paths = [folder / str(name) for name in ordered]
        pool = ThreadPoolExecutor(_AT_ONCE)
        try:
            read = pool.map(partial(read_bytes, error=ArchiveError), paths)
            return {
                name: self._decode(name, data, damaged)
                for name, data in zip(ordered, read, strict=True)
                if data is not None
            }
        finally:
            # All are read, or one failed, or the caller was interrupted: it must not wait for them.
            pool.shutdown(wait=False, cancel_futures=True)

    def _list(self, damaged: list[str] | None = None) -> set[FileName]:
        path = open_location(self.location, ArchiveError)
        names = set()
        for text in list_directory(path, ArchiveError):
            if name := FileName.parse(text):
                names.add(name)
            elif not text.startswith((".", "_")) and damaged is not None:
                self._damage(damaged, f"{path / text} is not a file of an archive")
        return names

    def _decode(self, name: FileName, data: bytes, damaged: list[str]) -> "Segment | None":
        codec = _import("codec")
        path = f"{self.location}/{name}"
        if not name.matches(data):
            self._damage(damaged, f"{path} is damaged: its {len(data)} bytes are not those written")
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
                f"{what}; restore it from a copy, or move it away and let the next run read what "
                f"the syncs topic still holds, or skip damaged files (skip_damaged)"
            )
        log.warning("Skipped: %s", what)
        damaged.append(what)

    def _write(self, name: FileName, data: bytes) -> None:
        write_bytes(self._path(name), data, ArchiveError)

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
