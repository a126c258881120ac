"""The event of new offset syncs, for the ``AssetWatcher`` of an asset-driven DAG."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from airflow.triggers.base import BaseEventTrigger, TriggerEvent
from asgiref.sync import sync_to_async

from airflow_mm2_offsets.core import TopicPartition
from airflow_mm2_offsets.errors import ClusterUnreachableError, TopicNotFoundError
from airflow_mm2_offsets.hooks.mm2 import Mm2OffsetHook


class NewSyncsTrigger(BaseEventTrigger):
    """Fires when it starts, and whenever the end offset of the offset-syncs topic has changed.

    It continues to wait while the cluster does not answer or the topic does not exist.

    Args:
        mm2_conn_id: Id of a connection of type ``mm2``.
        poll_interval: Seconds between two looks; two events are at least as far apart.
    """

    def __init__(
        self,
        *,
        mm2_conn_id: str = Mm2OffsetHook.default_conn_name,
        poll_interval: float = 60.0,
    ) -> None:
        """Keep the settings."""
        super().__init__()  # type: ignore[no-untyped-call]
        self.mm2_conn_id = mm2_conn_id
        self.poll_interval = poll_interval

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return class and arguments, for Airflow's database."""
        kind = type(self)
        settings = {"mm2_conn_id": self.mm2_conn_id, "poll_interval": self.poll_interval}
        return f"{kind.__module__}.{kind.__qualname__}", settings

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Send an event for each new end offset."""
        last_end = None
        while True:
            try:
                end = await sync_to_async(self._end, thread_sensitive=False)()
            except (ClusterUnreachableError, TopicNotFoundError) as error:
                self.log.warning("Waiting for the offset-syncs topic: %s", error)
            else:
                if end != last_end:
                    yield TriggerEvent({"mm2_conn_id": self.mm2_conn_id, "end": end})
                last_end = end
            await asyncio.sleep(self.poll_interval)

    def _end(self) -> int:
        pair = Mm2OffsetHook(self.mm2_conn_id).get_conn()
        (watermarks,) = pair.syncs_cluster.watermarks(
            [TopicPartition(pair.syncs_topic, 0)]
        ).values()
        return watermarks.high
