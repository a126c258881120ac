"""What all files of an archive say together.

Where the usable syncs of a partition begin:

- a topic whose id changed on either side from one run to the next was recreated in between:
  its syncs up to the end of the run that saw it are cut;
- syncs that retention dropped are cut, and the file that lacks them says so;
- what lies before the first sync left is answered from the target's beginning only where the
  archive knows that this is the first sync ever: every record of the syncs topic, from its offset
  0 on, is there, or the sync names the target's offset 0.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from airflow_mm2_offsets.archive.codec import Segment, marks_table
from airflow_mm2_offsets.archive.columns import SyncColumns, deduplicated, merge
from airflow_mm2_offsets.archive.filenames import FileName, covered
from airflow_mm2_offsets.archive.floors import floors_of_recreated, raise_floors, stored_floors
from airflow_mm2_offsets.archive.index_builder import build_index, groups
from airflow_mm2_offsets.archive.runs import complete_until
from airflow_mm2_offsets.archive.values import (
    Floor,
    Generation,
    Header,
    PairIdentity,
    Run,
    TopicIds,
    newer_ids,
    was_recreated,
)
from airflow_mm2_offsets.core import SyncIndex, TopicPartition
from airflow_mm2_offsets.core.epochs import History

if TYPE_CHECKING:
    from airflow_mm2_offsets.kafka.sync_log import SyncRecords


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchivedSyncs:
    """Everything in an archive, read at one moment."""

    pair: PairIdentity | None
    """None where the archive is empty."""
    damaged: tuple[str, ...]
    """What was skipped, each as a phrase."""
    segments: Mapping[FileName, Segment]
    """What the files hold, each by itself."""
    generations: tuple[Generation, ...]
    """In log order."""
    runs: tuple[tuple[Generation, Run], ...]
    """In log order."""
    columns: SyncColumns
    """Without what is cut."""
    generation: NDArray[np.int32]
    """The index in ``generations`` of each sync."""
    floors: Mapping[TopicPartition, Floor]
    """The partitions of which something is cut."""

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
        known: dict[str, TopicIds] = {place[0]: (None, None) for place in self.columns.partitions}
        for _, run in self.runs:
            for topic, ids in run.topics.items():
                known[topic] = newer_ids(known.get(topic, (None, None)), ids)
        return known

    def next_read(self, topic_id: str | None, end: int) -> tuple[Generation, int]:
        """Return where a reading of the syncs topic goes on.

        Args:
            topic_id: The topic's id now.
            end: Its end now: before what was read, it was truncated.
        """
        if not self.generations:
            return Generation(1, topic_id or ""), 0
        newest = self.generations[-1]
        reached = covered(self.segments)[newest]
        if topic_id in {newest.topic_id or None, None} and reached <= end:
            return newest, reached
        return Generation(newest.number + 1, topic_id or ""), 0

    def marks(self, generation: Generation) -> pa.Table:
        """Return the watermarks that a generation's runs saw; see ``codec.Segment.marks``."""
        mine = (each for name, each in self.segments.items() if name.generation == generation)
        return pa.concat_tables([segment.marks() for segment in mine])

    def with_run(
        self, header: Header, syncs: "Mapping[TopicPartition, SyncRecords]"
    ) -> "ArchivedSyncs":
        """Return what an archive would hold that has one more run."""
        columns = SyncColumns.of_records(syncs)
        segment = Segment(header=header, columns=columns, marks=partial(marks_table, {}, 0))
        name = FileName(header.generation, header.first, header.stop, digest="")
        return assemble({**self.segments, name: segment}, self.damaged)

    def with_ids(self, topics: Mapping[str, TopicIds], time: int) -> "ArchivedSyncs":
        """Return what an archive would hold after a run that found these ids now and no sync.

        A topic that was recreated since is cut. ``time`` is in milliseconds since 1970.
        """
        known = self.topics
        if not any(was_recreated(known.get(topic, ids), ids) for topic, ids in topics.items()):
            return self
        assert self.pair is not None  # noqa: S101 - what knows a topic has a file
        generation, newest = self.runs[-1]
        stop, latest = newest.stop, max(time, newest.time)
        run = Run(first=stop, stop=stop, time=latest, whole=True, topics=topics)
        header = Header(pair=self.pair, generation=generation, runs=(run,))
        return self.with_run(header, {})

    def index(self) -> SyncIndex:
        """Return the syncs as an index."""
        complete, downstream = self.complete(), self.columns.downstream
        histories = dict.fromkeys(complete, History.COMPLETE)
        for place, start, _ in groups(self.columns):
            if place not in complete and downstream[start] != 0:
                histories[place] = History.LATE
        settled = {
            place: floor.settled_below
            for place, floor in self.floors.items()
            if floor.settled_below is not None
        }
        for place in self.floors:
            histories[place] = History.CUT if place in settled else History.LATE
        last_cuts = {
            place: floor.last_cut
            for place, floor in self.floors.items()
            if place not in settled and floor.last_cut is not None
        }
        return build_index(self.columns, histories, settled, last_cuts)

    def complete(self) -> frozenset[TopicPartition]:
        """Return the partitions whose first sync here is surely the first ever written."""
        complete = complete_until(self.runs)
        return frozenset(
            place
            for place, start, _ in groups(self.columns)
            if self.generation[start] == 0
            and self.columns.offset[start] < complete
            and place not in self.floors
        )


def assemble(segments: Mapping[FileName, Segment], damaged: Sequence[str]) -> ArchivedSyncs:
    """Return what ``segments`` say together: the same for any files that hold the same."""
    generations = _in_log_order(segments)
    runs = tuple((each, run) for each in generations for run in _runs(segments, each))
    parts = [_parts(segments, each) for each in generations]
    columns, part = merge([each for several in parts for each in several])
    number = np.arange(len(parts), dtype=np.int32)
    generation = number.repeat([len(several) for several in parts])[part]
    floors = stored_floors(segments.values(), generations)
    made = ArchivedSyncs(
        pair=next((each.header.pair for each in segments.values()), None),
        damaged=tuple(damaged),
        segments=segments,
        generations=generations,
        runs=runs,
        columns=columns,
        generation=generation,
        floors=floors,
    )
    return raise_floors(made, floors | floors_of_recreated(made, floors))


def _in_log_order(segments: Mapping[FileName, Segment]) -> tuple[Generation, ...]:
    began: dict[Generation, int] = {}
    for name, segment in segments.items():
        time = min(run.time for run in segment.header.runs)
        began[name.generation] = min(time, began.get(name.generation, time))
    return tuple(sorted(began, key=lambda each: (each.number, began[each], each.topic_id)))


def _runs(segments: Mapping[FileName, Segment], generation: Generation) -> list[Run]:
    found = (
        run
        for name, segment in segments.items()
        if name.generation == generation
        for run in segment.header.runs
    )
    return sorted(found, key=lambda run: (run.stop, run.time, run.first))


def _parts(segments: Mapping[FileName, Segment], generation: Generation) -> list[SyncColumns]:
    """Return the syncs of a generation's files, each once."""
    names = sorted(name for name in segments if name.generation == generation)
    parts = [segments[name].columns for name in names]
    overlapping = any(later.first < name.stop for name, later in pairwise(names))
    return [deduplicated(parts)] if overlapping else parts
