"""The marker that our commits carry in their metadata, the text that Kafka keeps with an offset.

``group_offsets`` writes it, and knows by it later which commits are ours.
"""

import re
from dataclasses import dataclass

_MARKER = re.compile(
    r"airflow-mm2-offsets/1 source=(\d{1,19}) offset=(\d{1,19}) origin=(.+)", re.DOTALL
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitMarker:
    """What a commit of ours says of itself."""

    source_offset: int
    """The position at the origin that was translated."""
    offset: int
    """What was committed for it."""
    origin: str
    """Where the position came from."""

    def __str__(self) -> str:
        """Return the commit's metadata."""
        return (
            f"airflow-mm2-offsets/1 source={self.source_offset} offset={self.offset} "
            f"origin={self.origin}"
        )


def read_marker(metadata: str, *, offset: int) -> CommitMarker | None:
    """Return our marker; None if the commit is somebody else's.

    MirrorMaker 2 copies metadata from one cluster to the other: a marker at another offset than the
    one that it names was copied.
    """
    match = _MARKER.fullmatch(metadata)
    if match is None or int(match[2]) != offset:
        return None
    return CommitMarker(source_offset=int(match[1]), offset=offset, origin=match[3])
