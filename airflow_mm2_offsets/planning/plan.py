"""Makes the plan of a failover: every partition's answer, from all that can be known."""

import logging
from dataclasses import replace
from datetime import UTC, datetime

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.core import (
    Basis,
    FailoverPlan,
    Positions,
    Status,
    Translation,
    check_positions,
    plan_partitions,
)
from airflow_mm2_offsets.core.ids import PairIds
from airflow_mm2_offsets.core.positions import by_topic_partition
from airflow_mm2_offsets.errors import Mm2OffsetsError
from airflow_mm2_offsets.kafka.syncs import SyncsSnapshot, read_syncs
from airflow_mm2_offsets.planning.evidence_collector import EvidenceCollector
from airflow_mm2_offsets.planning.ids import read_ids
from airflow_mm2_offsets.planning.mirror_config import (
    MirrorConnector,
    check_names,
    read_mirror_connector,
)
from airflow_mm2_offsets.planning.on_unmapped import choose_fallbacks
from airflow_mm2_offsets.planning.options import DEFAULT_OPTIONS, PlanOptions
from airflow_mm2_offsets.planning.syncs import explain_recreation, load_syncs

log = logging.getLogger(__name__)

STILL_COPYING = frozenset(
    {
        Basis.AFTER_LAST_SYNC,
        Basis.COPYING_AGAIN,
        Basis.NEVER_REPLICATED,
        Basis.NOT_REPLICATED_YET,
    }
)
"""What an answer rests on where waiting may bring a better one."""

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
    """Translate a job's positions.

    Args:
        pair: The clusters.
        positions: Where the job stands on the source.
        pending: Where the batch ends that it began and did not commit, if any.
        options: What the user decides.

    Raises:
        PositionError: ``positions`` is not a map of positions.
        SyncsTopicError: There is nothing to translate with.
        ArchiveError: The archive is damaged, of another pair, or out of reach.
        TopicNotFoundError: A topic or partition does not exist on a cluster.
        ClusterUnreachableError: A cluster, or Connect, does not answer.
    """
    ids = read_ids(pair, positions, ask_source=options.read_source)
    connector = _find_connector(pair)
    if connector is not None:
        options = _options_for(connector, options)
    collector, syncs = collect_evidence(
        pair, positions, options, connector=connector.name if connector else None
    )
    return _make_plan(collector, syncs, ids, pending)


def collect_evidence(
    pair: ClusterPair,
    positions: Positions,
    options: PlanOptions,
    *,
    connector: str | None = None,
) -> tuple[EvidenceCollector, SyncsSnapshot]:
    """Read all that tells where positions are on the target.

    Args:
        pair: The clusters.
        positions: Where the job stands on the source.
        options: What the user decides.
        connector: The name of the pair's connector, if it is known.

    Raises:
        Mm2OffsetsError: See ``plan_failover``.
    """
    syncs = load_syncs(pair, options.archive, ask_source=options.read_source)
    collector = EvidenceCollector(
        pair=pair,
        index=syncs.index,
        positions=by_topic_partition(check_positions(positions)),
        options=options,
        connector=connector,
    )
    collector.compare_records()
    collector.collect_offsets()
    collector.collect_records()
    return collector, syncs


def _make_plan(
    collector: EvidenceCollector, syncs: SyncsSnapshot, ids: PairIds, pending: Positions | None
) -> FailoverPlan:
    pair, options = collector.pair, collector.options
    answers = [explain_recreation(each, syncs) for each in collector.translations()]
    refused = (each for each in answers if each.status is Status.REFUSED)
    fallbacks = choose_fallbacks(pair, collector.held, refused, options)
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
    )


def _find_connector(pair: ClusterPair) -> MirrorConnector | None:
    """Return the pair's connector; None where Connect can't be asked.

    Raises:
        ConfigurationError: It names other topics than the pair does.
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


def _options_for(connector: MirrorConnector, options: PlanOptions) -> PlanOptions:
    """Return ``options`` with what the connector's configuration says about records."""
    if not connector.changes_records:
        return options
    return replace(options, changed_records=True, sole_writer=False)


def still_copying(pair: ClusterPair, positions: Positions) -> tuple[Translation, ...]:
    """Return the partitions that MirrorMaker 2 is not known to have copied past a position.

    Raises:
        Mm2OffsetsError: See ``plan_failover``.
    """
    index = read_syncs(pair.syncs_cluster, pair.syncs_topic).index
    collector = EvidenceCollector(
        pair=pair,
        index=index,
        positions=by_topic_partition(check_positions(positions)),
        options=DEFAULT_OPTIONS,
    )
    collector.collect_offsets()
    behind = (each for each in collector.translations() if each.basis in STILL_COPYING)
    return tuple(
        replace(each, reason=f"{each.reason}; {_NOT_SEEN}")
        if each.basis is Basis.AFTER_LAST_SYNC
        else each
        for each in behind
    )
