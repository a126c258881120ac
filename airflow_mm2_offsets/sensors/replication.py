"""The wait for MirrorMaker 2."""

from collections.abc import Mapping, Sequence
from typing import Any

from airflow_mm2_offsets.errors import ConfigurationError, NotReplicatedError
from airflow_mm2_offsets.hooks.mm2 import Mm2OffsetHook
from airflow_mm2_offsets.operators.settings import is_true
from airflow_mm2_offsets.sensors.polling import PollingSensor
from airflow_mm2_offsets.spark.offsets import to_positions
from airflow_mm2_offsets.triggers.replication import ReplicatedTrigger


class Mm2ReplicatedSensor(PollingSensor):
    """Waits until MirrorMaker 2 has copied everything before some positions.

    A partition is done when an offset sync lies at or after its position, or when the source
    holds nothing before it that was not copied and nothing from it on.

    Args:
        mm2_conn_id: Id of a connection of type ``mm2``.
        positions: Topic to partition to next offset, as a dict or as Spark's JSON text. Airflow 3.1
            takes no numbers as keys of a dict: give partitions as text there.
        clusters: The ids of clusters and topics when the positions were first read:
            ``ReadSparkCheckpointOperator`` returns them. The wait then ends where a topic was
            recreated.
        quiet_after: Seconds after which the wait succeeds if neither cluster has changed and only
            the last records before a position are in doubt; None: never. A transform that drops
            the last records leaves no proof that MirrorMaker 2 has processed them. The plan is
            then bounded; records that are copied later are read again. May be a templated string.
        exchanged: The job moves against the copying: see ``TranslateOffsetsOperator``.
        timeout: Seconds to wait at most; 600 by default.
        poke_interval: Seconds between two looks; 2 by default.
        deferrable: Wait in the triggerer; None: as ``[operators] default_deferrable`` says.
        kwargs: ``mode``, ``soft_fail`` and all other arguments of Airflow's sensors.

    Returns:
        ``source_ends``: the source's ends at the first look, where MirrorMaker 2 has lost its first
        offset syncs. ``TranslateOffsetsOperator`` takes it as ``replicated``.

    Raises:
        HandoverError: A cluster or topic has another id than in ``clusters``.
        NotReplicatedError: The time has passed; each partition that is behind is named. It is an
            ``AirflowSensorTimeout`` too.
        ConfigurationError: ``quiet_after`` with ``mode="reschedule"`` and no ``deferrable``.
    """

    template_fields: Sequence[str] = (
        "mm2_conn_id",
        "positions",
        "clusters",
        "quiet_after",
        "exchanged",
    )
    wait_for = ReplicatedTrigger.wait_for
    error = NotReplicatedError

    def __init__(
        self,
        *,
        positions: Mapping[str, Any] | str,
        mm2_conn_id: str = Mm2OffsetHook.default_conn_name,
        clusters: Mapping[str, Any] | None = None,
        quiet_after: float | str | None = None,
        exchanged: bool | str = False,
        **kwargs: Any,
    ) -> None:
        """Keep the settings."""
        super().__init__(**kwargs)
        self.mm2_conn_id = mm2_conn_id
        self.positions = positions
        self.clusters = clusters
        self.quiet_after = quiet_after
        self.exchanged = exchanged

    def new_trigger(self, **times: float) -> ReplicatedTrigger:
        """Return the trigger that reads both clusters."""
        return ReplicatedTrigger(
            mm2_conn_id=self.mm2_conn_id,
            positions=to_positions(self.positions),
            clusters=self.clusters,
            quiet_after=self.parse_settings(),
            exchanged=is_true(self, "exchanged"),
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
