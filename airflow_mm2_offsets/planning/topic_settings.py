"""What settings of topics mean for a failover; ``readiness`` and ``doctor`` ask."""

from collections.abc import Mapping

_RETENTIONS = ("retention.ms", "retention.bytes")
_UNLIMITED = -1


def has_log_append_time(settings: Mapping[str, str]) -> bool:
    """Tell whether the broker stamps records: then two copies of a record differ."""
    return settings.get("message.timestamp.type") == "LogAppendTime"


def is_compacted(settings: Mapping[str, str]) -> bool:
    """Tell whether a topic deletes records that a later one with the same key replaces."""
    return "compact" in settings.get("cleanup.policy", "delete")


def shorter_retention(
    settings: Mapping[str, str], other: Mapping[str, str]
) -> dict[str, tuple[str, str]]:
    """Return the limits by which a topic deletes sooner than another: both values, by setting.

    A topic that deletes nothing (``cleanup.policy`` without ``delete``) has no limit.
    """
    return {
        name: (str(mine), str(theirs))
        for name in _RETENTIONS
        if (mine := _limit(settings, name)) != _UNLIMITED
        and ((theirs := _limit(other, name)) == _UNLIMITED or mine < theirs)
    }


def _limit(settings: Mapping[str, str], name: str) -> int:
    deletes = "delete" in settings.get("cleanup.policy", "delete")
    return int(settings.get(name, _UNLIMITED)) if deletes else _UNLIMITED
