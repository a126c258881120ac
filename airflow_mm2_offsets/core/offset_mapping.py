"""How positions on the source map to positions on the target; the pair of clusters names it."""

from enum import StrEnum


class OffsetMapping(StrEnum):
    """What says where a source's record lies on the target."""

    OFFSET_SYNCS = "offset_syncs"
    """MirrorMaker 2's offset syncs: a copy has another offset than its record."""
    IDENTITY = "identity"
    """The offset itself: whatever copies keeps offsets, as cluster mirroring (KIP-1279) and
    Cluster Linking do. No offset-syncs topic and no Connect is asked."""
