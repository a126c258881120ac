"""Syncs by the million, as of topics with gaps: no two steps are alike, as in real ones."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import NamedTuple

from airflow_mm2_offsets.archive import Header, PairIdentity, Run, SyncArchive, TopicIncarnation
from airflow_mm2_offsets.core import OffsetSync, SyncIndex, TopicPartition, encode_offset_sync
from airflow_mm2_offsets.kafka.sync_log import SyncRecords

TOPIC = "orders"
LAG = 100
"""Source offsets between two syncs of a partition, about: MirrorMaker 2's offset.lag.max."""
COPIED = 97
"""How many of those are on the target."""
JITTER = 61
ARCHIVE_RUNS = 20
"""How many runs filled the archive: as many files as it may have between two compactions."""


class Asking(NamedTuple):
    """Which positions of each partition are asked about: ``number * step``, modulo its span."""

    positions: int
    step: int
    rounds: int = 5
    """How often; the fastest counts. Once: what a program does that was just started."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """So many syncs of each of so many partitions."""

    partitions: int
    syncs: int

    @property
    def count(self) -> int:
        """The number of all syncs."""
        return self.partitions * self.syncs

    @property
    def span(self) -> int:
        """The number of source records of a partition."""
        return self.syncs * LAG

    def in_log_order(self, first: int = 0) -> Iterator[OffsetSync]:
        """Yield every sync; the partitions take turns, of which ``first`` were before."""
        yield from self._syncs(range(first, first + self.syncs))

    def index(self) -> SyncIndex:
        """Return all syncs as an index."""
        return SyncIndex.of_pairs(
            {place: map(_pair, range(self.syncs), repeat(place[1])) for place in self._places()}
        )

    def archive(self, folder: Path) -> None:
        """Write all syncs to an archive, in several runs."""
        archive = SyncArchive(str(folder))
        pair = PairIdentity(source="source", target="target", syncs_topic="syncs")
        each = -(-self.syncs // ARCHIVE_RUNS)
        for first in range(0, self.syncs, each):
            turns = range(first, min(first + each, self.syncs))
            run = Run(
                first=turns.start * self.partitions,
                stop=turns.stop * self.partitions,
                time=0,
                whole=True,
            )
            header = Header(pair=pair, incarnation=TopicIncarnation(1, ""), runs=(run,))
            archive.append(header=header, syncs=self._records(turns), watermarks={})

    def _places(self) -> list[TopicPartition]:
        return [TopicPartition(TOPIC, partition) for partition in range(self.partitions)]

    def _records(self, turns: range) -> dict[TopicPartition, SyncRecords]:
        records = {place: SyncRecords() for place in self._places()}
        for offset, sync in enumerate(self._syncs(turns), turns.start * self.partitions):
            columns = records[TopicPartition(TOPIC, sync.partition)]
            columns.offsets.append(offset)
            columns.values.extend(encode_offset_sync(sync)[1])
        return records

    def _syncs(self, turns: range) -> Iterator[OffsetSync]:
        for turn in turns:
            for partition in range(self.partitions):
                upstream, downstream = _pair(turn, partition)
                yield OffsetSync(
                    topic=TOPIC, partition=partition, upstream=upstream, downstream=downstream
                )


def _pair(turn: int, partition: int) -> tuple[int, int]:
    """Return a sync; StoreBench.java makes the same."""
    jitter = (turn * 31 + partition * 17) % JITTER
    return turn * LAG + jitter, turn * COPIED + jitter
