"""Starts the clients of a cluster, and keeps idle ones; ``cluster`` and ``drain`` use them."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient

from airflow_mm2_offsets.errors import ClusterRefusedError, TopicNotFoundError
from airflow_mm2_offsets.kafka.config import admin_config, consumer_config
from airflow_mm2_offsets.kafka.network_path import StepResult, walk
from airflow_mm2_offsets.kafka.session import ClientSession, ClientT

_MAX_IDLE = 4
"""Idle clients of a kind that the pool keeps."""
_IDLE_SECONDS = 60.0
"""How long it keeps them: brokers restart, firewalls drop connections, tokens expire."""


class ClientPool:
    """The idle clients of one cluster.

    To connect takes 50 ms, most of which librdkafka waits before it tries. Each client has threads,
    and scatters its data over the process's memory.
    """

    def __init__(self) -> None:
        """Start without a client."""
        self._idle: dict[str, list[tuple[float, ClientSession[Any]]]] = {}

    @contextmanager
    def acquire(
        self, kind: str, make: Callable[[], ClientSession[ClientT]]
    ) -> Iterator[ClientSession[ClientT]]:
        """Yield a session that no other thread uses until the block ends.

        Args:
            kind: Any session of a kind can serve a request for that kind.
            make: Starts a new session.
        """
        idle = self._idle.setdefault(kind, [])
        session = _pop(idle) or make()
        got_answer = False
        try:
            yield session
            got_answer = True
        except (TopicNotFoundError, ClusterRefusedError):
            got_answer = True
            raise
        finally:
            # A client that got no answer may wait long before it tries to connect again.
            if got_answer and len(idle) < _MAX_IDLE:
                idle.append((time.monotonic(), session))


def _pop(idle: list[tuple[float, ClientSession[Any]]]) -> ClientSession[Any] | None:
    try:
        idle_since, session = idle.pop()
    except IndexError:
        return None
    if time.monotonic() - idle_since > _IDLE_SECONDS:
        idle.clear()  # The others were idle even longer.
        return None
    session.reset_deadline()
    return session


def make_admin(
    cluster: str, extra: Mapping[str, object], timeout: float
) -> ClientSession[AdminClient]:
    """Start a session with an admin client; see ``ClientSession`` for arguments and errors."""
    return ClientSession(cluster, timeout, admin_config(cluster, extra), AdminClient)


def make_consumer(
    cluster: str, extra: Mapping[str, object], timeout: float, isolation: str, *, prefetch: int = 1
) -> ClientSession[Consumer]:
    """Start a session with a read-only consumer; see ``consumer_config``."""
    config = consumer_config(cluster, extra, isolation, prefetch=prefetch)
    return ClientSession(cluster, timeout, config, Consumer)


def walk_to_brokers(
    cluster: str, extra: Mapping[str, object], timeout: float
) -> Iterator[StepResult]:
    """Yield the steps of the way to the bootstrap servers, without a client; see ``walk``."""
    return walk(cluster, admin_config(cluster, extra), timeout)
