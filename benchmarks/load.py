"""Syncs by the million, as of topics with gaps: no two steps are alike, as in real ones."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
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
REWIND = 5 * LAG
"""How many source offsets a rewind goes back."""
SURPLUS = 5
"""How many offsets more than the source the target grows by, where it does."""
ARCHIVE_RUNS = 20
"""How many runs filled the archive: as many files as it may have between two compactions."""


class Kind(StrEnum):
    """What a log of syncs holds."""

    RISING = "rising"
    """Both offsets rise; no step of the target is larger than the source's."""
    REWINDS = "two rewinds"
    """MirrorMaker 2 was killed twice."""
    SURPLUS = "surplus in each third step"
    """The target grows by more than the source: markers of transactions, or another writer."""
    ALL_SURPLUS = "surplus in each step"


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
    kind: Kind = Kind.RISING

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
        return SyncIndex().extended(
            {
                place: [self._pair(turn, place.partition) for turn in range(self.syncs)]
                for place in self._places()
            }
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
                upstream, downstream = self._pair(turn, partition)
                yield OffsetSync(
                    topic=TOPIC, partition=partition, upstream=upstream, downstream=downstream
                )

    def _pair(self, turn: int, partition: int) -> tuple[int, int]:
        """Return a sync; of rising ones, StoreBench.java makes the same."""
        jitter = (turn * 31 + partition * 17) % JITTER
        upstream, downstream = turn * LAG + jitter, turn * COPIED + jitter
        match self.kind:
            case Kind.REWINDS:
                upstream -= min(turn // (self.syncs // 3), 2) * REWIND
            case Kind.SURPLUS:
                downstream = turn * LAG + turn // 3 * SURPLUS + jitter
            case Kind.ALL_SURPLUS:
                downstream = turn * (LAG + SURPLUS) + jitter
        return upstream, downstream
