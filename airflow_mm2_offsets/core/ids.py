"""The ids of the clusters and topics that offsets belong to.

Plans and migrated checkpoints carry them; both are refused where the ids differ.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

_GONE = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterIds:
    """A cluster and its topics, by Kafka's own ids."""

    cluster_id: str | None = None
    """None if the cluster was not asked."""
    topic_ids: Mapping[str, str | None] = field(default_factory=dict)
    """By name; a topic that does not exist is absent. None if the cluster is older than 2.8."""

    def completed_by(self, later: "ClusterIds") -> "ClusterIds":
        """Return these ids with the further topics of ``later``, if it is the same cluster."""
        if self.cluster_id is None:
            return later
        if later.cluster_id != self.cluster_id:
            return self
        return ClusterIds(
            cluster_id=self.cluster_id, topic_ids={**later.topic_ids, **self.topic_ids}
        )

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON."""
        return {"cluster_id": self.cluster_id, "topic_ids": dict(self.topic_ids)}

    @classmethod
    def from_json(cls, ids: Mapping[str, Any]) -> "ClusterIds":
        """Return the ids that ``to_json`` wrote."""
        return cls(cluster_id=ids["cluster_id"], topic_ids=dict(ids["topic_ids"]))


class IdChange(NamedTuple):
    """An id that differs from the planned one."""

    field: str
    """The field of the plan."""
    planned: str
    now: str | None
    """None if the topic is gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairIds:
    """The ids on both sides."""

    source: ClusterIds = field(default_factory=ClusterIds)
    target: ClusterIds = field(default_factory=ClusterIds)

    def changes(self, now: "PairIds") -> Iterator[IdChange]:
        """Yield what differs from ``now``; an id that was not read both times is not compared."""
        for side, planned, current in (
            ("source", self.source, now.source),
            ("target", self.target, now.target),
        ):
            if planned.cluster_id is None or current.cluster_id is None:
                continue
            field_name = f"clusters.{side}"
            if planned.cluster_id != current.cluster_id:
                yield IdChange(f"{field_name}.cluster_id", planned.cluster_id, current.cluster_id)
                continue
            for topic, before in planned.topic_ids.items():
                after = current.topic_ids.get(topic, _GONE)
                if before is not None and after is not None and before != after:
                    yield IdChange(f"{field_name}.topic_ids.{topic}", before, after or None)

    def completed_by(self, later: "PairIds") -> "PairIds":
        """Return these ids with the further ones of ``later``."""
        return PairIds(
            source=self.source.completed_by(later.source),
            target=self.target.completed_by(later.target),
        )

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON."""
        return {"source": self.source.to_json(), "target": self.target.to_json()}

    @classmethod
    def from_json(cls, ids: Mapping[str, Any]) -> "PairIds":
        """Return the ids that ``to_json`` wrote."""
        return cls(
            source=ClusterIds.from_json(ids["source"]), target=ClusterIds.from_json(ids["target"])
        )
