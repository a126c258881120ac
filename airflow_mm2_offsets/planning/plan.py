"""Makes the plan of a failover, and finds the partitions that MirrorMaker 2 still copies.

Operators, REST, the command line and a migration call ``plan_failover``; the wait for MirrorMaker 2
calls ``still_copying``.
"""

import logging
from collections.abc import Mapping
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
from airflow_mm2_offsets.core.positions import by_topic_partition
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
from airflow_mm2_offsets.planning.mirror_config import check_names, read_mirror_connector
from airflow_mm2_offsets.planning.mirror_connector import MirrorConnector
from airflow_mm2_offsets.planning.on_unmapped import choose_fallbacks
from airflow_mm2_offsets.planning.options import DEFAULT_OPTIONS, PlanOptions
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
    """Translate a job's positions; on the way home (an exchanged pair) by the inverse rule.

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
    connector = _find_connector(pair)
    if connector is not None and connector.changes_records:
        # Records can't be counted any more. On the way home nothing is counted: the word stays.
        is_forward = pair.direction is Direction.FORWARD
        word = options.sole_writer and not is_forward
        options = replace(options, changed_records=True, sole_writer=word)
    collector, syncs = collect_evidence(
        pair, positions, options, connector=connector.name if connector else None
    )
    if connector is None and isinstance(collector, EvidenceCollector):
        collector.check_direction()
    return _make_plan(collector, syncs, ids, pending)


def collect_evidence(
    pair: ClusterPair,
    positions: Positions,
    options: PlanOptions,
    *,
    connector: str | None = None,
) -> tuple[Collector, SyncsSnapshot]:
    """Read the syncs and the evidence for a translation; see ``plan_failover`` for the errors.

    Without ``connector``, Connect is asked for the name of the pair's connector where it counts.
    """
    checked = by_topic_partition(check_positions(positions))
    collect = _COLLECT[pair.mapping, pair.direction]
    return collect(pair, checked, options, connector=connector)


def _collect_by_syncs(
    pair: ClusterPair,
    positions: Mapping[TopicPartition, int],
    options: PlanOptions,
    *,
    connector: str | None,
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
        positions=positions,
        options=options,
        connector=connector,
    )
    collector.compare_records()
    collector.collect_offsets()
    collector.collect_records()
    return collector, syncs


class _Collect(Protocol):
    """Reads the evidence for one way in which positions map."""

    def __call__(
        self,
        pair: ClusterPair,
        positions: Mapping[TopicPartition, int],
        options: PlanOptions,
        *,
        connector: str | None,
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


def _find_connector(pair: ClusterPair) -> MirrorConnector | None:
    """Return the pair's connector; None where Connect can't be asked.

    Raises:
        ConfigurationError: The connector names other topics than the pair does.
    """
    if pair.connect is None:
        return None
    try:
        connector = read_mirror_connector(pair)
    except Mm2OffsetsError as error:
        log.warning("MirrorMaker 2's own settings are not compared: %s", error)
        return None
    check_names(pair, connector)
    return connector


def still_copying(pair: ClusterPair, positions: Positions) -> tuple[Translation, ...]:
    """Return the positions before which MirrorMaker 2 may not have copied everything yet.

    None on the way home: what the job has read was copied, so it lies where the job goes.

    Raises:
        Mm2OffsetsError: See ``plan_failover``.
    """
    if pair.direction is Direction.EXCHANGED:
        return ()
    collector, _ = collect_evidence(pair, positions, _OFFSETS_ALONE)
    return tuple(
        replace(answer, reason=f"{answer.reason}; {_NOT_SEEN}")
        if answer.basis is Basis.AFTER_LAST_SYNC
        else answer
        for answer in collector.translations()
        if answer.basis in STILL_COPYING
    )
