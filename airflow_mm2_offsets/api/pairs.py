"""The pairs of clusters that an app answers for."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Annotated, Protocol

from fastapi import Depends, Query, Request

from airflow_mm2_offsets.api.models import MAX_NAME
from airflow_mm2_offsets.api.problems import Problem
from airflow_mm2_offsets.archive import SyncArchive
from airflow_mm2_offsets.core import SyncIndex
from airflow_mm2_offsets.service.cache import SyncCache, read_on
from airflow_mm2_offsets.service.pair import ClusterPair

CLUSTER_SECONDS = 10.0
"""Until a broker must have answered: a client waits for it."""
THROTTLE_RATIO = 1.0
"""Who reads many records rests as long as it works: answers go on meanwhile. Measured with a
million syncs: they take twice as long, and answers come three times as often; see ``Throttle``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedPair:
    """A pair of clusters, and what is kept of it in memory."""

    pair: ClusterPair
    cache: SyncCache
    archive: SyncArchive | None = None
    """Where plans find syncs that the topic has no more."""

    @classmethod
    def of(
        cls, pair: ClusterPair, *, interval: float, archive: SyncArchive | None = None
    ) -> "ServedPair":
        """Return a pair with an index that is refreshed so often; nothing is read yet.

        Args:
            pair: The clusters; they are read with rests.
            interval: Seconds between the end of a refresh and the next, once its cache is started.
            archive: See ``archive``.
        """
        pair = pair.throttled(THROTTLE_RATIO)
        cache = SyncCache(partial(read_on, pair), interval=interval)
        return cls(pair=pair, cache=cache, archive=archive)

    @property
    def index(self) -> SyncIndex:
        """The syncs of the last refresh that succeeded.

        Raises:
            Problem: There was none yet.
        """
        state = self.cache.state
        if state.syncs is None:
            reason = f": {state.error}" if state.error else "; it is under way"
            raise Problem(
                HTTPStatus.SERVICE_UNAVAILABLE,
                f"the offset syncs have not been read yet{reason}",
            )
        return state.syncs.index


class PairProvider(Protocol):
    """Knows the pairs: one in a server alone, one for each connection inside Airflow."""

    async def get(self, conn_id: str | None) -> ServedPair:
        """Return the pair of a connection; None: the only one, or the default.

        It is called for every request: what takes time must happen once, and off the event loop.

        Raises:
            Problem: There is none.
        """

    def served(self) -> Mapping[str, ServedPair]:
        """Return the pairs that are in memory now, by a name for metrics."""


class OnePair:
    """The only pair of a server alone."""

    def __init__(self, served: ServedPair) -> None:
        """Keep it."""
        self._served = served

    async def get(self, conn_id: str | None) -> ServedPair:
        """Return it.

        Raises:
            Problem: A connection is named: there are none here.
        """
        if conn_id is not None:
            raise Problem(
                HTTPStatus.NOT_FOUND,
                f"this server has one pair of clusters and no connection {conn_id!r}; leave "
                f"conn_id out",
                field="query.conn_id",
            )
        return self._served

    def served(self) -> Mapping[str, ServedPair]:
        """Return it under a name that no connection has."""
        return {"": self._served}


async def _resolve(
    request: Request,
    conn_id: Annotated[
        str | None,
        Query(
            min_length=1,
            max_length=MAX_NAME,
            description="Inside Airflow: the id of a connection of type mm2. Elsewhere: none.",
        ),
    ] = None,
) -> ServedPair:
    provider: PairProvider = request.app.state.pairs
    return await provider.get(conn_id)


Served = Annotated[ServedPair, Depends(_resolve)]
"""The pair that a request is about."""
