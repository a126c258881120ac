"""A pair of clusters for each connection of type ``mm2``; the REST API in Airflow serves them."""

import asyncio
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from http import HTTPStatus

from airflow.providers.common.compat.sdk import conf

from airflow_mm2_offsets.api.pairs import CLUSTER_SECONDS, ServedPair
from airflow_mm2_offsets.api.problems import Problem, problem_of
from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.errors import ConfigurationError
from airflow_mm2_offsets.hooks.mm2 import Mm2OffsetHook

DEFAULT = Mm2OffsetHook.default_conn_name
REREAD_SECONDS = 30.0
"""A connection is read again after so many seconds, to notice changes."""
UNUSED_SECONDS = 3600.0
"""A pair that no request has named for so many seconds leaves the memory at the next request."""
FIRST_READS = 16
"""The connections whose syncs are read for the first time at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _LoadedPair:
    pair: ClusterPair
    """As the connection names it."""
    served: ServedPair
    read_at: float


class ConnectionPairs:
    """The pairs that were requested since the server started, each with its syncs in memory."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Read no connection yet.

        Args:
            clock: Returns seconds.
        """
        self._clock = clock
        self._interval = conf.getfloat("mm2_offsets", "refresh_seconds", fallback=30.0)
        self._loaded: dict[str, _LoadedPair] = {}
        self._used_at: dict[str, float] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        # Threads of their own: pairs whose clusters are silent must not keep others waiting.
        self._first_reads = ThreadPoolExecutor(FIRST_READS, thread_name_prefix="mm2-first-read")

    async def get(self, conn_id: str | None) -> ServedPair:
        """Return the pair of a connection.

        The first call, also after a change of the connection, waits for one try to read its syncs.

        Raises:
            Problem: The connection does not exist, or is not a usable one of type ``mm2``.
        """
        name, now = conn_id or DEFAULT, self._clock()
        self._forget_unused(now)
        self._used_at[name] = now
        while True:
            loaded = self._loaded.get(name)
            if loaded is not None and now - loaded.read_at <= REREAD_SECONDS:
                return loaded.served
            lock = self._locks.setdefault(name, asyncio.Lock())
            async with lock:
                # Another request may have read the connection, or forgotten it, while we waited.
                if self._locks.get(name) is lock and self._loaded.get(name) is loaded:
                    self._loaded[name] = await self._reread(name, loaded)

    def served(self) -> Mapping[str, ServedPair]:
        """Return the pairs in memory by the ids of their connections."""
        return {name: loaded.served for name, loaded in list(self._loaded.items())}

    def _forget_unused(self, now: float) -> None:
        for name, used_at in list(self._used_at.items()):
            if now - used_at > UNUSED_SECONDS:
                self._forget(name)

    def _forget(self, name: str) -> None:
        """Stop the refreshes of a pair, and free its syncs."""
        self._used_at.pop(name, None)
        self._locks.pop(name, None)
        if loaded := self._loaded.pop(name, None):
            loaded.served.cache.stop()

    async def _reread(self, name: str, loaded: _LoadedPair | None) -> _LoadedPair:
        """Read the connection; keep the syncs in memory if it did not change."""
        try:
            pair = await asyncio.to_thread(_read_connection, name)
        except Problem:
            self._forget(name)  # it was deleted, or is no usable connection any more
            raise
        if loaded is not None and loaded.pair == pair:
            return replace(loaded, read_at=self._clock())
        served = ServedPair.of(pair, interval=self._interval)
        with suppress(Exception):  # the cache keeps the error, and every answer shows it
            await asyncio.get_running_loop().run_in_executor(
                self._first_reads, served.cache.refresh
            )
        served.cache.start()
        if loaded is not None:
            loaded.served.cache.stop()
        return _LoadedPair(pair=pair, served=served, read_at=self._clock())


def _read_connection(name: str) -> ClusterPair:
    try:
        return Mm2OffsetHook(name, timeout=CLUSTER_SECONDS).get_conn()
    except ConfigurationError as error:
        raise problem_of(error, HTTPStatus.NOT_FOUND, field="query.conn_id") from error
