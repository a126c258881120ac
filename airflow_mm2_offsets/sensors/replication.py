"""The wait for MirrorMaker 2."""

from collections.abc import Mapping, Sequence
from typing import Any

from airflow.providers.common.compat.sdk import Context

from airflow_mm2_offsets.errors import ConfigurationError, NotReplicatedError
from airflow_mm2_offsets.hooks.mm2 import Mm2OffsetHook
from airflow_mm2_offsets.moves.handover import stopped_positions
from airflow_mm2_offsets.moves.journal import Event
from airflow_mm2_offsets.operators.failing import fails_at_once
from airflow_mm2_offsets.operators.moving import (
    AnyContext,
    MoveArgument,
    mirror_of,
    mover_of,
    skip_if_handed_over,
    skip_in_dry_run,
    to_template,
)
from airflow_mm2_offsets.operators.settings import given, positions_of
from airflow_mm2_offsets.sensors.polling import PollingSensor
from airflow_mm2_offsets.triggers.replication import ReplicatedTrigger


class Mm2ReplicatedSensor(PollingSensor):
    """Waits until MirrorMaker 2 has copied everything before some positions.

    A partition is done when an offset sync lies at or after its position, or when the source
    holds nothing before it that was not copied and nothing from it on.

    Give ``move`` as a step of a move, or ``positions``. In a disaster a move waits for nothing.

    Args:
        move: What is moved, and how.
        positions: Topic to partition to next offset, as a mapping or as Spark's JSON text. Airflow
            3.1 takes no numbers as keys of a dict: give partitions as text there. Or all that
            ``ReadSparkCheckpointOperator``, ``StopSparkStreamingOperator`` or ``note_positions``
            returned: the wait then ends where a cluster or topic has another id than when the
            positions were read.
        mm2_conn_id: With ``positions``: id of a connection of type ``mm2``.
        quiet_after: Seconds after which the wait succeeds if neither cluster has changed and only
            the last records before a position are in doubt; None: as the job says, or never. A
            transform that drops the last records leaves no proof that MirrorMaker 2 has processed
            them. The plan is then bounded; records that are copied later are read again. May be a
            templated string.
        to: With ``positions``: see ``TranslateOffsetsOperator``.
        timeout: Seconds to wait at most; 600 by default.
        poke_interval: Seconds between two looks; 2 by default.
        deferrable: Wait in the triggerer; None: as ``[operators] default_deferrable`` says.
        kwargs: ``mode``, ``soft_fail`` and all other arguments of Airflow's sensors.

    Returns:
        ``source_ends``: the source's ends at the first look, where MirrorMaker 2 has lost its first
        offset syncs. ``TranslateOffsetsOperator`` takes it as ``replicated``.

    Raises:
        HandoverError: A cluster or topic has another id than in ``positions``.
        NotReplicatedError: The time has passed; each partition that is behind is named. It is an
            ``AirflowSensorTimeout`` too.
        ConfigurationError: ``quiet_after`` with ``mode="reschedule"`` and no ``deferrable``; or not
            one of ``move`` and ``positions``.
    """

    template_fields: Sequence[str] = ("move", "mm2_conn_id", "positions", "quiet_after", "to")
    wait_for = ReplicatedTrigger.wait_for
    error = NotReplicatedError

    def __init__(
        self,
        *,
        move: MoveArgument | None = None,
        positions: Mapping[str, Any] | str | None = None,
        mm2_conn_id: str = Mm2OffsetHook.default_conn_name,
        quiet_after: float | str | None = None,
        to: str | None = None,
        **kwargs: Any,
    ) -> None:
        """Keep the settings."""
        super().__init__(**kwargs)
        self.move = to_template(move)
        self.mm2_conn_id = mm2_conn_id
        self.positions = positions
        self.quiet_after = quiet_after
        self.to = to

    @fails_at_once()
    def execute(self, context: Context) -> Any:  # noqa: ANN401 - Airflow's signature
        """Wait for the copies of a move, or of positions."""
        if (self.move is None) == (self.positions is None):
            both = "neither is given" if self.move is None else "both are given"
            raise ConfigurationError(
                f"task {self.task_id}: move or positions: {both}; give one of them"
            )
        if self.move is not None and not mover_of(self, context).policy.waits_for_copies:
            self.log.info("The source may be lost: nothing is waited for")
            return None
        if self.move is not None:
            skip_in_dry_run(self, context, "wait until MirrorMaker 2 has copied all before")
            skip_if_handed_over(mover_of(self, context).find())
        return super().execute(context)

    def execute_complete(self, context: AnyContext, event: Mapping[str, Any]) -> dict[str, Any]:
        """Note what the wait has seen in the journal of a move, and return it."""
        result = super().execute_complete(context, event)
        if self.move is not None:
            mover = mover_of(self, context)
            mover.record(mover.find(), Event.NOTE, replicated=result)
        return result

    def new_trigger(self, context: Context, **times: float) -> ReplicatedTrigger:
        """Return the trigger that reads both clusters."""
        quiet_after = self.parse_settings()
        if self.move is None:
            where = positions_of(self)
            return ReplicatedTrigger(
                mm2_conn_id=self.mm2_conn_id,
                positions=where.positions,
                clusters=where.clusters,
                quiet_after=quiet_after,
                to=given(self.to),
                **times,
            )
        move = mover_of(self, context).find()
        stopped = stopped_positions(move)
        return ReplicatedTrigger(
            mm2_conn_id=mirror_of(move),
            positions=stopped.positions,
            clusters=stopped.clusters,
            quiet_after=move.job.quiet_after if quiet_after is None else quiet_after,
            to=move.there.cluster if move.there else None,
            **times,
        )

    def parse_settings(self) -> float | None:
        """Return ``quiet_after`` in seconds.

        Raises:
            ConfigurationError: It is something else, or ``mode`` is ``reschedule`` without
                ``deferrable``.
        """
        quiet_after = self.seconds("quiet_after")
        if quiet_after is not None and self.reschedule and not self.deferrable:
            # Each look has a process of its own, and Airflow deletes the task's XComs before it.
            raise ConfigurationError(
                f"task {self.task_id}: quiet_after compares the clusters with those of the look "
                f"before, and mode='reschedule' ends the process between two looks; give "
                f"deferrable=True or mode='poke', or leave out quiet_after"
            )
        return quiet_after
