"""What a user decides about a plan."""

from dataclasses import dataclass, field

from airflow_mm2_offsets.archive import SyncArchive
from airflow_mm2_offsets.core import Strategy
from airflow_mm2_offsets.service.fallback import FallbackOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOptions:
    """What the user decides about a plan."""

    strategy: Strategy = Strategy.SAFE
    read_source: bool = True
    """Ask the source what it holds; without it, positions are not checked against it and
    records are not matched by content."""
    sole_writer: bool = False
    """See ``Evidence.sole_writer``."""
    changed_records: bool = False
    """See ``Evidence.changed_records``; Connect's word counts as well, where it can be asked."""
    max_bytes: int = 256 * 2**20
    """Of each cluster's records, how much may be read as evidence; 0 reads none."""
    archive: SyncArchive | None = None
    """Holds syncs that the topic has no more. Without ``read_source`` it stands in for a syncs
    topic that lies on the source."""
    fallback: FallbackOptions = field(default_factory=FallbackOptions)


DEFAULT_OPTIONS = PlanOptions()
