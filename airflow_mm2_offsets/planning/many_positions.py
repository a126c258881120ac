"""Translates several positions of one topic-partition, as consumer groups have them.

``groups`` calls it. The syncs are read once; evidence is collected for ``AT_ONCE`` positions of
each topic-partition at a time.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.core import TopicPartition, Translation
from airflow_mm2_offsets.core.positions import PartitionPosition
from airflow_mm2_offsets.kafka.syncs import SyncsSnapshot
from airflow_mm2_offsets.planning.evidence_collector import EvidenceCollector
from airflow_mm2_offsets.planning.options import DEFAULT_OPTIONS, PlanOptions
from airflow_mm2_offsets.planning.plan import find_connectors, with_connectors
from airflow_mm2_offsets.planning.syncs import explain_recreation

AT_ONCE = 100
"""Positions of one topic-partition that evidence is collected for together. The records around each
may be as many as ``record_evidence.MAX_WINDOW`` on either side, and all are in memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ManyTranslations:
    """The answers for positions, and what was read for them."""

    answers: Mapping[PartitionPosition, Translation]
    """By the source's names."""
    rounds: int
    """How often evidence was collected: once for each ``AT_ONCE`` positions of a topic-partition.
    """


def translate_many(
    pair: ClusterPair,
    positions: Mapping[TopicPartition, Collection[int]],
    syncs: SyncsSnapshot,
    *,
    options: PlanOptions = DEFAULT_OPTIONS,
) -> ManyTranslations:
    """Translate positions with syncs that were read before; see ``plan_failover``.

    Args:
        pair: The clusters, in the direction in which MirrorMaker 2 copies.
        positions: The positions of each topic-partition; all must exist on both clusters.
        syncs: Read after the positions.
        options: What the user decides; ``max_evidence_bytes`` is for all positions together, and
            each round has an equal part of it.

    Raises:
        Mm2OffsetsError: See ``plan_failover``.
    """
    rounds = _rounds(positions)
    connectors = find_connectors(pair)
    topics = dict.fromkeys(partition.topic for partition in positions)
    options = with_connectors(options, connectors, pair, topics)
    options = replace(options, max_evidence_bytes=options.max_evidence_bytes // max(1, len(rounds)))
    answers: dict[PartitionPosition, Translation] = {}
    for number, some in enumerate(rounds):
        collector = EvidenceCollector(
            pair=pair,
            index=syncs.index,
            positions=some,
            options=options,
            connectors=[each.name for each in connectors],
        )
        collector.collect_all()
        if not connectors and number == 0:  # It has a position of every partition.
            collector.check_direction()
        collector.find_uncopied(connectors)
        for answer in collector.translations():
            key = PartitionPosition(answer.topic_partition, answer.position)
            answers[key] = explain_recreation(answer, syncs)
    return ManyTranslations(answers=answers, rounds=len(rounds))


def _rounds(positions: Mapping[TopicPartition, Collection[int]]) -> list[list[PartitionPosition]]:
    """Return the positions in rising order, at most ``AT_ONCE`` of each topic-partition together.

    Neighbours are together: they need the same records.
    """
    ordered = {key: sorted(set(some)) for key, some in positions.items()}
    most = max(map(len, ordered.values()), default=0)
    return [
        [
            PartitionPosition(key, each)
            for key, some in ordered.items()
            for each in some[begin : begin + AT_ONCE]
        ]
        for begin in range(0, most, AT_ONCE)
    ]
