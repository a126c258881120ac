"""Collects the evidence for a copy that keeps offsets (``OffsetMapping.IDENTITY``).

``plan.collect_evidence`` calls it. It reads no offset sync and asks no Connect.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.core import (
    Direction,
    Status,
    Strategy,
    SyncIndex,
    TopicPartition,
    Translation,
    Watermarks,
)
from airflow_mm2_offsets.core.identity import IdentityEvidence, translate_same_offset
from airflow_mm2_offsets.errors import ConfigurationError
from airflow_mm2_offsets.kafka.syncs import SyncsSnapshot
from airflow_mm2_offsets.planning.offset_evidence import PairWatermarks
from airflow_mm2_offsets.planning.options import PlanOptions
from airflow_mm2_offsets.planning.same_offsets import (
    SameOffsetReader,
    look_around,
    samples,
)

_FEW, _NEAR, _FAR = 20, 200, 10_000
"""Offsets on either side of a position: far ones are read where the near ones settle nothing, and
few where the near ones are too much to read."""


class IdentityCollector:
    """Positions on the source, and the evidence for their translation; see ``EvidenceCollector``.

    The way home is the same: where copies keep offsets, the mapping is its own inverse.
    """

    def __init__(
        self, *, pair: ClusterPair, positions: Mapping[TopicPartition, int], options: PlanOptions
    ) -> None:
        """Read the watermarks.

        Raises:
            TopicNotFoundError: A topic or partition does not exist on a cluster.
            ClusterUnreachableError: A cluster does not answer.
        """
        self.pair = pair
        self.index = SyncIndex()
        """Empty: no sync is needed."""
        self.positions = positions
        self.options = options
        self.watermarks = self._read_watermarks()
        stable = self._read_stable()
        self._evidence = {
            key: IdentityEvidence(
                source=self.watermarks.source.get(key),
                target=self.watermarks.target[key],
                source_stable=stable[0].get(key),
                target_stable=min(stable[1][key], self.watermarks.target[key].high),
                sole_writer=options.sole_writer,
                is_way_home=pair.direction is Direction.EXCHANGED,
            )
            for key in positions
        }
        self._reader = SameOffsetReader(pair, self.watermarks)

    @property
    def source_records(self) -> int:
        """How many records of the source were read."""
        return self._reader.source_records

    @property
    def target_records(self) -> int:
        """How many records of the target were read."""
        return self._reader.target_records

    def translations(self) -> list[Translation]:
        """Return the answers by the evidence so far."""
        return [
            translate_same_offset(key, position, self._evidence[key])
            for key, position in self.positions.items()
        ]

    def compare_records(self) -> None:
        """Compare records of both clusters by offset.

        Those around each position, then samples of all that both clusters hold, then more around
        the positions that are not settled. At most ``max_evidence_bytes`` of a cluster are read.
        """
        most = self.options.max_evidence_bytes
        if not self.options.read_source or not most:
            return
        common = {key: self._common(key) for key in self.positions}
        for reach, max_bytes in ((_NEAR, most // 2), (_FEW, most // 8)):
            around = look_around(self._reader.unread(self.positions), common, reach)
            self._reader.read(around, max_bytes=max_bytes, beyond=reach)
        for sample in samples(common, _NEAR):
            self._reader.read(sample, max_bytes=most // 64)
        self._take_compared()
        unsettled = {
            answer.topic_partition: answer.position
            for answer in self.translations()
            if answer.status is not Status.EXACT and self._is_open(answer.topic_partition)
        }
        far = look_around(unsettled, common, _FAR)
        self._reader.read(far, max_bytes=most // 4, beyond=_FAR)
        self._take_compared()

    def _is_open(self, key: TopicPartition) -> bool:
        """Tell whether more records may settle a position."""
        return (
            self._evidence[key].difference is None
            and self.positions[key] <= self.watermarks.target[key].high
        )

    def _take_compared(self) -> None:
        differences = self._reader.differences()
        for key, evidence in self._evidence.items():
            self._evidence[key] = replace(
                evidence,
                compared=self._reader.compared(key),
                difference=differences.get(key),
            )

    def _common(self, key: TopicPartition) -> Watermarks:
        """Return the offsets that both clusters hold."""
        source, target = self.watermarks.source[key], self.watermarks.target[key]
        low = max(source.low, target.low)
        return Watermarks(low=low, high=max(low, min(source.high, target.high)))

    def _read_watermarks(self) -> PairWatermarks:
        """Read the copy's watermarks before the original's: what is written between proves nothing.

        On the way home the source is the copy.
        """
        ask_source = self.options.read_source
        if self.pair.direction is Direction.EXCHANGED:
            return PairWatermarks.read(self.pair, self.positions, ask_source=ask_source)
        target = PairWatermarks.read(self.pair, self.positions, ask_source=False).target
        source = self.pair.source.watermarks(self.positions) if ask_source else {}
        return PairWatermarks(source=source, target=target)

    def _read_stable(self) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
        """Return the last stable offsets of both clusters, the source's first."""
        names = {self.pair.on_target(key): key for key in self.positions}
        keys = self.positions if self.options.read_source else ()
        source = self.pair.source.watermarks(keys, isolation="read_committed")
        target = self.pair.target.watermarks(names, isolation="read_committed")
        return (
            {key: each.high for key, each in source.items()},
            {names[name]: each.high for name, each in target.items()},
        )


def collect_identity(
    pair: ClusterPair,
    positions: Mapping[TopicPartition, int],
    options: PlanOptions,
    *,
    connectors: Collection[str] = (),  # noqa: ARG001 - there are none; the other mappings take them
) -> tuple[IdentityCollector, SyncsSnapshot]:
    """Read the evidence for a copy that keeps offsets; the snapshot of syncs is empty.

    Raises:
        ConfigurationError: An option is about offset syncs.
        TopicNotFoundError: A topic or partition does not exist on a cluster.
        ClusterUnreachableError: A cluster does not answer.
    """
    _check_options(pair, options)
    collector = IdentityCollector(pair=pair, positions=positions, options=options)
    collector.compare_records()
    return collector, SyncsSnapshot(index=SyncIndex(), records_read=0, next_offset=0)


def _check_options(pair: ClusterPair, options: PlanOptions) -> None:
    """Refuse options that would be silently without effect, or that contradict the mapping."""
    named = {
        "archive": options.archive is not None,
        "strategy": options.strategy is not Strategy.SAFE,
    }
    for setting, is_given in named.items():
        if is_given:
            raise ConfigurationError(
                f"it is about offset syncs, and the mapping of the pair is {pair.mapping}: the "
                f"copy keeps offsets. Leave it out, or set the mapping to offset_syncs",
                setting=setting,
            )
