"""The wait for MirrorMaker 2."""

from collections.abc import Mapping, Sequence
from typing import Any

from airflow.providers.common.compat.sdk import Context

from airflow_mm2_offsets.core import check_positions
from airflow_mm2_offsets.errors import NotReplicatedError
from airflow_mm2_offsets.hooks.mm2 import Mm2OffsetHook
from airflow_mm2_offsets.operators.failing import fails_at_once
from airflow_mm2_offsets.operators.waiting import WaitingOperator
from airflow_mm2_offsets.spark.offsets import parse_offsets
from airflow_mm2_offsets.triggers.replication import ReplicatedTrigger


class Mm2ReplicatedSensor(WaitingOperator):
    """Waits until MirrorMaker 2 has copied everything before some positions.

    A partition is done when an offset sync lies at or after its position, or when the source
    holds nothing before it that was not copied and nothing from it on.

    Args:
        mm2_conn_id: Id of a connection of type ``mm2``.
        positions: Topic to partition to next offset, as a dict or as Spark's JSON text. Airflow 3.1
            takes no numbers as keys of a dict: give partitions as text there.
        quiet_after: Seconds after which the wait ends well where neither cluster has changed, and
            nothing but the last records before a position is in doubt; None: never. A transform
            that drops the last records leaves nothing that could show that they were seen. The
            plan is then bounded; what is copied later all the same is read again. May be a
            templated string.
        timeout: Seconds to wait at most.
        poll_interval: Seconds between two looks.

    Raises:
        NotReplicatedError: It was not done in time; each partition that is behind is named.
    """

    template_fields: Sequence[str] = ("mm2_conn_id", "positions", "quiet_after")
    wait_for = ReplicatedTrigger.wait_for
    error = NotReplicatedError

    def __init__(
        self,
        *,
        positions: Mapping[str, Any] | str,
        mm2_conn_id: str = Mm2OffsetHook.default_conn_name,
        quiet_after: float | str | None = None,
        **kwargs: Any,
    ) -> None:
        """Keep the settings."""
        super().__init__(**kwargs)
        self.mm2_conn_id = mm2_conn_id
        self.positions = positions
        self.quiet_after = quiet_after

    @fails_at_once()
    def execute(self, context: Context) -> dict[str, Any]:
        """Look, and wait unless it is there."""
        given = self.positions
        return self.look_or_wait(
            context,
            ReplicatedTrigger,
            mm2_conn_id=self.mm2_conn_id,
            positions=parse_offsets(given) if isinstance(given, str) else check_positions(given),
            quiet_after=self.seconds("quiet_after"),
        )
