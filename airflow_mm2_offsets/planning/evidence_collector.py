"""Collects the evidence of a plan: what the clusters and Connect say beyond the offset syncs.

``plan_failover``, ``still_copying`` and ``check_kept_plan`` call it for one position of each
topic-partition, ``many_positions`` for several. What does not depend on a position is read once.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.core import Evidence, SyncIndex, Translation
from airflow_mm2_offsets.core.positions import PartitionPosition
from airflow_mm2_offsets.core.rules import segments_with
from airflow_mm2_offsets.planning.contradictions import (
    find_contradiction_in,
    find_contradictions,
    find_stale_lows,
)
from airflow_mm2_offsets.planning.mirror_connector import MirrorConnector
from airflow_mm2_offsets.planning.offset_evidence import (
    PairWatermarks,
    gather_drained,
    gather_progress,
)
from airflow_mm2_offsets.planning.options import PlanOptions
from airflow_mm2_offsets.planning.progress import find_progress
from airflow_mm2_offsets.planning.record_evidence import gather_source_to_end, gather_windows
from airflow_mm2_offsets.planning.source_ends import SourceEnds
from airflow_mm2_offsets.planning.sync_direction import require_direction
from airflow_mm2_offsets.planning.uncopied_records import find_uncopied


class EvidenceCollector:
    """Positions on the source, and the evidence for their translation that was read so far.

    ``connectors`` are the names of the pair's; None: Connect is asked for them if needed.
    """

    def __init__(
        self,
        *,
        pair: ClusterPair,
        index: SyncIndex,
        positions: Iterable[PartitionPosition],
        options: PlanOptions,
        connectors: Collection[str] | None = None,
    ) -> None:
        """Read the watermarks.

        Raises:
            TopicNotFoundError: A topic or partition does not exist on a cluster.
            ClusterUnreachableError: A cluster does not answer.
        """
        self.pair = pair
        self.index = index
        self.options = options
        self.connectors = connectors
        self.source_records = 0
        self.target_records = 0
        # Read after the syncs, so that the target's end is not below any sync.
        keys = dict.fromkeys(positions)
        partitions = dict.fromkeys(key.topic_partition for key in keys)
        self.watermarks = PairWatermarks.read(pair, partitions, ask_source=options.read_source)
        self.evidence = {
            key: Evidence(
                source=self.watermarks.source.get(key.topic_partition),
                target=self.watermarks.target[key.topic_partition],
                sole_writer=options.sole_writer,
                changed_records=options.changed_records,
            )
            for key in keys
        }
        self._answers: dict[PartitionPosition, Translation] = {}
        if options.source_ends:
            self.remember_ends({**options.source_ends})

    def translations(self) -> list[Translation]:
        """Return the answers by the evidence so far.

        A position is translated again only if evidence was added for it.
        """
        for key in self.evidence.keys() - self._answers.keys():
            self._answers[key] = self.index.translate(
                *key.topic_partition,
                key.position,
                strategy=self.options.strategy,
                evidence=self.evidence[key],
            )
        return [self._answers[key] for key in self.evidence]

    def collect_all(self) -> None:
        """Read all evidence, each kind where it can still settle an answer."""
        self.compare_records()
        self.collect_offsets()
        self.compare_lows()
        self.collect_records()
        self.compare_lows()

    def compare_lows(self) -> None:
        """Compare the records of the syncs that the answers rest on, in older epochs."""
        if self.options.read_source and self.options.max_evidence_bytes:
            stale = find_stale_lows(self.pair, self.index, self.evidence, self.translations())
            for key, sync in stale.items():
                self._add(key, contradiction=sync)

    def collect_offsets(self) -> None:
        """Read how far MirrorMaker 2 has copied, unless ``read_source`` is False."""
        if not self.options.read_source:
            return
        target_ends = gather_drained(
            self.pair, self.index, self.translations(), connectors=self.connectors
        )
        for key, target in target_ends.items():
            self._add(key, target=target, drained=True)
        progress = gather_progress(
            self.pair, self.index, self.watermarks, connectors=self.connectors
        )
        for key in self.evidence:
            if known := progress.get(key.topic_partition):
                self._add(key, committed=known[0], source_end=known[1])

    def remember_ends(self, seen: SourceEnds) -> None:
        """Use the source's ends of an earlier look, and add those that only this one has seen."""
        partitions = dict(self.index.partitions)
        for key, source in self.watermarks.source.items():
            syncs = partitions.get(key)
            if syncs and not syncs.segments.has_caught_up:
                if seen.get(key, (None, 0))[0] != syncs.first:
                    seen[key] = syncs.first, source.high
                partitions[key] = syncs.with_source_end(seen[key][1])
        self.index = SyncIndex.of_partitions(partitions)
        self._answers.clear()

    def has_caught_up(self, answer: Translation) -> bool:
        """Tell whether MirrorMaker 2 has come past all that it may have copied before.

        If a position still has older copies then, a range was skipped: waiting changes nothing.
        """
        syncs = self.index.partitions.get(answer.topic_partition)
        evidence = self.evidence[PartitionPosition(answer.topic_partition, answer.position)]
        return syncs is not None and segments_with(syncs, evidence).has_caught_up

    def compare_records(self) -> None:
        """Compare one sync's record on both clusters: topics that differ are contradictions."""
        if self.options.read_source and self.options.max_evidence_bytes:
            contradictions = find_contradictions(self.pair, self.index, self.evidence)
            for key, sync in contradictions.items():
                self._add(key, contradiction=sync)

    def check_direction(self) -> None:
        """Refuse syncs that may be those of the flow back, unless ``read_source`` is False.

        Raises:
            ConfigurationError: See ``require_direction``.
        """
        if not self.options.read_source:
            return
        # Topics that differ are refused one by one, and the reason names the records.
        unsettled = {
            key: each
            for key, each in self.evidence.items()
            if each.contradiction is None or each.changed_records
        }
        require_direction(self.pair, self.index, unsettled, self.options)

    def collect_records(self) -> None:
        """Read the records around the positions that are not exact yet."""
        by_partition = {key.topic_partition: each for key, each in self.evidence.items()}
        progress = find_progress(
            self.pair, self.index, by_partition, max_bytes=self.options.max_evidence_bytes
        )
        for key in self.evidence:
            if found := progress.get(key.topic_partition):
                self._add(key, committed=found[0], target=found[1])
        windows = gather_windows(
            self.pair,
            self.index,
            self.evidence,
            self.translations(),
            max_bytes=self.options.max_evidence_bytes,
        )
        for key, (source, target) in windows.items():
            self.target_records += len(target.records)
            self._add(key, source_window=source, target_window=target)
            around = self.index.partitions[key.topic_partition], key.position
            if source and (sync := find_contradiction_in(source, target, *around)):
                self._add(key, contradiction=sync)
        self._read_source_ends(key for key, (source, _) in windows.items() if source)
        source_windows = gather_source_to_end(
            self.pair,
            self.index,
            self.evidence,
            self.translations(),
            max_bytes=self.options.max_evidence_bytes,
        )
        for key, source in source_windows.items():
            self._add(key, source_window=source)
        self.source_records = sum(
            len(evidence.source_window.records)
            for evidence in self.evidence.values()
            if evidence.source_window
        )

    def find_uncopied(self, connectors: Sequence[MirrorConnector]) -> None:
        """Look for records that MirrorMaker 2 has passed over, unless ``read_source`` is False.

        The answers give them up if ``give_up`` names as many as all positions lose together.

        Args:
            connectors: Those of the pair; none: Connect was not asked.
        """
        if not self.options.read_source or not self.options.max_evidence_bytes:
            return
        before_end = [
            key
            for key, evidence in self.evidence.items()
            if evidence.source
            and key.position < evidence.source.high
            and (evidence.contradiction is None or evidence.changed_records)
        ]
        uncopied = find_uncopied(
            self.pair, self.index, before_end, connectors=connectors, options=self.options
        )
        gives_up = sum(each.at_most for each in uncopied.values()) <= self.options.give_up
        for key, found in uncopied.items():
            self._add(key, uncopied=replace(found, is_given_up=gives_up))

    def _read_source_ends(self, keys: Iterable[PartitionPosition]) -> None:
        """Read the source's ends again: the originals of all copies that were read lie below."""
        read = set(keys)
        ends = self.pair.source.watermarks({key.topic_partition for key in read})
        for key in read:
            if known := self.evidence[key].source:
                end = ends[key.topic_partition].high
                self._add(key, source=replace(known, high=max(known.high, end)))

    def _add(self, key: PartitionPosition, **fields: Any) -> None:
        self.evidence[key] = replace(self.evidence[key], **fields)
        self._answers.pop(key, None)
