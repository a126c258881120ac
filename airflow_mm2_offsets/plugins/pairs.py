"""A pair of clusters for each connection of type ``mm2``."""

import asyncio
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from http import HTTPStatus

from airflow.providers.common.compat.sdk import conf

from airflow_mm2_offsets.api.pairs import CLUSTER_SECONDS, ServedPair
from airflow_mm2_offsets.api.problems import problem_of
from airflow_mm2_offsets.errors import ConfigurationError, Mm2OffsetsError
from airflow_mm2_offsets.hooks.mm2 import Mm2OffsetHook
from airflow_mm2_offsets.service.pair import ClusterPair

DEFAULT = Mm2OffsetHook.default_conn_name
LOOK_AGAIN_SECONDS = 30.0
"""How long a connection that was changed may go unnoticed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kept:
    pair: ClusterPair
    """What the connection says."""
    served: ServedPair
    looked_at: float


class ConnectionPairs:
    """The pairs that were asked for since the server started, each with an index in memory."""

    def __init__(self) -> None:
        """Look at no connection yet."""
        self._interval = conf.getfloat("mm2_offsets", "refresh_seconds", fallback=30.0)
        self._kept: dict[str, _Kept] = {}
        self._looking: dict[str, asyncio.Lock] = {}

    async def get(self, conn_id: str | None) -> ServedPair:
        """Return the pair of a connection; the first call waits until its syncs were read.

        Raises:
            Problem: The connection does not exist, or is none of type ``mm2`` that can be used.
        """
        name = conn_id or DEFAULT
        kept = self._kept.get(name)
        if kept is None or time.monotonic() - kept.looked_at > LOOK_AGAIN_SECONDS:
            async with self._looking.setdefault(name, asyncio.Lock()):
                if self._kept.get(name) is kept:  # nobody else has looked while we waited
                    kept = await asyncio.to_thread(self._look, name, kept)
                    self._kept[name] = kept
                kept = self._kept[name]
        return kept.served

    def served(self) -> Mapping[str, ServedPair]:
        """Return the pairs in memory by the ids of their connections."""
        return {name: each.served for name, each in list(self._kept.items())}

    def _look(self, name: str, kept: _Kept | None) -> _Kept:
        """Read the connection; where it says what it said, the index goes on."""
        try:
            pair = Mm2OffsetHook(name, timeout=CLUSTER_SECONDS).get_conn()
        except ConfigurationError as error:
            raise problem_of(error, HTTPStatus.NOT_FOUND, field="query.conn_id") from error
        if kept is not None and kept.pair == pair:
            return replace(kept, looked_at=time.monotonic())
        if kept is not None:
            kept.served.cache.stop()
        served = ServedPair.of(pair, interval=self._interval)
        with suppress(Mm2OffsetsError):  # the cache keeps the error, and every answer says it
            served.cache.refresh()
        served.cache.start()
        return _Kept(pair=pair, served=served, looked_at=time.monotonic())
