"""Brokers on loopback sockets, for tests of the real client: librdkafka's mock, and bad ones."""

import socket
import struct
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

from confluent_kafka import Producer

from airflow_mm2_offsets.kafka.cluster import KafkaCluster

_API_VERSIONS, _SASL_HANDSHAKE, _SASL_AUTHENTICATE = 18, 17, 36
_UNSUPPORTED_VERSION, _SASL_AUTHENTICATION_FAILED = 35, 58


class MockBroker:
    """librdkafka's built-in broker; a topic that is written to has four partitions."""

    def __init__(self) -> None:
        self._producer: Producer | None = Producer(
            {"bootstrap.servers": "ignored", "test.mock.num.brokers": 1, "log_level": 0}
        )
        brokers = self._producer.list_topics(timeout=5).brokers.values()
        self.servers = ",".join(f"{broker.host}:{broker.port}" for broker in brokers)

    def create(self, topic: str) -> None:
        assert self._producer is not None
        self._producer.list_topics(topic, timeout=5)

    def write(
        self, topic: str, records: Iterable[tuple[bytes | None, bytes | None]], partition: int = 0
    ) -> None:
        """Write records; equal ones have equal timestamps, as a record and its copy have."""
        assert self._producer is not None
        for key, value in records:
            self._producer.produce(
                topic, key=key, value=value, partition=partition, timestamp=1_800_000_000_000
            )
        assert self._producer.flush(10) == 0

    def stop(self) -> None:
        self._producer = None

    def cluster(self, timeout: float = 5.0) -> KafkaCluster:
        return KafkaCluster(
            name="source", config={"bootstrap.servers": self.servers}, timeout=timeout
        )


def free_address() -> str:
    """Return a loopback address without a listener."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"127.0.0.1:{server.getsockname()[1]}"


@contextmanager
def silent_broker() -> Iterator[str]:
    """Yield the address of a server that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


@contextmanager
def rejecting_broker() -> Iterator[str]:
    """Yield the address of a broker that wants SASL/PLAIN and accepts no password."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=_accept, args=(server,), daemon=True).start()
        yield f"127.0.0.1:{server.getsockname()[1]}"


def _accept(server: socket.socket) -> None:
    while True:
        try:
            connection, _ = server.accept()
        except OSError:
            return
        threading.Thread(target=_reject, args=(connection,), daemon=True).start()


def _reject(connection: socket.socket) -> None:
    # A client that has read enough may reset the connection instead of closing it.
    with suppress(ConnectionError), connection, connection.makefile("rb") as requests:
        while header := requests.read(4):
            (size,) = struct.unpack(">i", header)
            response = _answer(requests, size)
            connection.sendall(struct.pack(">i", len(response)) + response)


def _answer(requests: BinaryIO, size: int) -> bytes:
    api, version, correlation = struct.unpack(">hhi", requests.read(size)[:8])
    if api == _API_VERSIONS:
        error = _UNSUPPORTED_VERSION if version > 0 else 0
        apis = ((_SASL_HANDSHAKE, 0, 1), (_API_VERSIONS, 0, 0), (_SASL_AUTHENTICATE, 0, 0))
        body = struct.pack(">hi", error, len(apis)) + b"".join(
            struct.pack(">hhh", *entry) for entry in apis
        )
    elif api == _SASL_HANDSHAKE:
        body = struct.pack(">hih5s", 0, 1, 5, b"PLAIN")
    else:
        text = b"Authentication failed: Invalid username or password"
        body = struct.pack(">hh", _SASL_AUTHENTICATION_FAILED, len(text)) + text + bytes(4)
    return struct.pack(">i", correlation) + body
