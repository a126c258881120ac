"""The pairs of clusters that an app serves; each route depends on ``Served``."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Annotated, Protocol

from fastapi import Depends, Query, Request

from airflow_mm2_offsets.api.breaker import Breaker
from airflow_mm2_offsets.api.cache import SyncCache, read_on
from airflow_mm2_offsets.api.models import MAX_NAME
from airflow_mm2_offsets.api.problems import Problem, problem_of
from airflow_mm2_offsets.archive import SyncArchive
from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.core import SyncIndex
from airflow_mm2_offsets.errors import ConfigurationError

CLUSTER_SECONDS = 10.0
"""The time until a broker must have answered: a client of the API waits meanwhile."""
THROTTLE_RATIO = 1.0
"""While reading the topic, the reader sleeps as long as it works, so that requests keep being
served. Measured with a million syncs: the read takes twice as long, and three times as many
requests are served; see ``Throttle``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedPair:
    """A pair of clusters, and its syncs in memory."""

    pair: ClusterPair
    cache: SyncCache
    source: Breaker
    """Reads the source's watermarks, for batches."""
    archive: SyncArchive | None = None
    """Holds syncs that the topic no longer has, for plans."""

    @classmethod
    def of(
        cls, pair: ClusterPair, *, interval: float, archive: SyncArchive | None = None
    ) -> "ServedPair":
        """Return a pair whose syncs are refreshed at an interval; nothing is read yet.

        Args:
            pair: The clusters; reads of them are throttled.
            interval: Seconds between the end of a refresh and the next, once its cache is started.
            archive: See ``archive``.
        """
        pair = pair.throttled(THROTTLE_RATIO)
        cache = SyncCache(partial(read_on, pair), interval=interval)
        return cls(pair=pair, cache=cache, source=Breaker(pair.source), archive=archive)

    @property
    def index(self) -> SyncIndex:
        """The syncs of the last successful refresh.

        Raises:
            Problem: No refresh has succeeded yet, or the pair has no syncs.
        """
        self.require_syncs()
        state = self.cache.state
        if state.syncs is None:
            reason = f": {state.error}" if state.error else "; the first read is under way"
            raise Problem(
                HTTPStatus.SERVICE_UNAVAILABLE,
                f"the offset syncs have not been read yet{reason}",
            )
        return state.syncs.index

    def latest(self) -> SyncIndex:
        """Return the syncs that the topic holds now; see ``SyncCache.latest``.

        Raises:
            Problem: The pair has no syncs.
        """
        self.require_syncs()
        return self.cache.latest().index

    def require_syncs(self) -> None:
        """Raise unless the pair has offset syncs.

        Raises:
            Problem: Its copies keep offsets.
        """
        try:
            self.pair.require_syncs()
        except ConfigurationError as error:
            raise problem_of(error, HTTPStatus.CONFLICT) from None


class PairProvider(Protocol):
    """Finds pairs: one in the standalone server, one for each connection inside Airflow."""

    async def get(self, conn_id: str | None) -> ServedPair:
        """Return the pair of a connection; None: the only one, or the default.

        Each request calls it: do slow work once, and not on the event loop.

        Raises:
            Problem: There is no such pair.
        """

    def served(self) -> Mapping[str, ServedPair]:
        """Return the pairs that are in memory now, by a name for metrics."""


class OnePair:
    """The only pair of the standalone server."""

    def __init__(self, served: ServedPair) -> None:
        """Keep the pair."""
        self._served = served

    async def get(self, conn_id: str | None) -> ServedPair:
        """Return the pair; a request that names a connection has none."""
        if conn_id is not None:
            raise Problem(
                HTTPStatus.NOT_FOUND,
                f"this server has one pair of clusters and no connection {conn_id!r}; leave "
                f"conn_id out",
                field="query.conn_id",
            )
        return self._served

    def served(self) -> Mapping[str, ServedPair]:
        """Return the pair under a name that no connection has."""
        return {"": self._served}


async def _resolve(
    request: Request,
    conn_id: Annotated[
        str | None,
        Query(
            min_length=1,
            max_length=MAX_NAME,
            description="The id of a connection of type mm2; only inside Airflow.",
        ),
    ] = None,
) -> ServedPair:
    provider: PairProvider = request.app.state.pairs
    return await provider.get(conn_id)


Served = Annotated[ServedPair, Depends(_resolve)]
"""The pair that a request is about."""
