"""Where a consumer group continues, what it has committed, and what is decided about it.

``group_rules`` decides, ``groups`` commits and reports.
"""

from dataclasses import dataclass, replace
from enum import StrEnum

from airflow_mm2_offsets.core.commit_marker import CommitMarker
from airflow_mm2_offsets.core.positions import TopicPartition


class CommitStatus(StrEnum):
    """What happens to a group's offset of one topic-partition."""

    COMMITTED = "committed"
    """It is ours, and new. In a dry run: it would be committed."""
    UNCHANGED = "unchanged"
    """Our earlier commit stays. It is written again, so that Kafka does not expire it."""
    KEPT = "kept"
    """Somebody else commits for the group, a consumer or MirrorMaker 2's own sync: it is not moved.
    Where our earlier commit stands, it is written again."""
    REFUSED = "refused"
    """Nothing new is committed, because it could lose records."""
    FAILED = "failed"
    """The broker refused the commit, or does not tell what the group has committed."""


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
    """What a user allows beyond the rules, or not even by them."""

    dry_run: bool = False
    """Decide, and commit nothing."""
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

    def read_back(self, found: GroupCommit | None) -> "GroupDecision":
        """Return what is true after the commit: another one may have replaced it at once."""
        if self.commit is None or found == self.commit:
            return self
        if found is None:
            return self.failed(f"offset {self.commit.offset} was committed, and is not there")
        reason = (
            f"offset {self.commit.offset} was committed, and {found.offset} is there now: a "
            f"consumer or another run of the sync committed at the same time"
        )
        return replace(self, status=CommitStatus.KEPT, reason=reason, commit=None)

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
