"""The rules by which a consumer group's offsets are committed for it; ``groups`` asks them.

A group is moved before its consumers are: they find the offsets when they start. Kafka takes such
a commit only while the group has no members (KIP-396). Ours carries a marker, so that a later run
knows which commits are ours, and of which origin.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from airflow_mm2_offsets.core.commit_marker import CommitMarker, read_marker
from airflow_mm2_offsets.core.evidence import Watermarks
from airflow_mm2_offsets.core.positions import TopicPartition


class CommitStatus(StrEnum):
    """What happens to a group's offset of one topic-partition."""

    COMMITTED = "committed"
    """It is ours, and new. In a dry run: it would be committed."""
    UNCHANGED = "unchanged"
    """Our earlier commit stays. It is written again, so that Kafka does not expire it."""
    KEPT = "kept"
    """Somebody else's commit stays: a consumer's, or that of MirrorMaker 2's own sync."""
    REFUSED = "refused"
    """Nothing new is committed, because it could lose records."""
    FAILED = "failed"
    """The broker refused the commit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupCommit:
    """An offset that a group has committed, as the broker holds it."""

    offset: int
    """The next offset to read."""
    metadata: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPosition:
    """Where a group continues on one topic-partition, by its origin."""

    group: str
    """The group that is to be committed for."""
    topic_partition: TopicPartition
    """On the cluster of that group."""
    origin: str
    """Where the position comes from: two origins must not share a group."""
    source_offset: int
    """The position at the origin: it rises unless somebody rewinds the origin."""
    offset: int | None
    """The next offset to read; None: refused, for ``reason``."""
    reason: str
    """What the offset rests on, or why no offset can be given."""
    max_reread: int | None = None
    """The most records that are read again from ``offset``; None when not known."""
    is_confirmed: bool = True
    """Whether the offset syncs prove that ``offset`` loses nothing. False: MirrorMaker 2's
    checkpoint alone says so, which may be of an earlier topic of that name."""

    def refused(self, reason: str) -> "GroupPosition":
        """Return the refusal of the same position."""
        return replace(self, offset=None, reason=reason, max_reread=None)

    def marked(self) -> GroupCommit:
        """Return the commit with its marker."""
        assert self.offset is not None  # noqa: S101 - nothing refused is committed
        marker = CommitMarker(
            source_offset=self.source_offset, offset=self.offset, origin=self.origin
        )
        return GroupCommit(offset=self.offset, metadata=str(marker))


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRules:
    """What a user allows beyond the rules."""

    overwrite_others: bool = False
    """Move commits without our marker too, never backwards."""
    allow_rewind: bool = False
    """Follow an origin that was rewound: move our own commits backwards."""


DEFAULT_RULES = GroupRules()


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupDecision:
    """What is done about one position."""

    position: GroupPosition
    status: CommitStatus
    reason: str
    previous: int | None = None
    """What was committed before; None: nothing."""
    commit: GroupCommit | None = None
    """What is written."""

    def failed(self, reason: str) -> "GroupDecision":
        """Return the decision after the broker has refused the commit."""
        return replace(self, status=CommitStatus.FAILED, reason=reason, commit=None)

    @property
    def max_reread(self) -> int | None:
        """The most records read again; None when not known, or nothing of ours is committed."""
        return self.position.max_reread if self._is_its_own else None

    @property
    def is_unconfirmed(self) -> bool:
        """Whether an offset is committed that MirrorMaker 2's checkpoint alone speaks for."""
        return self._is_its_own and not self.position.is_confirmed

    @property
    def _is_its_own(self) -> bool:
        return self.commit is not None and self.commit.offset == self.position.offset


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


def decide(
    position: GroupPosition,
    current: GroupCommit | None,
    watermarks: Watermarks | None,
    *,
    members: int,
    rules: GroupRules = DEFAULT_RULES,
) -> GroupDecision:
    """Decide about one position.

    Args:
        position: Where the group is to continue.
        current: What the group has committed there; None: nothing.
        watermarks: Those of the topic-partition; None: it does not exist.
        members: How many members the group has.
        rules: What the user allows.
    """
    offset = position.offset
    previous = current.offset if current is not None and current.offset >= 0 else None
    blank = GroupDecision(
        position=position, status=CommitStatus.REFUSED, reason=position.reason, previous=previous
    )
    outside = None if offset is None else _outside(offset, watermarks)
    if offset is None or outside:
        refusal = replace(blank, reason=outside or position.reason)
        return _keep_alive(refusal, current, watermarks, members)
    if problem := _active(members):
        return replace(blank, reason=problem)
    if current is None or previous is None:
        return _commit(blank)
    marker = read_marker(current.metadata, offset=current.offset)
    if marker is None:
        return _beside_others(blank, offset, previous, rules)
    if marker.origin != position.origin:
        return replace(
            blank,
            reason=f"its commit {previous} comes from another origin, {marker.origin}, and this "
            f"one is {position.origin}: give each a group of its own, or delete the group's offset",
        )
    return _after_ours(blank, current, marker, watermarks, rules)


def _keep_alive(
    refusal: GroupDecision, current: GroupCommit | None, watermarks: Watermarks | None, members: int
) -> GroupDecision:
    """Return the refusal, with our own earlier commit while it lies inside the log.

    It lost nothing when it was committed. If it were not written again, Kafka would expire it
    (KIP-211), and the group would start where ``auto.offset.reset`` sends it.
    """
    if current is None or watermarks is None or members:
        return refusal
    marker = read_marker(current.metadata, offset=current.offset)
    is_ours = marker is not None and marker.origin == refusal.position.origin
    if not is_ours or not watermarks.low <= current.offset <= watermarks.high:
        return refusal
    reason = f"{refusal.reason}; our earlier commit {current.offset} stays"
    return replace(refusal, reason=reason, commit=current)


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


def _beside_others(
    blank: GroupDecision, offset: int, previous: int, rules: GroupRules
) -> GroupDecision:
    if not rules.overwrite_others:
        reason = (
            f"commit {previous} is not ours: a consumer or MirrorMaker 2's own sync made it; set "
            f"overwrite_others to move it to {offset}"
        )
    elif previous >= offset:
        reason = f"commit {previous} is not ours, and not below {offset}: never backwards"
    else:
        return _commit(blank)
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
