"""Collects the evidence for the way home by the same syncs; ``plan`` calls it.

The pair's source is B, which the job leaves; its target is A, where MirrorMaker 2 copies from.
"""

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.core import (
    Direction,
    Evidence,
    FailoverPlan,
    SourceWindow,
    Strategy,
    SyncIndex,
    TopicPartition,
    Translation,
)
from airflow_mm2_offsets.core.evidence import RecordWindow
from airflow_mm2_offsets.core.ids import PairIds
from airflow_mm2_offsets.core.inverse import search_from, translate_back
from airflow_mm2_offsets.core.inverse_evidence import FirstMove, InverseEvidence
from airflow_mm2_offsets.core.positions import PartitionPosition
from airflow_mm2_offsets.core.uncopied import (
    are_read_from,
    find_unread_at_home,
    first_at_home,
    settle_at_home,
)
from airflow_mm2_offsets.errors import ClusterUnreachableError, Mm2OffsetsError, PlanError
from airflow_mm2_offsets.kafka.ranges import OffsetRange, PartitionRange, read_ranges
from airflow_mm2_offsets.kafka.syncs import SyncsSnapshot
from airflow_mm2_offsets.planning.contradictions import find_contradictions
from airflow_mm2_offsets.planning.mirror_connector import MirrorConnector
from airflow_mm2_offsets.planning.offset_evidence import PairWatermarks, committed_by_connect
from airflow_mm2_offsets.planning.options import PlanOptions
from airflow_mm2_offsets.planning.record_evidence import are_timed, contents, read_source_ranges
from airflow_mm2_offsets.planning.record_ranges import MAX_WINDOW
from airflow_mm2_offsets.planning.syncs import load_syncs
from airflow_mm2_offsets.planning.uncopied_records import cause_of, find_uncopied

if TYPE_CHECKING:
    from airflow_mm2_offsets.core.result import Uncopied

log = logging.getLogger(__name__)

_NEAR = 10_000
"""So many offsets are read in any case if they reach back to the first move."""
_SPARE = 1_000
"""Offsets of A that are read before the answer: equal records there make an answer wider."""


class InverseCollector:
    """Positions on B, and the evidence for their way home; see ``EvidenceCollector``."""

    def __init__(
        self,
        *,
        pair: ClusterPair,
        syncs: SyncIndex,
        positions: Mapping[TopicPartition, int],
        options: PlanOptions,
        connectors: Collection[str] | None = None,
    ) -> None:
        """Read Connect's offsets, then the watermarks.

        In this order: what Connect has committed lies below B's end that is read afterwards.
        """
        self.pair = pair
        self.index = SyncIndex()
        """Empty: the syncs lead the other way."""
        self.options = options
        self.positions = positions
        self.source_records = self.target_records = 0
        self._syncs = syncs
        self._uncopied: dict[TopicPartition, Uncopied] = {}
        self._homes = {key: pair.on_target(key) for key in positions}
        committed = self._read_committed(connectors)
        self.watermarks = PairWatermarks.read(pair, positions, ask_source=True)
        self._evidence = {
            key: InverseEvidence(
                home=self.watermarks.target[key],
                away=self.watermarks.source[key],
                first=_first_move(options.first_plan, home),
                committed=committed.get(home),
                sole_writer=options.sole_writer,
                changed_records=options.changed_records,
            )
            for key, home in self._homes.items()
        }

    def translations(self) -> list[Translation]:
        """Return the answers by the evidence so far."""
        return [
            settle_at_home(self._translate(key), self._uncopied.get(key)) for key in self.positions
        ]

    def _translate(self, key: TopicPartition) -> Translation:
        syncs = self._syncs.partitions.get(self._homes[key])
        return translate_back(syncs, key, self.positions[key], self._evidence[key])

    def find_uncopied(self, connectors: Sequence[MirrorConnector]) -> None:
        """Look for records that the job has read nowhere; see ``EvidenceCollector``.

        Those are what MirrorMaker 2 has passed over since the first move. Where that was not read
        whole, it is looked for as on the way there.
        """
        found: dict[TopicPartition, Uncopied] = {}
        far: dict[PartitionPosition, TopicPartition] = {}
        answers = {key: self._translate(key).target for key in self.positions}
        for key, evidence in self._evidence.items():
            home, until = self._homes[key], answers[key]
            cause = cause_of(connectors, home.topic)
            if until is None or cause is None:
                continue
            given_up = _given_up_until(self.options.first_plan, home)
            first = first_at_home(evidence, given_up)
            if are_read_from(evidence, first):
                if unread := find_unread_at_home(
                    evidence, until=until, cause=cause, given_up_until=given_up
                ):
                    found[key] = unread
            elif first < until and self.options.max_evidence_bytes:
                far[PartitionPosition(home, first)] = key
        passed_over = find_uncopied(
            self.pair.mirrored,
            self._syncs,
            far,
            connectors=connectors,
            options=self.options,
            until={self._homes[key]: answers[key] or 0 for key in far.values()},
        )
        found |= {far[position]: uncopied for position, uncopied in passed_over.items()}
        is_given_up = sum(each.at_most for each in found.values()) <= self.options.give_up
        self._uncopied = {
            key: replace(each, is_given_up=is_given_up) for key, each in found.items()
        }

    def compare_records(self) -> None:
        """Compare syncs' records on both clusters: topics that differ are contradictions."""
        if not self.options.max_evidence_bytes or self.options.changed_records:
            return
        keys = {home: key for key, home in self._homes.items()}
        evidence = {
            PartitionPosition(home, self._search(key)[0]): Evidence(
                source=self._evidence[key].home, target=self._evidence[key].away
            )
            for home, key in keys.items()
        }
        found = find_contradictions(self.pair.mirrored, self._syncs, evidence)
        for (home, _), sync in found.items():
            key = keys[home]
            self._evidence[key] = replace(self._evidence[key], contradiction=sync)

    def collect_records(self) -> None:
        """Read the records around the positions: of B up to its end, then of A."""
        limit = 0 if self.options.changed_records else self.options.max_evidence_bytes
        copies = read_ranges(self.pair.source, self._away_ranges(), max_bytes=limit)
        ranges = {key: (self._homes[key], self._home_range(key)) for key in copies}
        originals = read_source_ranges(self.pair.mirrored, ranges, max_bytes=limit)
        for key, records in copies.items():
            self.source_records += len(records)
            timed, away = are_timed(records), self._away_range(key)
            window = RecordWindow(
                first=away.first, last=away.last, records=contents(records, timed=timed)
            )
            self._evidence[key] = replace(self._evidence[key], copies=window)
            if read := originals.get(key):
                offsets, at_home = read
                self.target_records += len(at_home)
                source = SourceWindow(
                    first=offsets.first,
                    last=offsets.last,
                    records=contents(at_home, timed=timed),
                )
                self._evidence[key] = replace(self._evidence[key], originals=source)

    def _search(self, key: TopicPartition) -> tuple[int, int]:
        syncs = self._syncs.partitions.get(self._homes[key])
        return search_from(syncs, self.positions[key], self._evidence[key])

    def _away_ranges(self) -> dict[TopicPartition, PartitionRange]:
        ranges = {key: (key, self._away_range(key)) for key in self.positions}
        return {key: each for key, each in ranges.items() if each[1].size <= MAX_WINDOW}

    def _away_range(self, key: TopicPartition) -> OffsetRange:
        evidence, last = self._evidence[key], self._evidence[key].away.high - 1
        first = min(self._search(key)[1], self.positions[key])
        if last - evidence.begin < _NEAR:
            first = min(first, evidence.begin)
        if last - first >= MAX_WINDOW:  # At least what the job has yet to read.
            first = self.positions[key]
        return OffsetRange(max(first, evidence.away.low), last)

    def _home_range(self, key: TopicPartition) -> OffsetRange:
        evidence, last = self._evidence[key], self._evidence[key].home.high - 1
        first = self._search(key)[0] - _SPARE
        if last - evidence.base < _NEAR:
            first = min(first, evidence.base)
        return OffsetRange(max(first, evidence.home.low, last - MAX_WINDOW + 1), last)

    def _read_committed(self, connectors: Collection[str] | None) -> dict[TopicPartition, int]:
        try:
            return committed_by_connect(self.pair.mirrored, self._homes.values(), connectors)
        except Mm2OffsetsError as error:
            log.warning("What Connect has committed is not known: %s", error)
            return {}


def collect_for_way_home(
    pair: ClusterPair,
    positions: Mapping[TopicPartition, int],
    options: PlanOptions,
    *,
    connectors: Collection[str] | None = None,
) -> tuple[InverseCollector, SyncsSnapshot]:
    """Read the syncs and the evidence for the way home by the same syncs.

    Raises:
        ClusterUnreachableError: A cluster does not answer, or is not to be asked.
        Mm2OffsetsError: See ``plan_failover``.
    """
    if not options.read_source:
        raise ClusterUnreachableError(
            "it must be asked on the way home: only it shows whether a producer has written there "
            "what the job has yet to read. Set read_source, or choose where to start",
            cluster=pair.source.name,
        )
    syncs = load_syncs(pair.mirrored, options.archive)
    collector = InverseCollector(
        pair=pair, syncs=syncs.index, positions=positions, options=options, connectors=connectors
    )
    collector.compare_records()
    collector.collect_records()
    return collector, syncs


def check_first_plan(first: FailoverPlan, pair: ClusterPair, ids: PairIds) -> None:
    """Raise unless a plan moved a job from the pair's target to its source.

    Args:
        first: The plan; ``read_plan`` has refused it if it was damaged or edited.
        pair: The pair towards MirrorMaker 2's source.
        ids: The current ids, as the pair sees them.

    Raises:
        PlanError: It is of other clusters or topics; both values are named.
    """
    if pair.direction is not Direction.EXCHANGED or first.direction is not Direction.FORWARD:
        raise PlanError(
            f"the first plan is of the direction {first.direction.value}, and this move of "
            f"{pair.direction.value}: a first plan leads away as MirrorMaker 2 copies, and counts "
            f"only on the way home by the same syncs",
            setting="first_plan",
        )
    for change in first.ids.changes(PairIds(source=ids.target, target=ids.source)):
        raise PlanError(
            f"{change.field} is {change.planned!r} in the plan of {first.created_at}, and "
            f"{change.now!r} now: it is of another cluster or topic, or the topic was recreated. "
            f"Give the plan that the job was moved away with; of a recreated topic no position "
            f"can be translated",
            setting="first_plan",
        )


def _given_up_until(first: FailoverPlan | None, home: TopicPartition) -> int:
    """Return the last offset on A that the user gave up with a plan; -1 without any."""
    for planned in first.partitions if first else ():
        uncopied = planned.translation.uncopied
        if planned.translation.topic_partition == home and uncopied and uncopied.is_given_up:
            return uncopied.last
    return -1


def _first_move(first: FailoverPlan | None, home: TopicPartition) -> FirstMove | None:
    """Return what a plan says of a partition; None where it does not know it."""
    if first is None:
        return None
    for planned in first.partitions:
        if planned.translation.topic_partition == home and planned.start is not None:
            return FirstMove(
                position=planned.translation.position,
                start=planned.start,
                is_proven=planned.fallback is None and first.strategy is Strategy.SAFE,
            )
    return None
