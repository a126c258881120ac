"""The rules by which a consumer group's offsets are committed for it; ``groups`` asks them.

A group is moved before its consumers are: they find the offsets when they start. Kafka takes such
a commit only while the group has no members (KIP-396). Ours carries a marker, so that a later run
knows which commits are ours, and of which origin.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace

from airflow_mm2_offsets.core.commit_marker import CommitMarker, read_marker
from airflow_mm2_offsets.core.evidence import Watermarks
from airflow_mm2_offsets.core.group_offsets import (
    DEFAULT_RULES,
    CommitStatus,
    GroupCommit,
    GroupDecision,
    GroupPosition,
    GroupRules,
)
from airflow_mm2_offsets.core.positions import TopicPartition


def refuse_shared(positions: Iterable[GroupPosition]) -> list[GroupPosition]:
    """Return the positions; those of a group that has several origins are refused.

    Whatever their topic-partitions are: the consumers of two groups would join one, and each would
    be given partitions that only the other has positions of.
    """
    origins: dict[str, set[str]] = defaultdict(set)
    listed = list(positions)
    for each in listed:
        origins[each.group].add(each.origin)
    return [
        each.refused(
            f"several origins would commit for the group: {', '.join(sorted(shared))}; give each a "
            f"group of its own, or leave all but one out"
        )
        if len(shared := origins[each.group]) > 1
        else each
        for each in listed
    ]


def decide_group(
    positions: Iterable[GroupPosition],
    commits: Mapping[TopicPartition, GroupCommit],
    watermarks: Mapping[TopicPartition, Watermarks],
    *,
    members: int,
    rules: GroupRules = DEFAULT_RULES,
) -> list[GroupDecision]:
    """Decide about the positions of one group.

    A consumer commits only the partitions of which it has read records. So one commit of somebody
    else, on whatever topic-partition, shows that the whole group has moved.

    Args:
        positions: Where the group is to continue.
        commits: All that the group has committed, on other topic-partitions too.
        watermarks: Those of the topic-partitions that exist.
        members: How many members the group has.
        rules: What the user allows.
    """
    committed = {key: each for key, each in commits.items() if each.offset >= 0}
    state = _GroupState(committed, members, rules)
    return [_decide(each, state, watermarks.get(each.topic_partition)) for each in positions]


class _GroupState:
    """What a group has committed, and which of it is somebody else's."""

    def __init__(
        self, commits: Mapping[TopicPartition, GroupCommit], members: int, rules: GroupRules
    ) -> None:
        self.commits = commits
        self.members = members
        self.rules = rules
        self._others = {
            key
            for key, each in commits.items()
            if read_marker(each.metadata, offset=each.offset) is None
        }
        self._first_other = min(self._others, default=None)

    def other_commit(self, key: TopicPartition) -> TopicPartition | None:
        """Return where a commit without our marker is: there, if there is one; None: nowhere."""
        return key if key in self._others else self._first_other


def _decide(
    position: GroupPosition, state: _GroupState, watermarks: Watermarks | None
) -> GroupDecision:
    key, offset = position.topic_partition, position.offset
    current = state.commits.get(key)
    blank = GroupDecision(
        position=position,
        status=CommitStatus.REFUSED,
        reason=position.reason,
        previous=None if current is None else current.offset,
    )
    outside = None if offset is None else _outside(offset, watermarks)
    if offset is None or outside:
        refusal = replace(blank, reason=outside or position.reason)
        return _keep_alive(refusal, current, watermarks, state.members)
    if problem := _active(state.members):
        return replace(blank, reason=problem)
    other = state.other_commit(key)
    if other is not None and not state.rules.overwrite_others:
        kept = _beside_others(blank, other, state.commits[other].offset)
        return _keep_alive(kept, current, watermarks, state.members)
    return _move(blank, current, watermarks, state.rules)


def _move(
    blank: GroupDecision,
    current: GroupCommit | None,
    watermarks: Watermarks | None,
    rules: GroupRules,
) -> GroupDecision:
    """Decide by what is committed on the topic-partition itself; it may be moved."""
    if current is None:
        return _commit(blank)
    position = blank.position
    marker = read_marker(current.metadata, offset=current.offset)
    if marker is None:
        return _over_others(blank, current.offset)
    if marker.origin != position.origin:
        return replace(
            blank,
            reason=f"its commit {current.offset} comes from another origin, {marker.origin}, and "
            f"this one is {position.origin}: give each a group of its own, or delete the group's "
            f"offset",
        )
    return _after_ours(blank, current, marker, watermarks, rules)


def _keep_alive(
    decision: GroupDecision,
    current: GroupCommit | None,
    watermarks: Watermarks | None,
    members: int,
) -> GroupDecision:
    """Return a decision that moves nothing, with our own earlier commit while it is in the log.

    It lost nothing when it was committed. If it were not written again, Kafka would expire it
    (KIP-211), and the group would start where ``auto.offset.reset`` sends it.
    """
    if current is None or watermarks is None or members:
        return decision
    marker = read_marker(current.metadata, offset=current.offset)
    is_ours = marker is not None and marker.origin == decision.position.origin
    if not is_ours or not watermarks.low <= current.offset <= watermarks.high:
        return decision
    reason = f"{decision.reason}; our earlier commit {current.offset} stays"
    return replace(decision, reason=reason, commit=current)


def _outside(offset: int, watermarks: Watermarks | None) -> str | None:
    if watermarks is None:
        return "the topic or the partition does not exist on the cluster of the group"
    if offset < watermarks.low:
        return (
            f"offset {offset} is below the first offset {watermarks.low}: records were deleted; "
            f"choose by hand where the group starts"
        )
    if offset > watermarks.high:
        return (
            f"offset {offset} is beyond the end offset {watermarks.high}: it is not replicated "
            f"yet, or the topic was recreated"
        )
    return None


def _active(members: int) -> str | None:
    if not members:
        return None
    return (
        f"the group has {members} members: consumers commit for themselves, and Kafka refuses "
        f"commits of others; stop them, if they are not to read here yet"
    )


def _beside_others(blank: GroupDecision, other: TopicPartition, offset: int) -> GroupDecision:
    reason = (
        f"commit {offset} on {other} is not ours: a consumer or MirrorMaker 2's own sync made it, "
        f"so the whole group counts as moved; set overwrite_others to move it to "
        f"{blank.position.offset}"
    )
    return replace(blank, status=CommitStatus.KEPT, reason=reason)


def _over_others(blank: GroupDecision, previous: int) -> GroupDecision:
    """Move somebody else's commit; one at the same offset is taken over, with our marker."""
    offset = blank.position.offset
    assert offset is not None  # noqa: S101 - refused before
    if previous <= offset:
        return _commit(blank)
    reason = f"commit {previous} is not ours, and above {offset}: never backwards"
    return replace(blank, status=CommitStatus.KEPT, reason=reason)


def _after_ours(
    blank: GroupDecision,
    current: GroupCommit,
    marker: CommitMarker,
    watermarks: Watermarks | None,
    rules: GroupRules,
) -> GroupDecision:
    position, before = blank.position, current.offset
    if watermarks is not None and before > watermarks.high:
        return replace(
            blank,
            reason=f"our commit {before} is beyond the end offset {watermarks.high}: the topic was "
            f"recreated; delete the group's offset, and run again",
        )
    assert position.offset is not None  # noqa: S101 - refused before
    if position.offset > before:
        return _commit(blank)
    reason = position.reason
    if position.offset < before:
        if marker.source_offset > position.source_offset and rules.allow_rewind:
            return _commit(blank)
        reason = _why_not_back(position, before, marker)
    commit = position.marked() if position.offset == before else current
    return replace(blank, status=CommitStatus.UNCHANGED, reason=reason, commit=commit)


def _why_not_back(position: GroupPosition, before: int, marker: CommitMarker) -> str:
    if marker.source_offset > position.source_offset:
        return (
            f"never backwards: our commit {before} is of position {marker.source_offset}, and the "
            f"position is {position.source_offset} now, either rewound or of an older state; set "
            f"allow_rewind to move it back to {position.offset}"
        )
    return (
        f"never backwards: our commit {before} of position {marker.source_offset} lost nothing, "
        f"and less is known now: {position.offset}"
    )


def _commit(blank: GroupDecision) -> GroupDecision:
    position = blank.position
    return replace(
        blank,
        status=CommitStatus.COMMITTED,
        reason=position.reason,
        commit=position.marked(),
    )
