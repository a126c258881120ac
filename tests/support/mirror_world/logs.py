"""What a world's logs hold beside those of ``airflow_mm2_offsets.testing``."""

from dataclasses import dataclass, field, replace

from airflow_mm2_offsets.testing import logs
from airflow_mm2_offsets.testing.logs import Record


@dataclass(slots=True, kw_only=True)
class SourceLog(logs.SourceLog):
    """A source partition whose transforms decide by chance."""

    luck: dict[int, float] = field(default_factory=dict)
    """For each offset ever written a number in [0, 1) that transforms decide by."""
    is_cleaned: bool = False
    """Compaction has removed records."""

    def append(self, record: Record, luck: float) -> None:
        """Add a record."""
        self.luck[self.high] = luck
        self.write(record)


@dataclass(slots=True, kw_only=True)
class SyncsLog:
    """One incarnation of the offset-syncs topic, as far as this partition's key goes."""

    incarnation: int = 0
    syncs: list[tuple[int, int]] = field(default_factory=list)
    """Upstream and downstream offset of each, at the offset of its index."""
    of_target: list[int] = field(default_factory=list)
    """The incarnation of the target topic that each sync is about."""

    def append(self, sync: tuple[int, int], of_target: int) -> None:
        """Add a sync."""
        self.syncs.append(sync)
        self.of_target.append(of_target)

    def until(self, count: int) -> "SyncsLog":
        """Return the log as it was when it held so many syncs."""
        return replace(self, syncs=self.syncs[:count], of_target=self.of_target[:count])
