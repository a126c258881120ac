"""The way to a cluster ends in time."""

import socket
from threading import Event
from typing import Any

import pytest

from airflow_mm2_offsets.errors import ClusterUnreachableError
from airflow_mm2_offsets.kafka import network_path


def test_a_name_server_that_is_silent_does_not_hold_the_walk(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """``getaddrinfo`` takes no timeout."""
    asked, end = Event(), Event()

    def wait(*_: Any, **__: Any) -> list[Any]:
        asked.set()
        end.wait(30)
        return []

    monkeypatch.setattr(network_path, "_GRACE", 0)
    monkeypatch.setattr(socket, "getaddrinfo", wait)
    walk = network_path.walk("source", {"bootstrap.servers": "east.invalid:9092"}, 0.1)
    try:
        with pytest.raises(ClusterUnreachableError, match=r"DNS: east.* no answer in 0.1 s"):
            next(walk)
        assert asked.is_set()
        assert not end.is_set()
    finally:
        end.set()
