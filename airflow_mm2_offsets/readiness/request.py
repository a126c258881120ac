"""What a readiness check is asked: the job, the clusters, the policy, the thresholds."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from upath import UPath

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.core import FailoverPlan, Positions
from airflow_mm2_offsets.core.policy import PLANNED, Policy
from airflow_mm2_offsets.core.readiness import ReadinessCheck
from airflow_mm2_offsets.core.readiness_names import CheckName
from airflow_mm2_offsets.moves.move import Move, Mover
from airflow_mm2_offsets.planning.options import DEFAULT_OPTIONS, PlanOptions
from airflow_mm2_offsets.readiness.thresholds import Thresholds

MoreChecks = Callable[[], Iterable[ReadinessCheck]]


def _now() -> datetime:
    return datetime.now(UTC)


def _no_plan() -> FailoverPlan | None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadinessRequest:
    """One question; locations are texts, since one that can't be opened is a finding."""

    find_pair: Callable[[], ClusterPair]
    """Returns the pair of clusters; may raise ConfigurationError."""
    open: Callable[[str], UPath]
    """Makes a path of a location; may raise an Mm2OffsetsError."""
    policy: Policy = PLANNED
    thresholds: Thresholds = field(default_factory=Thresholds)
    request_id: str = ""
    """The run that asks: its own move is no problem."""
    mover: Mover | None = None
    """Carries the run's move out; None: no move is asked about."""
    takes_over: str | None = None
    """The run that has ended, and that this one would take the job over from."""
    checkpoint: str | None = None
    control: str | None = None
    target_checkpoint: str | None = None
    target_control: str | None = None
    spark_control: str | None = None
    spark_checkpoint: str | None = None
    plan_path: str | None = None
    archive: str | None = None
    sink: str | None = None
    txn_app_id: str | None = None
    subscribe_pattern: str | None = None
    plan_options: PlanOptions = DEFAULT_OPTIONS
    """How the positions are to be translated, but the archive."""
    came_by: Callable[[], FailoverPlan | None] = _no_plan
    """Returns the plan that the job came to this cluster by; only the way home asks for it. It may
    raise an Mm2OffsetsError."""
    skip_damaged: bool = False
    """Go on without the archive's damaged or missing files."""
    saved_positions: str | None = None
    """In a disaster: the folder of positions that stand in for a lost checkpoint."""
    positions: Positions | None = None
    """The same by the user's word."""
    source_is_gone: bool = False
    """The user's word that no driver runs, where the control location can't be reached."""
    note_ids: bool = False
    """Write the note of ids beside the checkpoint: the only thing that a check may write."""
    probe_folder: str | None = None
    """A folder where a file may be written and removed, to test an object store's rights."""
    more: Mapping[CheckName, MoreChecks] = field(default_factory=dict)
    """Checks of the caller, such as of a DAG."""
    now: Callable[[], datetime] = _now


def fields_of_move(mover: Mover, move: Move) -> dict[str, Any]:
    """Return the fields that follow from a move, and from its job's homes."""
    job, here, there = move.job, move.here, move.there
    return {
        "mover": mover,
        "policy": move.policy,
        "request_id": move.run,
        "checkpoint": here.checkpoint,
        "control": here.control if job.is_controlled else None,
        "target_checkpoint": there.checkpoint if there else None,
        "target_control": there.control if there else None,
        "spark_control": here.spark_name("control"),
        "spark_checkpoint": here.spark_name("checkpoint"),
        "plan_path": move.noted("plan"),
        "sink": there.sink if there else None,
        "txn_app_id": job.txn_app_id,
        "saved_positions": job.saved_positions,
        "subscribe_pattern": job.subscribe_pattern,
    }
