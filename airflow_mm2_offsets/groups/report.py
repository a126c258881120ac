"""What was committed for groups, as plain JSON and as a table."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from airflow_mm2_offsets.core.group_offsets import CommitStatus, GroupDecision
from airflow_mm2_offsets.core.summary import table

SCHEMA_VERSION = 1
_MAX_LINES = 100
_HEADER = ("group", "partition", "source position", "offset", "before", "status", "read again")


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupsReport:
    """The decisions for all groups of a run."""

    offsets_from: str
    """Where the offsets come from: ``translation``, ``checkpoints`` or ``positions``."""
    is_dry_run: bool
    decisions: tuple[GroupDecision, ...]
    reads: Mapping[str, int] = field(default_factory=dict)
    """How many records of which kind were read, for all groups together."""

    def count(self, status: CommitStatus) -> int:
        """Return how many topic-partitions have a status."""
        return sum(each.status is status for each in self.decisions)

    @property
    def max_reread(self) -> int | None:
        """The most records that the groups read again from our commits; None when not known."""
        counts = [each.max_reread for each in self.decisions if each.commit is not None]
        return None if None in counts else sum(each for each in counts if each is not None)

    def to_json(self) -> dict[str, Any]:
        """Return the report as plain JSON; offsets are text, for they may pass 2**53."""
        return {
            "schema_version": SCHEMA_VERSION,
            "offsets_from": self.offsets_from,
            "is_dry_run": self.is_dry_run,
            "totals": {
                "groups": len({each.position.group for each in self.decisions}),
                "partitions": len(self.decisions),
                **{status.value: self.count(status) for status in CommitStatus},
                "max_reread": self.max_reread,
            },
            "reads": dict(self.reads),
            "offsets": [_to_json(each) for each in self.decisions],
            "summary": self.summary(),
        }

    def summary(self) -> str:
        """Return one sentence, a table of what is new or needs a look, and the reasons."""
        shown = [each for each in self.decisions if each.status is not CommitStatus.UNCHANGED]
        lines, left = shown[:_MAX_LINES], len(shown) - _MAX_LINES
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
        dry = "DRY RUN, nothing was committed: " if self.is_dry_run else ""
        again = "an unknown number of" if self.max_reread is None else f"at most {self.max_reread}"
        return (
            f"{dry}{len(self.decisions)} offsets of {groups} groups ({counts}), "
            f"{again} records read again."
        )


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
