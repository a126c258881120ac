"""Every offset sync of a pair of clusters; the rooms above ask it for translations."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType

from airflow_mm2_offsets.core.epochs import Beginning, History, PartitionSyncs
from airflow_mm2_offsets.core.evidence import NO_EVIDENCE, Evidence, Extras
from airflow_mm2_offsets.core.positions import TopicPartition, check_position
from airflow_mm2_offsets.core.result import Strategy, Translation
from airflow_mm2_offsets.core.rules import translate
from airflow_mm2_offsets.core.uncopied import settle_uncopied
from airflow_mm2_offsets.core.wire import OffsetSync


class SyncIndex:
    """The syncs of every partition; immutable, so that readers never see half of one."""

    __slots__ = ("_partitions",)

    def __init__(self, syncs: Iterable[OffsetSync] = ()) -> None:
        """Index ``syncs``, which come in the order of the offset-syncs topic."""
        pairs: dict[TopicPartition, list[tuple[int, int]]] = {}
        for sync in syncs:
            key = TopicPartition(sync.topic, sync.partition)
            pairs.setdefault(key, []).append((sync.upstream, sync.downstream))
        self._partitions = {key: PartitionSyncs(syncs) for key, syncs in pairs.items()}

    @classmethod
    def of_partitions(cls, partitions: Mapping[TopicPartition, PartitionSyncs]) -> "SyncIndex":
        """Return an index of partitions that are indexed already."""
        index = cls()
        index._partitions = {TopicPartition(*key): syncs for key, syncs in partitions.items()}
        return index

    def extended(
        self,
        pairs: Mapping[TopicPartition, Iterable[tuple[int, int]]],
        *,
        complete: Collection[TopicPartition] = (),
    ) -> "SyncIndex":
        """Return an index that goes on with ``pairs``; this one stays as it is.

        Args:
            pairs: Pairs of upstream and downstream offset, in log order for each partition.
            complete: The partitions whose first sync in ``pairs`` is the first ever written.
        """
        index = SyncIndex()
        index._partitions = self._partitions | {
            TopicPartition(*key): PartitionSyncs(
                more,
                after=self._partitions.get(key),
                beginning=Beginning(
                    history=History.COMPLETE if key in complete else History.UNKNOWN
                ),
            )
            for key, more in pairs.items()
        }
        return index

    def __len__(self) -> int:
        """Return the number of syncs kept."""
        return sum(len(syncs) for syncs in self._partitions.values())

    def __iter__(self) -> Iterator[TopicPartition]:
        """Yield each topic and partition that has a sync."""
        return iter(self._partitions)

    @property
    def partitions(self) -> Mapping[TopicPartition, PartitionSyncs]:
        """The syncs of each topic and partition, by the source's names."""
        return MappingProxyType(self._partitions)

    def translate(
        self,
        topic: str,
        partition: int,
        position: int,
        *,
        strategy: Strategy | str = Strategy.SAFE,
        extras: Extras | str | None = None,
        evidence: Evidence = NO_EVIDENCE,
    ) -> Translation:
        """Translate a source position to a target position.

        Args:
            topic: The topic's name on the source.
            partition: Its partition.
            position: The next offset to read on the source.
            strategy: Which target position to answer; only ``safe`` never loses a record.
            extras: Short for ``evidence.extras``.
            evidence: What was read from the clusters beyond the syncs.

        Raises:
            PositionError: ``position`` is not a position.
            ValueError: ``strategy`` or ``extras`` is unknown.
        """
        if extras is not None:
            evidence = replace(evidence, extras=Extras(extras))
        syncs = self._partitions.get(TopicPartition(topic, partition))
        answer = translate(
            syncs,
            topic,
            partition,
            check_position(topic, partition, position),
            strategy=Strategy(strategy),
            evidence=evidence,
        )
        return settle_uncopied(answer, syncs, evidence)
