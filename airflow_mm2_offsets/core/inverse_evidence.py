"""What is known for the way home of one partition; ``planning`` collects it for ``inverse``.

MirrorMaker 2 copies from A to B. The job was moved from A to B, and comes home to A.
"""

from collections import Counter
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property

from airflow_mm2_offsets.core.bracket import SyncPoint
from airflow_mm2_offsets.core.evidence import Content, RecordWindow, SourceWindow, Watermarks


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstMove:
    """What the plan of the move from A to B says of the partition."""

    position: int
    """On A: the job has processed every record before it there."""
    start: int
    """On B: the job began there."""
    is_proven: bool = True
    """Whether ``start`` was proven to lose nothing, and not chosen by the user."""


@dataclass(frozen=True, kw_only=True)
class InverseEvidence:
    """What was read of the two clusters beyond the syncs."""

    home: Watermarks
    """A's."""
    away: Watermarks
    """B's."""
    first: FirstMove | None = None
    """None: not known. Then the job may have begun anywhere on B, and every position is refused."""
    originals: SourceWindow | None = None
    """The records of A, up to its end or to the first open transaction."""
    copies: RecordWindow | None = None
    """The records of B, up to its end."""
    committed: int | None = None
    """The last source offset that Connect has committed as copied. It commits in order."""
    sole_writer: bool = False
    """The user's word that only MirrorMaker 2 writes to the topic on B."""
    changed_records: bool = False
    """A transform changes records on their way, so that they can't be compared."""
    contradiction: SyncPoint | None = None
    """A sync whose record was read on both clusters and differs."""

    @property
    def begin(self) -> int:
        """The first offset of B that the job may have read."""
        return self.first.start if self.first else 0

    @property
    def base(self) -> int:
        """The first offset of A that the job may not have processed there."""
        return self.first.position if self.first else 0

    @property
    def is_comparable(self) -> bool:
        """Whether records of both clusters were read, and can be compared."""
        return not (self.originals is None or self.copies is None or self.changed_records)

    @cached_property
    def unique(self) -> AbstractSet[Content]:
        """The contents that A holds once."""
        records = self.originals.records if self.originals else ()
        counts = Counter(content for _, content in records)
        return {content for content, count in counts.items() if count == 1}

    @cached_property
    def original_contents(self) -> AbstractSet[Content]:
        """The contents of A's records."""
        return {content for _, content in self.originals.records} if self.originals else set()

    def are_originals_known(self, first: int, stop: int) -> bool:
        """Tell whether B's records in ``[first, stop)`` are all among those that were read of A."""
        copies = self.copies.records if self.copies else ()
        originals = self.originals.records if self.originals else ()
        copied = Counter(content for offset, content in copies if first <= offset < stop)
        return copied <= Counter(content for _, content in originals)

    def copied_contents(self, first: int, stop: int) -> AbstractSet[Content]:
        """Return the contents of B's records in ``[first, stop)``."""
        records = self.copies.records if self.copies else ()
        return {content for offset, content in records if first <= offset < stop}
