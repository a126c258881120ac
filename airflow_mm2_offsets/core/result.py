"""The answer for one position; ``rules`` gives it, every room above shows it."""

from dataclasses import dataclass, replace
from enum import StrEnum

from airflow_mm2_offsets.core.positions import TopicPartition


class Status(StrEnum):
    """How much is known about a position on the target."""

    EXACT = "exact"
    """The target position is the truth: no record is lost, none is read again."""
    BOUNDED = "bounded"
    """The truth lies in [low, high]. A job that starts at low loses no record."""
    REFUSED = "refused"
    """For no target position is it known that no record is lost."""
    NOT_SAFE = "not_safe"
    """The target position is above the lower bound: a job that starts there may lose records."""


class Strategy(StrEnum):
    """Which target position to answer."""

    SAFE = "safe"
    """The lower bound: loses nothing."""
    LINEAR = "linear"
    """d1 + (p - u1), the formula of older tools: loses records where offsets have gaps."""
    KAFKA = "kafka"
    """d1, or d1 + 1 past a sync: what MirrorMaker 2 answers (KAFKA-12468)."""


class Basis(StrEnum):
    """What a translation rests on, or why it was refused."""

    SYNC = "sync"
    BETWEEN_SYNCS = "between-syncs"
    BEFORE_FIRST_SYNC = "before-first-sync"
    AFTER_LAST_SYNC = "after-last-sync"
    TARGET_WINDOW = "target-window"
    CONTENT = "content"
    DRAINED = "drained"
    COPYING_AGAIN = "copying-again"
    NEVER_REPLICATED = "never-replicated"
    NEVER_COPIED = "never-copied"
    HISTORY_CUT = "history-cut"
    EXPIRED = "expired"
    NOT_REPLICATED_YET = "not-replicated-yet"
    OUTSIDE_SOURCE = "outside-source"
    RECORDS_DIFFER = "records-differ"
    FIRST_PLAN = "first-plan"
    OTHER_WRITER = "other-writer"
    UNREAD_RECORDS = "unread-records"
    IDENTITY = "identity"
    NOT_IDENTICAL = "not-identical"
    NOT_COMPARED = "not-compared"
    BY_WORD = "by-word"
    OPEN_TRANSACTION = "open-transaction"


@dataclass(frozen=True, slots=True, kw_only=True)
class Uncopied:
    """Records from a position on that the source holds and that MirrorMaker 2 has passed over."""

    at_least: int
    """So many were read on the source and have no copy; 0: the syncs show fewer copies than source
    offsets, and the records were not all read."""
    at_most: int
    """With those that may have a copy where none can be seen, and the offsets that were not read.
    """
    first: int
    """The first one's offset on the source."""
    last: int
    """The last one's that was read."""
    cause: str
    """What Connect's configuration says of it, or that Connect was not asked."""
    is_given_up: bool = False
    """The user has named at least as many records (``give_up``): they are lost."""

    def __str__(self) -> str:
        """Return the number in words."""
        if not self.at_least:
            return f"at most {self.at_most} records"
        if self.at_least == self.at_most:
            return "1 record" if self.at_most == 1 else f"{self.at_most} records"
        return f"{self.at_least} to {self.at_most} records"


@dataclass(frozen=True, slots=True, kw_only=True)
class Translation:
    """The answer for one position of one partition."""

    topic: str
    """The topic's name on the source."""
    partition: int
    position: int
    """The next offset to read on the source."""
    status: Status
    basis: Basis
    reason: str
    """The basis in words, with the numbers that it rests on."""
    target: int | None = None
    """The next offset to read on the target; None when refused."""
    low: int | None = None
    """The truth is not below it; None when refused."""
    high: int | None = None
    """The truth is not above it; None when refused, or while MirrorMaker 2 may copy more."""
    uncopied: Uncopied | None = None
    """Records from the position on that were never copied: an answer gives them up."""

    @property
    def topic_partition(self) -> TopicPartition:
        """Topic and partition, by the source's name."""
        return TopicPartition(self.topic, self.partition)

    @property
    def max_reread(self) -> int | None:
        """The most records that can be read again from ``target``; None when not known."""
        if self.target is None or self.high is None:
            return None
        return max(0, self.high - self.target)

    @property
    def max_lost(self) -> int:
        """The most records that a job loses from ``target`` on: 0 with strategy safe."""
        if self.target is None or self.low is None:
            return 0
        return max(0, self.target - self.low)

    def starting_at(self, target: int, strategy: Strategy) -> "Translation":
        """Return the answer with the target position of another strategy than safe."""
        answer = replace(self, target=target)
        if target == self.low:
            return answer
        if not answer.max_lost:
            return replace(answer, status=Status.BOUNDED)
        problem = (
            f"strategy {strategy} answers {target}, so up to {answer.max_lost} records may be "
            f"lost; strategy safe answers {self.low}"
        )
        return replace(answer, status=Status.NOT_SAFE, reason=f"{self.reason}; {problem}")

    def refused(self, basis: Basis, reason: str) -> "Translation":
        """Return the refusal of the same position."""
        return replace(
            self,
            status=Status.REFUSED,
            basis=basis,
            reason=reason,
            target=None,
            low=None,
            high=None,
        )
