"""Clients of a cluster: made, lent from question to question, and closed."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any

from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient

from airflow_mm2_offsets.errors import ClusterRefusedError, TopicNotFoundError
from airflow_mm2_offsets.kafka.config import admin_config, consumer_config
from airflow_mm2_offsets.kafka.session import ClientT, Session

_KEPT = 4
"""Clients of a cluster that wait for a question."""
_IDLE_SECONDS = 60.0
"""How long: meanwhile brokers restart, firewalls forget, tokens expire."""


class Clients:
    """The clients of a cluster that only ask: who has answered is asked again.

    To connect takes 50 ms, most of which librdkafka waits before it tries; and a client for each
    question, each with threads of its own, scatters what it needs over the process's memory.
    """

    def __init__(self) -> None:
        """Have none yet."""
        self._idle: dict[str, list[tuple[float, Session[Any]]]] = {}

    @contextmanager
    def lend(self, kind: str, make: Callable[[], Session[ClientT]]) -> Iterator[Session[ClientT]]:
        """Yield a session with a client that nobody else uses meanwhile.

        Args:
            kind: Sessions of a kind can stand in for each other.
            make: Starts one.
        """
        idle = self._idle.setdefault(kind, [])
        session = _take(idle) or make()
        answered = False
        try:
            yield session
            answered = True
        except (TopicNotFoundError, ClusterRefusedError):
            answered = True
            raise
        finally:
            # Of one that did not answer, nobody knows when it would try to connect again.
            if answered and len(idle) < _KEPT:
                idle.append((time.monotonic(), session))


def _take(idle: list[tuple[float, Session[Any]]]) -> Session[Any] | None:
    try:
        since, session = idle.pop()
    except IndexError:
        return None
    if time.monotonic() - since > _IDLE_SECONDS:
        idle.clear()  # They waited even longer.
        return None
    session.touch()
    return session


def make_admin(cluster: str, extra: Mapping[str, object], timeout: float) -> Session[AdminClient]:
    """Start a session with an admin client; see ``Session`` for arguments and errors."""
    return Session(cluster, timeout, admin_config(cluster, extra), AdminClient)


def make_consumer(
    cluster: str, extra: Mapping[str, object], timeout: float, isolation: str, *, prefetch: int = 1
) -> Session[Consumer]:
    """Start a session with a read-only consumer; see ``consumer_config``."""
    config = consumer_config(cluster, extra, isolation, prefetch=prefetch)
    return Session(cluster, timeout, config, Consumer)


@contextmanager
def open_consumer(
    cluster: str, extra: Mapping[str, object], timeout: float, isolation: str, *, prefetch: int
) -> Iterator[Session[Consumer]]:
    """Start a session with a read-only consumer, and close it; see ``consumer_config``."""
    session = make_consumer(cluster, extra, timeout, isolation, prefetch=prefetch)
    with closing(session.client):
        yield session
