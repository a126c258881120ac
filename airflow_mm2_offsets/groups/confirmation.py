"""Compares MirrorMaker 2's checkpoints with the offset syncs, where those can be read.

A checkpoint holds no topic id: after the target's topic was recreated, an older one names an offset
of the earlier topic. The rule of ``core`` sees in the syncs that the copy began again, and an
archive knows the ids. MirrorMaker 2 makes a checkpoint of a sync at or before the position
(``OffsetSyncStore``), so a checkpoint never lies above the rule's lower bound where that sync is
still known.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.core import Basis, Evidence, SyncIndex, TopicPartition, Watermarks
from airflow_mm2_offsets.core.group_offsets import GroupPosition
from airflow_mm2_offsets.errors import SyncsTopicError
from airflow_mm2_offsets.groups.commit import existing_watermarks
from airflow_mm2_offsets.kafka.syncs import SyncsSnapshot
from airflow_mm2_offsets.planning.lost_parts import LostParts, quick, with_what_is_left
from airflow_mm2_offsets.planning.options import PlanOptions
from airflow_mm2_offsets.planning.syncs import explain_recreation, load_syncs

_SYNC_UNKNOWN = frozenset({Basis.BEFORE_FIRST_SYNC, Basis.COPYING_AGAIN})
"""The checkpoint may be made of a sync that was compacted away, or of a newer copy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmation:
    """What the checkpoints are compared with."""

    pair: ClusterPair
    syncs: SyncsSnapshot | None
    """None: they can't be read."""
    problem: str = ""
    """Why not."""

    @property
    def index(self) -> SyncIndex:
        """The syncs; empty if they can't be read."""
        return self.syncs.index if self.syncs else SyncIndex()

    def compare(self, positions: Iterable[GroupPosition]) -> list[GroupPosition]:
        """Return the positions: confirmed, not confirmed, or refused, each with the reason."""
        listed = list(positions)
        if self.syncs is None:
            return [_unconfirmed(each, self.problem) for each in listed]
        on_source = {self.pair.on_target(key): key for key in self.syncs.index}
        # After the syncs: each sync's own record is there by now.
        ends = existing_watermarks(self.pair.target, listed)
        # What does not exist on the target is refused for that.
        return [
            _compare(each, self.syncs, on_source.get(each.topic_partition), end.high)
            if (end := ends.get(each.topic_partition))
            else each
            for each in listed
        ]


def _compare(
    position: GroupPosition, syncs: SyncsSnapshot, key: TopicPartition | None, end: int
) -> GroupPosition:
    if key is None:
        return _unconfirmed(position, "no offset sync names the topic-partition")
    # Whether the target has deleted records is asked of the checkpoint's own offset.
    evidence = Evidence(target=Watermarks(low=0, high=end))
    answer = syncs.index.translate(*key, position.source_offset, evidence=evidence)
    answer = explain_recreation(answer, syncs)
    offset, low, high = position.offset, answer.low, answer.high
    if low is None or offset is None:
        return position.refused(f"{position.reason} can't be used: {answer.reason}")
    if offset <= low:
        return replace(position, reason=f"{position.reason}, confirmed by the offset syncs")
    # An archive alone lacks the syncs since its last run.
    is_newer = syncs.as_of is not None and answer.basis is Basis.AFTER_LAST_SYNC
    if (is_newer or answer.basis in _SYNC_UNKNOWN) and (high is None or offset <= high):
        return _unconfirmed(position, f"the position {answer.reason}")
    return position.refused(
        f"{position.reason} names {offset}, and the offset syncs prove no more than {low}: the "
        f"topic was recreated on the target since, or the checkpoint was made by syncs that are "
        f"not there. The position {answer.reason}. Take offsets_from=translation"
    )


def _unconfirmed(position: GroupPosition, problem: str) -> GroupPosition:
    reason = (
        f"{position.reason} alone: {problem}. If the topic was recreated on the target since, the "
        f"group skips records"
    )
    return replace(position, reason=reason, is_confirmed=False)


def read_confirmation(pair: ClusterPair, options: PlanOptions) -> Confirmation:
    """Read the syncs that checkpoints are compared with; read them after the checkpoints.

    Raises:
        ArchiveError: The archive is damaged, of another pair, or out of reach.
        ClusterUnreachableError: The target does not answer.
    """
    return with_what_is_left(pair, {}, partial(_read, pair, options))


def _read(pair: ClusterPair, options: PlanOptions, lost: LostParts) -> Confirmation:
    problem = lost.syncs_topic
    if problem is None or options.archive is not None:
        try:
            syncs = load_syncs(
                quick(pair),
                options.archive,
                ask_source=lost.source is None,
                read_topic=lost.syncs_topic is None,
            )
        except SyncsTopicError as error:
            problem = error
        else:
            return Confirmation(pair=pair, syncs=syncs)
    return Confirmation(
        pair=pair, syncs=None, problem=f"the offset syncs can't be read ({problem})"
    )
