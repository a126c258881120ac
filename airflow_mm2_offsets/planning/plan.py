"""Makes the plan of a failover, and finds the partitions that MirrorMaker 2 still copies.

Operators, REST, the command line and a migration call ``plan_failover``; the wait for MirrorMaker 2
calls ``still_copying``.
"""

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Protocol, TypeAlias

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.core import (
    Basis,
    Direction,
    FailoverPlan,
    OffsetMapping,
    Positions,
    Status,
    TopicPartition,
    Translation,
    check_positions,
    plan_partitions,
)
from airflow_mm2_offsets.core.ids import PairIds
from airflow_mm2_offsets.core.positions import PartitionPosition, by_topic_partition
from airflow_mm2_offsets.errors import Mm2OffsetsError
from airflow_mm2_offsets.kafka.syncs import SyncsSnapshot
from airflow_mm2_offsets.planning.evidence_collector import EvidenceCollector
from airflow_mm2_offsets.planning.identity_collector import IdentityCollector, collect_identity
from airflow_mm2_offsets.planning.ids import read_ids
from airflow_mm2_offsets.planning.inverse_collector import (
    InverseCollector,
    check_first_plan,
    collect_for_way_home,
)
from airflow_mm2_offsets.planning.mirror_config import (
    check_names,
    read_mirror_connectors,
    that_copy,
)
from airflow_mm2_offsets.planning.mirror_connector import MirrorConnector
from airflow_mm2_offsets.planning.on_unmapped import choose_fallbacks
from airflow_mm2_offsets.planning.options import DEFAULT_OPTIONS, PlanOptions
from airflow_mm2_offsets.planning.source_ends import SourceEnds
from airflow_mm2_offsets.planning.syncs import explain_recreation, load_syncs

log = logging.getLogger(__name__)

Collector: TypeAlias = EvidenceCollector | InverseCollector | IdentityCollector
_OFFSETS_ALONE = replace(DEFAULT_OPTIONS, max_evidence_bytes=0)

STILL_COPYING = frozenset(
    {
        Basis.AFTER_LAST_SYNC,
        Basis.COPYING_AGAIN,
        Basis.NEVER_REPLICATED,
        Basis.NOT_REPLICATED_YET,
        Basis.OPEN_TRANSACTION,
    }
)
"""The bases of answers that may become better while MirrorMaker 2 copies."""

_NOT_SEEN = (
    "cannot yet prove that MirrorMaker 2 has processed everything before this position; if a "
    "transform drops the last records, the proof comes only with the next copied record: write one "
    "that it keeps, or set quiet_after, which ends the wait when neither cluster changes any more "
    "(nothing is lost; what is copied later is read again)"
)


def plan_failover(
    pair: ClusterPair,
    positions: Positions,
    *,
    pending: Positions | None = None,
    options: PlanOptions = DEFAULT_OPTIONS,
) -> FailoverPlan:
    """Translate a job's positions; on the way home (see ``ClusterPair``) by the inverse rule.

    Args:
        pair: The clusters.
        positions: The job's positions on the source.
        pending: The end of the batch that the job began and did not commit, if any.
        options: What the user decides.

    Raises:
        PositionError: ``positions`` is not a map of positions.
        ConfigurationError: The settings are not MirrorMaker 2's, or the syncs may be those of the
            flow back.
        SyncsTopicError: There is nothing to translate with.
        ArchiveError: The archive is damaged, of another pair, or out of reach.
        TopicNotFoundError: A topic or partition does not exist on a cluster.
        ClusterUnreachableError: A cluster, or Connect, does not answer.
    """
    ids = read_ids(pair, positions, ask_source=options.read_source)
    if options.first_plan is not None:
        check_first_plan(options.first_plan, pair, ids)
    connectors = find_connectors(pair)
    options = with_connectors(options, connectors, pair, positions)
    collector, syncs = collect_evidence(
        pair, positions, options, connectors=[each.name for each in connectors]
    )
    if not connectors and isinstance(collector, EvidenceCollector):
        collector.check_direction()
    if not isinstance(collector, IdentityCollector):
        collector.find_uncopied(connectors)
    return _make_plan(collector, syncs, ids, pending)


def collect_evidence(
    pair: ClusterPair,
    positions: Positions,
    options: PlanOptions,
    *,
    connectors: Collection[str] = (),
) -> tuple[Collector, SyncsSnapshot]:
    """Read the syncs and the evidence for a translation; see ``plan_failover`` for the errors.

    ``connectors`` are the names of the pair's; none: Connect is asked for them where they count.
    """
    checked = by_topic_partition(check_positions(positions))
    collect = _COLLECT[pair.mapping, pair.direction]
    return collect(pair, checked, options, connectors=connectors)


def _collect_by_syncs(
    pair: ClusterPair,
    positions: Mapping[TopicPartition, int],
    options: PlanOptions,
    *,
    connectors: Collection[str],
) -> tuple[Collector, SyncsSnapshot]:
    syncs = load_syncs(
        pair,
        options.archive,
        ask_source=options.read_source,
        read_topic=options.read_syncs_topic,
    )
    collector = EvidenceCollector(
        pair=pair,
        index=syncs.index,
        positions=[PartitionPosition(*each) for each in positions.items()],
        options=options,
        connectors=connectors,
    )
    collector.collect_all()
    return collector, syncs


class _Collect(Protocol):
    """Reads the evidence for one way in which positions map."""

    def __call__(
        self,
        pair: ClusterPair,
        positions: Mapping[TopicPartition, int],
        options: PlanOptions,
        *,
        connectors: Collection[str],
    ) -> tuple[Collector, SyncsSnapshot]: ...


_COLLECT: Mapping[tuple[OffsetMapping, Direction], _Collect] = {
    (OffsetMapping.OFFSET_SYNCS, Direction.FORWARD): _collect_by_syncs,
    (OffsetMapping.OFFSET_SYNCS, Direction.EXCHANGED): collect_for_way_home,
    (OffsetMapping.IDENTITY, Direction.FORWARD): collect_identity,
    (OffsetMapping.IDENTITY, Direction.EXCHANGED): collect_identity,
}
"""How positions map, chosen once: by the copying and the direction."""


def _make_plan(
    collector: Collector,
    syncs: SyncsSnapshot,
    ids: PairIds,
    pending: Positions | None,
) -> FailoverPlan:
    pair, options = collector.pair, collector.options
    answers = [explain_recreation(answer, syncs) for answer in collector.translations()]
    refused = (answer for answer in answers if answer.status is Status.REFUSED)
    fallbacks = choose_fallbacks(pair, collector.watermarks, refused, options)
    return FailoverPlan(
        created_at=datetime.now(UTC).isoformat(timespec="seconds"),
        strategy=options.strategy,
        syncs_read=syncs.records_read,
        syncs_skipped=syncs.skipped_count,
        syncs_as_of=syncs.as_of,
        source_records_read=collector.source_records,
        target_records_read=collector.target_records,
        ids=ids,
        partitions=plan_partitions(answers, pair.naming, pending, fallbacks),
        direction=pair.direction,
        mapping=pair.mapping,
    )


def with_connectors(
    options: PlanOptions,
    connectors: Sequence[MirrorConnector],
    pair: ClusterPair,
    topics: Iterable[str],
) -> PlanOptions:
    """Return the options as the connectors that copy these topics allow them.

    Raises:
        ConfigurationError: A connector names topics, or places its syncs, otherwise than the pair.
    """
    copying = that_copy(connectors, _originals(pair, topics))
    check_names(pair, copying)
    if not any(each.changes_records for each in copying):
        return options
    # Records can't be counted any more. On the way home nothing is counted: the word stays.
    word = options.sole_writer and pair.direction is not Direction.FORWARD
    return replace(options, changed_records=True, sole_writer=word)


def find_connectors(pair: ClusterPair) -> list[MirrorConnector]:
    """Return the pair's connectors; none where Connect can't be asked."""
    if pair.connect is None:
        return []
    try:
        return read_mirror_connectors(pair)
    except Mm2OffsetsError as error:
        log.warning("MirrorMaker 2's own settings are not compared: %s", error)
        return []


def _originals(pair: ClusterPair, topics: Iterable[str]) -> list[str]:
    """Return the job's topics by the names that they have on MirrorMaker 2's source."""
    is_forward = pair.direction is Direction.FORWARD
    return [topic if is_forward else pair.naming.target_topic(topic) for topic in topics]


def still_copying(
    pair: ClusterPair, positions: Positions, seen: SourceEnds | None = None
) -> tuple[Translation, ...]:
    """Return the positions before which MirrorMaker 2 may not have copied everything yet.

    None on the way home: what the job has read was copied, so it lies where the job goes.

    Args:
        pair: The clusters.
        positions: Positions on the source.
        seen: The source's ends that the first look saw; completed here. What was copied before the
            first known sync lies below them, so later looks need not wait for newer records.

    Raises:
        Mm2OffsetsError: See ``plan_failover``.
    """
    if pair.direction is Direction.EXCHANGED:
        return ()
    collector, _ = collect_evidence(pair, positions, _OFFSETS_ALONE)
    if isinstance(collector, EvidenceCollector):
        collector.remember_ends({} if seen is None else seen)
    return tuple(
        replace(answer, reason=f"{answer.reason}; {_NOT_SEEN}")
        if answer.basis is Basis.AFTER_LAST_SYNC
        else answer
        for answer in collector.translations()
        if _is_behind(collector, answer)
    )


def _is_behind(collector: Collector, answer: Translation) -> bool:
    if answer.basis is Basis.COPYING_AGAIN and isinstance(collector, EvidenceCollector):
        return not collector.has_caught_up(answer)
    return answer.basis in STILL_COPYING
