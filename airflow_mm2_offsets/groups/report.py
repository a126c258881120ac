"""What was committed for groups, as plain JSON and as a table."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from airflow_mm2_offsets.core.group_offsets import CommitStatus, GroupDecision, GroupRules
from airflow_mm2_offsets.core.summary import table

SCHEMA_VERSION = 1
_MAX_LINES = 100
_BY_NEED = (
    *(CommitStatus.FAILED, CommitStatus.REFUSED, CommitStatus.KEPT),
    *(CommitStatus.COMMITTED, CommitStatus.UNCHANGED),
)
"""What needs a look first."""
_HEADER = ("group", "partition", "source position", "offset", "before", "status", "read again")


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupsReport:
    """The decisions for all groups of a run."""

    offsets_from: str
    """Where the offsets come from: ``translation``, ``checkpoints`` or ``positions``."""
    rules: GroupRules
    decisions: tuple[GroupDecision, ...]
    reads: Mapping[str, int] = field(default_factory=dict)
    """How many records of which kind were read, for all groups together."""
    unread: Mapping[str, str] = field(default_factory=dict)
    """The groups on the source whose commits a broker does not tell, and why."""

    def count(self, status: CommitStatus) -> int:
        """Return how many topic-partitions have a status."""
        return sum(each.status is status for each in self.decisions)

    @property
    def max_reread(self) -> int | None:
        """The most records that the groups read again from our commits; None when not known."""
        return None if self.unknown_reread else self._known_reread

    @property
    def unknown_reread(self) -> int:
        """How many of our commits read again an unknown number of records."""
        return sum(each.commit is not None and each.max_reread is None for each in self.decisions)

    @property
    def unconfirmed(self) -> int:
        """How many of our commits rest on MirrorMaker 2's checkpoint alone."""
        return sum(each.is_unconfirmed for each in self.decisions)

    @property
    def _known_reread(self) -> int:
        return sum(each.max_reread or 0 for each in self.decisions)

    def to_json(self, *, max_lines: int | None = None) -> dict[str, Any]:
        """Return the report as plain JSON; offsets are text, for they may pass 2**53.

        Args:
            max_lines: How many offsets to list at most, those first that need a look; None: all.
                The totals count all.
        """
        lines = sorted(self.decisions, key=lambda each: _BY_NEED.index(each.status))[:max_lines]
        return {
            "schema_version": SCHEMA_VERSION,
            "offsets_from": self.offsets_from,
            "dry_run": self.rules.dry_run,
            "totals": {
                "groups": len({each.position.group for each in self.decisions}),
                "partitions": len(self.decisions),
                **{status.value: self.count(status) for status in CommitStatus},
                "max_reread": self.max_reread,
                "unknown_reread": self.unknown_reread,
                "unconfirmed": self.unconfirmed,
                "unread_groups": len(self.unread),
            },
            "reads": dict(self.reads),
            "offsets": [_to_json(each) for each in lines],
            "offsets_left_out": len(self.decisions) - len(lines),
            "unread_groups": dict(self.unread),
            "summary": self.summary(),
        }

    def summary(self) -> str:
        """Return one sentence, a table of what is new or needs a look, and the reasons."""
        changed = [
            each
            for each in self.decisions
            if each.status is not CommitStatus.UNCHANGED or each.is_unconfirmed
        ]
        changed.sort(key=lambda each: _BY_NEED.index(each.status))
        lines, left = changed[:_MAX_LINES], len(changed) - _MAX_LINES
        more = f"\n... and {left} more" if left > 0 else ""
        if not lines:
            return self._sentence()
        reasons = "\n".join(
            f"{each.position.group} {each.position.topic_partition}: {each.reason}"
            for each in lines
        )
        return f"{self._sentence()}\n\n{table(_HEADER, list(map(_row, lines)))}{more}\n\n{reasons}"

    def _sentence(self) -> str:
        groups = len({each.position.group for each in self.decisions})
        counts = ", ".join(f"{self.count(status)} {status.value}" for status in CommitStatus)
        dry = "DRY RUN, nothing was committed: " if self.rules.dry_run else ""
        unknown = self.unknown_reread
        more = f", and an unknown number from {unknown} offsets" if unknown else ""
        alone = (
            f" {self.unconfirmed} of them rest on MirrorMaker 2's checkpoint alone, which may be "
            f"of an earlier topic of that name: see the reasons."
        )
        return (
            f"{dry}{len(self.decisions)} offsets of {groups} groups ({counts}), "
            f"at most {self._known_reread} records read again{more}."
            f"{alone if self.unconfirmed else ''}{self._unread_groups()}"
        )

    def _unread_groups(self) -> str:
        if not self.unread:
            return ""
        (group, reason), *others = sorted(self.unread.items())
        more = f", and of {len(others)} more groups" if others else ""
        return f" The source does not tell the commits of the group {group}{more}: {reason}."


def _to_json(decision: GroupDecision) -> dict[str, Any]:
    position = decision.position
    return {
        "group": position.group,
        "topic": position.topic_partition.topic,
        "partition": position.topic_partition.partition,
        "origin": position.origin,
        "source_offset": str(position.source_offset),
        "offset": _text(position.offset),
        "before": _text(decision.previous),
        "committed": _text(decision.commit.offset if decision.commit else None),
        "status": decision.status.value,
        "reason": decision.reason,
        "max_reread": decision.max_reread,
        "is_unconfirmed": decision.is_unconfirmed,
    }


def _row(decision: GroupDecision) -> tuple[object, ...]:
    position = decision.position
    again = "?" if decision.max_reread is None else f"<= {decision.max_reread}"
    return (
        position.group,
        position.topic_partition,
        position.source_offset,
        _shown(position.offset),
        _shown(decision.previous),
        decision.status.value,
        again if decision.commit else "-",
    )


def _shown(offset: int | None) -> str:
    return "-" if offset is None else str(offset)


def _text(offset: int | None) -> str | None:
    return None if offset is None else str(offset)
