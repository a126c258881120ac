"""Makes the plan of a failover: every partition's answer, from all that can be known."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from airflow_mm2_offsets.archive import SyncArchive
from airflow_mm2_offsets.core import (
    Basis,
    FailoverPlan,
    Positions,
    Status,
    Strategy,
    SyncIndex,
    TopicPartition,
    Translation,
    check_positions,
    plan_partitions,
)
from airflow_mm2_offsets.errors import Mm2OffsetsError
from airflow_mm2_offsets.service.archiving import load_syncs
from airflow_mm2_offsets.service.contradictions import are_strangers, find_contradictions
from airflow_mm2_offsets.service.evidence import (
    Held,
    gather_copied,
    gather_drained,
)
from airflow_mm2_offsets.service.fallback import FallbackOptions, choose_fallbacks
from airflow_mm2_offsets.service.ids import read_ids
from airflow_mm2_offsets.service.mirror_config import check_names, read_mirror_connector
from airflow_mm2_offsets.service.pair import ClusterPair
from airflow_mm2_offsets.service.windows import (
    gather_whole,
    gather_windows,
)

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


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOptions:
    """What the user decides about a plan."""

    strategy: Strategy = Strategy.SAFE
    read_source: bool = True
    """Ask the source what it holds; without it, positions are not checked against it and
    records are not matched by content."""
    sole_writer: bool = False
    """See ``Evidence.sole_writer``."""
    changed_records: bool = False
    """See ``Evidence.changed_records``; Connect's word counts as well, where it can be asked."""
    max_bytes: int = 256 * 2**20
    """Of each cluster's records, how much may be read as evidence; 0 reads none."""
    archive: SyncArchive | None = None
    """Holds syncs that the topic has no more. Without ``read_source`` it stands in for a syncs
    topic that lies on the source."""
    fallback: FallbackOptions = field(default_factory=FallbackOptions)


DEFAULT_OPTIONS = PlanOptions()


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
        PositionError: ``positions`` are none.
        SyncsTopicError: There is nothing to translate with.
        ArchiveError: The archive is damaged, of another pair, or out of reach.
        TopicNotFoundError: A topic or partition does not exist on a cluster.
        ClusterUnreachableError: A cluster, or Connect, does not answer.
    """
    wanted = _flat(positions)
    ids = read_ids(pair, positions, ask_source=options.read_source)
    options = _heed_connect(pair, options)
    syncs = load_syncs(pair, options.archive, ask_source=options.read_source)
    inquiry = _Inquiry(pair=pair, index=syncs.index, wanted=wanted, options=options)
    inquiry.compare_records()
    inquiry.settle_ends()
    inquiry.settle_windows()
    answers = [syncs.explain(each) for each in inquiry.answers()]
    refused = (each for each in answers if each.status is Status.REFUSED)
    fallbacks = choose_fallbacks(pair, inquiry.held, refused, options.fallback)
    return FailoverPlan(
        created_at=datetime.now(UTC).isoformat(timespec="seconds"),
        strategy=options.strategy,
        syncs_read=syncs.read,
        syncs_skipped=syncs.skipped_count,
        syncs_as_of=syncs.as_of,
        source_records_read=inquiry.source_records,
        target_records_read=inquiry.target_records,
        ids=ids,
        partitions=plan_partitions(answers, pair.naming, pending, fallbacks),
    )


def _heed_connect(pair: ClusterPair, options: PlanOptions) -> PlanOptions:
    """Return ``options`` with what the connector's configuration says of records and names.

    Raises:
        ConfigurationError: It names other topics than the pair does.
    """
    if pair.connect is None:
        return options
    try:
        connector = read_mirror_connector(pair)
    except Mm2OffsetsError as error:
        log.warning("MirrorMaker 2's own settings are not compared: %s", error)
        return options
    check_names(pair, connector)
    if not connector.changes_records:
        return options
    return replace(options, changed_records=True, sole_writer=False)


def still_copying(pair: ClusterPair, positions: Positions) -> tuple[Translation, ...]:
    """Return the partitions that MirrorMaker 2 is not known to have copied past a position.

    Raises:
        Mm2OffsetsError: See ``plan_failover``.
    """
    index = pair.read_syncs().index
    inquiry = _Inquiry(pair=pair, index=index, wanted=_flat(positions), options=DEFAULT_OPTIONS)
    inquiry.settle_ends()
    behind = (each for each in inquiry.answers() if each.basis in STILL_COPYING)
    return tuple(
        replace(each, reason=f"{each.reason}; {_NOT_SEEN}")
        if each.basis is Basis.AFTER_LAST_SYNC
        else each
        for each in behind
    )


class _Inquiry:
    """The positions asked for, and the evidence gathered so far."""

    def __init__(
        self,
        *,
        pair: ClusterPair,
        index: SyncIndex,
        wanted: Mapping[TopicPartition, int],
        options: PlanOptions,
    ) -> None:
        self.pair = pair
        self.index = index
        self.wanted = wanted
        self.options = options
        self.source_records = 0
        self.target_records = 0
        # After the syncs: what they name is then within what the target holds.
        self.held = Held.by(pair, wanted, ask_source=options.read_source)
        self.evidence = {
            key: replace(
                self.held.evidence(key, sole_writer=options.sole_writer),
                changed_records=options.changed_records,
            )
            for key in wanted
        }

    def answers(self) -> list[Translation]:
        return [
            self.index.translate(
                *key, position, strategy=self.options.strategy, evidence=self.evidence[key]
            )
            for key, position in self.wanted.items()
        ]

    def settle_ends(self) -> None:
        if not self.options.read_source:
            return
        for key, target in gather_drained(self.pair, self.index, self.answers()).items():
            self._take(key, target=target, drained=True)
        for key, last in gather_copied(self.pair, self.index, self.held).items():
            self._take(key, copied_to=last)

    def compare_records(self) -> None:
        if self.options.read_source and self.options.max_bytes:
            found = find_contradictions(self.pair, self.index, self.evidence, self.wanted)
            for key, sync in found.items():
                self._take(key, contradiction=sync)

    def settle_windows(self) -> None:
        windows = gather_windows(
            self.pair,
            self.index,
            self.evidence,
            self.answers(),
            max_bytes=self.options.max_bytes,
        )
        for key, (source, target) in windows.items():
            self.target_records += len(target.records)
            self._take(key, source_window=source, target_window=target)
            if source and are_strangers(source, target):
                self._take(key, contradiction=self.index.partitions[key].last)
        whole = gather_whole(
            self.pair, self.index, self.evidence, self.answers(), max_bytes=self.options.max_bytes
        )
        for key, source in whole.items():
            self._take(key, source_window=source)
        self.source_records = sum(
            len(each.source_window.records) for each in self.evidence.values() if each.source_window
        )

    def _take(self, key: TopicPartition, **found: Any) -> None:
        self.evidence[key] = replace(self.evidence[key], **found)


def _flat(positions: Positions) -> dict[TopicPartition, int]:
    return {
        TopicPartition(topic, partition): position
        for topic, partitions in check_positions(positions).items()
        for partition, position in partitions.items()
    }
