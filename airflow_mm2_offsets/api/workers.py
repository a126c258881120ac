"""Bounds how many requests work at once; each route that takes long runs in one of these groups.

Without bounds, requests that wait for a cluster would take all threads, and the answers that need
only memory would wait behind them.
"""

import asyncio
from collections.abc import Callable, Mapping
from enum import StrEnum
from http import HTTPStatus
from typing import Annotated, TypeVar

from fastapi import Depends, Request
from starlette.concurrency import run_in_threadpool

from airflow_mm2_offsets.api.problems import Problem

Result = TypeVar("Result")

PATIENCE_SECONDS = 10.0
"""How long a request waits for its turn before it is sent away."""


class Kind(StrEnum):
    """What a request works on."""

    MEMORY = "batches"
    CLUSTERS = "reads of a cluster"
    PLANS = "plans"
    JOURNALS = "reads of journals"


LIMITS: Mapping[Kind, int] = {Kind.MEMORY: 4, Kind.CLUSTERS: 16, Kind.PLANS: 4}
"""The requests of each kind that work at once; together fewer than Starlette's 40 threads."""


class Workers:
    """Runs a limited number of functions at once, each in a thread."""

    def __init__(self, kind: Kind, limit: int, *, patience: float = PATIENCE_SECONDS) -> None:
        """Keep the limits; the patience is in seconds."""
        self._kind = kind
        self._limit = limit
        self._patience = patience
        self._turns = asyncio.Semaphore(limit)

    async def run(self, function: Callable[[], Result]) -> Result:
        """Return what the function returns.

        Raises:
            Problem: Others took all turns for too long.
        """
        try:
            async with asyncio.timeout(self._patience):
                await self._turns.acquire()
        except TimeoutError:
            raise Problem(
                HTTPStatus.SERVICE_UNAVAILABLE,
                f"busy: {self._limit} {self._kind} are under way, and none of them ended within "
                f"{self._patience:g} s; try again later",
            ) from None
        try:
            return await run_in_threadpool(function)
        finally:
            self._turns.release()


def make_workers(limits: Mapping[Kind, int] = LIMITS) -> dict[Kind, Workers]:
    """Return the workers of an app."""
    return {kind: Workers(kind, limit) for kind, limit in limits.items()}


def _group(kind: Kind) -> Callable[[Request], Workers]:
    def find(request: Request) -> Workers:
        group: Workers = request.app.state.workers[kind]
        return group

    return find


MemoryWorkers = Annotated[Workers, Depends(_group(Kind.MEMORY))]
ClusterWorkers = Annotated[Workers, Depends(_group(Kind.CLUSTERS))]
PlanWorkers = Annotated[Workers, Depends(_group(Kind.PLANS))]
JournalWorkers = Annotated[Workers, Depends(_group(Kind.JOURNALS))]
