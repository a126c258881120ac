"""What ``drain`` reads together of some partitions, and which of them have not ended."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from airflow_mm2_offsets.core import TopicPartition, Watermarks
from airflow_mm2_offsets.errors import PositionError


@dataclass(slots=True, kw_only=True)
class LapProgress:
    """The offsets to read of each partition, and the partitions that have not ended.

    A partition ends with its last record, or when the broker reports its end. Transaction markers
    may follow the last record: no consumer sees them, so its position never reaches the end.
    """

    cluster: str
    begins: Mapping[TopicPartition, int]
    ends: Mapping[TopicPartition, int]
    first_only: bool
    pending: set[TopicPartition] = field(init=False)
    """Shrinks as partitions end."""
    early_ends: dict[TopicPartition, int] = field(default_factory=dict)
    """The end that a broker reports of a pending partition, if it is below the end at the start: a
    new leader may lag behind, or the partition was truncated."""

    def __post_init__(self) -> None:
        """Let all partitions be pending that have an offset to read."""
        self.pending = {each for each, begin in self.begins.items() if begin < self.ends[each]}

    @property
    def most_records(self) -> int:
        """The most records to read of one partition."""
        if self.first_only:
            return 1
        return max(self.ends[each] - self.begins[each] for each in self.pending)


def require_offset(
    cluster: str,
    topic_partition: TopicPartition,
    start: int,
    watermarks: Watermarks,
    *,
    refuse_deleted: bool,
) -> None:
    """Refuse a start beyond its partition's end, or before what is left of it.

    Raises:
        PositionError: The start is refused; both numbers are named.
    """
    if start > watermarks.high:
        problem = f"its end offset {watermarks.high} is below {start}: truncated or recreated"
    elif start < watermarks.low and refuse_deleted:
        problem = f"its first offset {watermarks.low} is above {start}: records were deleted"
    else:
        return
    raise PositionError(
        f"{problem}; read it from its beginning",
        cluster=cluster,
        position=start,
        **topic_partition._asdict(),
    )
