"""Combines all files of an archive; ``store`` and ``compaction`` call it.

Where the usable syncs of a partition begin:

- If a topic's id changed on either cluster from one run to the next, the topic was recreated:
  its syncs up to the end of the later run are cut.
- If retention dropped syncs, they are cut: the file names the partition and its start.
- A position before the first sync left is answered from the target's beginning only if this sync is
  surely the first ever: the archive has each record of the syncs topic from offset 0 on, or the
  sync names the target's offset 0.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, pairwise
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from airflow_mm2_offsets.archive.codec import Segment, watermarks_table
from airflow_mm2_offsets.archive.columns import SyncColumns, deduplicated, merge
from airflow_mm2_offsets.archive.filenames import FileName, covered
from airflow_mm2_offsets.archive.history_starts import (
    cut_before,
    starts_after_recreation,
    stored_starts,
)
from airflow_mm2_offsets.archive.index_builder import build_index, groups
from airflow_mm2_offsets.archive.older_copies import with_source_ends
from airflow_mm2_offsets.archive.runs import complete_until
from airflow_mm2_offsets.archive.values import (
    NO_IDS,
    ArchivedRun,
    Header,
    HistoryStart,
    PairIdentity,
    Run,
    TopicIds,
    TopicIncarnation,
    newer_ids,
    was_recreated,
)
from airflow_mm2_offsets.core import SyncIndex, TopicPartition
from airflow_mm2_offsets.core.epochs import Beginning, History

if TYPE_CHECKING:
    from airflow_mm2_offsets.kafka.sync_log import SyncRecords

_NO_WATERMARKS = partial(watermarks_table, {}, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchivedSyncs:
    """The contents of an archive at a time."""

    pair: PairIdentity | None
    """None if the archive is empty."""
    damaged: tuple[str, ...]
    """What was skipped: a phrase for each file."""
    segments: Mapping[FileName, Segment]
    """The contents of each file."""
    incarnations: tuple[TopicIncarnation, ...]
    """In log order."""
    runs: tuple[ArchivedRun, ...]
    """In log order."""
    columns: SyncColumns
    """Without what is cut."""
    incarnation_index: NDArray[np.int32]
    """The index in ``incarnations`` of each sync."""
    history_starts: Mapping[TopicPartition, HistoryStart]
    """Of the partitions with cut syncs."""

    def __len__(self) -> int:
        """Return the number of syncs."""
        return len(self.columns)

    @property
    def as_of(self) -> int | None:
        """When the newest run was, in milliseconds since 1970."""
        return max((run.time for _, run in self.runs), default=None)

    @property
    def topics(self) -> dict[str, TopicIds]:
        """The ids last seen of each replicated topic, by the source's names."""
        last_ids = dict.fromkeys((topic for topic, _ in self.columns.partitions), NO_IDS)
        for _, run in self.runs:
            for topic, ids in run.topics.items():
                last_ids[topic] = newer_ids(last_ids.get(topic, NO_IDS), ids)
        return last_ids

    def next_read(self, topic_id: str | None, end: int) -> tuple[TopicIncarnation, int]:
        """Return the incarnation and the first offset of the next read of the syncs topic.

        Args:
            topic_id: The topic's id now.
            end: Its end offset now. If the archive is past it, the topic was truncated.
        """
        if not self.incarnations:
            return TopicIncarnation(1, topic_id or ""), 0
        newest = self.incarnations[-1]
        reached = covered(self.segments)[newest]
        if topic_id in {newest.topic_id or None, None} and reached <= end:
            return newest, reached
        return TopicIncarnation(newest.number + 1, topic_id or ""), 0

    def watermarks(self, incarnation: TopicIncarnation) -> pa.Table:
        """Return the watermarks that an incarnation's runs saw; see ``Segment.watermarks``."""
        return pa.concat_tables(
            [self.segments[name].watermarks() for name in _names(self.segments, incarnation)]
        )

    def with_run(
        self, header: Header, syncs: "Mapping[TopicPartition, SyncRecords]"
    ) -> "ArchivedSyncs":
        """Return the contents that the archive would have after one more run."""
        columns = SyncColumns.of_records(syncs)
        segment = Segment(header=header, columns=columns, watermarks=_NO_WATERMARKS)
        name = FileName(header.incarnation, header.first, header.stop, digest="")
        return assemble({**self.segments, name: segment}, self.damaged)

    def with_ids(self, topics: Mapping[str, TopicIds], time: int) -> "ArchivedSyncs":
        """Return the contents after a run that sees these ids and no new sync.

        Topics that were recreated since the last run are cut.

        Args:
            topics: The ids of the replicated topics, by the source's names.
            time: Milliseconds since 1970.
        """
        last_ids = self.topics
        if not any(was_recreated(last_ids.get(topic, ids), ids) for topic, ids in topics.items()):
            return self
        assert self.pair is not None  # noqa: S101 - an archive that names a topic has a file
        incarnation, newest = self.runs[-1]
        stop, time = newest.stop, max(time, newest.time)
        run = Run(first=stop, stop=stop, time=time, whole=True, topics=topics)
        header = Header(pair=self.pair, incarnation=incarnation, runs=(run,))
        return self.with_run(header, {})

    def index(self) -> SyncIndex:
        """Return the syncs as an index."""
        complete, downstream = self.complete(), self.columns.downstream
        beginnings = dict.fromkeys(complete, Beginning(history=History.COMPLETE))
        for topic_partition, first, _ in groups(self.columns):
            if topic_partition not in complete and downstream[first] != 0:
                beginnings[topic_partition] = Beginning(history=History.LATE)
        beginnings |= {each: start.beginning for each, start in self.history_starts.items()}
        return with_source_ends(build_index(self.columns, beginnings), self)

    def complete(self) -> frozenset[TopicPartition]:
        """Return the partitions whose first sync here is surely the first ever written."""
        complete_before = complete_until(self.runs)
        return frozenset(
            topic_partition
            for topic_partition, first, _ in groups(self.columns)
            if self.incarnation_index[first] == 0
            and self.columns.offset[first] < complete_before
            and topic_partition not in self.history_starts
        )


def assemble(segments: Mapping[FileName, Segment], damaged: Sequence[str]) -> ArchivedSyncs:
    """Return the contents of all files; how they are split into files makes no difference."""
    incarnations = _in_log_order(segments)
    parts = [_parts(segments, incarnation) for incarnation in incarnations]
    columns, part_index = merge(list(chain.from_iterable(parts)))
    numbers = np.arange(len(parts), dtype=np.int32)
    starts = stored_starts(segments.values(), incarnations)
    archived = ArchivedSyncs(
        pair=next((each.header.pair for each in segments.values()), None),
        damaged=tuple(damaged),
        segments=segments,
        incarnations=incarnations,
        runs=tuple((each, run) for each in incarnations for run in _runs(segments, each)),
        columns=columns,
        incarnation_index=numbers.repeat([len(several) for several in parts])[part_index],
        history_starts=starts,
    )
    return cut_before(archived, starts | starts_after_recreation(archived, starts))


def _in_log_order(segments: Mapping[FileName, Segment]) -> tuple[TopicIncarnation, ...]:
    def order(incarnation: TopicIncarnation) -> tuple[int, int, str]:
        first_time = min(run.time for run in _runs(segments, incarnation))
        return incarnation.number, first_time, incarnation.topic_id

    return tuple(sorted({name.incarnation for name in segments}, key=order))


def _names(segments: Iterable[FileName], incarnation: TopicIncarnation) -> list[FileName]:
    return sorted(name for name in segments if name.incarnation == incarnation)


def _runs(segments: Mapping[FileName, Segment], incarnation: TopicIncarnation) -> list[Run]:
    runs = (run for name in _names(segments, incarnation) for run in segments[name].header.runs)
    return sorted(runs, key=lambda run: (run.stop, run.time, run.first))


def _parts(
    segments: Mapping[FileName, Segment], incarnation: TopicIncarnation
) -> list[SyncColumns]:
    """Return the syncs of an incarnation's files, each once."""
    names = _names(segments, incarnation)
    parts = [segments[name].columns for name in names]
    overlapping = any(later.first < name.stop for name, later in pairwise(names))
    return [deduplicated(parts)] if overlapping else parts
