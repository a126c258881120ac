"""Questions to a cluster, and what is said when it does not answer."""

import re
import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from airflow_mm2_offsets.core import TopicPartition, Watermarks
from airflow_mm2_offsets.errors import (
    ClusterSecurityError,
    ClusterUnreachableError,
    ConfigurationError,
    TopicNotFoundError,
)
from airflow_mm2_offsets.kafka.cluster import KafkaCluster
from airflow_mm2_offsets.kafka.drain import drain
from tests.support.mock_broker import MockBroker, free_address, rejecting_broker, silent_broker

ORDERS = TopicPartition("orders", 0)
SLACK = 15
"""A busy machine is late; without a deadline librdkafka waits for a minute."""
QUESTIONS: list[Callable[[KafkaCluster], object]] = [
    lambda cluster: cluster.describe(),
    lambda cluster: cluster.topic_names(),
    lambda cluster: cluster.topics(["orders"]),
    lambda cluster: cluster.watermarks([ORDERS]),
    lambda cluster: list(drain(cluster, {ORDERS: 0})),
]


def _cluster(servers: str, **config: str) -> KafkaCluster:
    return KafkaCluster(name="target", config={"bootstrap.servers": servers, **config}, timeout=0.5)


def test_a_cluster_has_an_id_and_brokers(broker: MockBroker) -> None:
    """The cluster's id and the brokers' advertised addresses are returned."""
    info = broker.cluster().describe()
    assert info.cluster_id is not None
    assert info.cluster_id.startswith("mockCluster")
    assert info.brokers == (broker.servers,)


def test_topic_names_are_listed(broker: MockBroker) -> None:
    """All topics are listed, empty ones too."""
    broker.create("empty")
    broker.write("orders", [(b"k", b"v")])
    assert broker.cluster().topic_names() == {"empty", "orders"}


def test_watermarks_come_in_bulk(broker: MockBroker) -> None:
    """One call returns the watermarks of partitions of several topics."""
    broker.write("orders", [(b"k", b"v")] * 5, partition=2)
    broker.create("empty")
    watermarks = {
        TopicPartition("empty", 0): Watermarks(low=0, high=0),
        TopicPartition("orders", 1): Watermarks(low=0, high=0),
        TopicPartition("orders", 2): Watermarks(low=0, high=5),
    }
    assert broker.cluster().watermarks(watermarks) == watermarks


@pytest.mark.parametrize(
    "missing", [TopicPartition("nowhere", 0), TopicPartition("orders", 9)], ids=str
)
def test_watermarks_of_what_does_not_exist(broker: MockBroker, missing: TopicPartition) -> None:
    """A topic or partition that does not exist is named, even among others that do."""
    broker.write("orders", [(b"k", b"v")])
    with pytest.raises(TopicNotFoundError, match=f"{re.escape(str(missing))}: does not exist"):
        broker.cluster().watermarks([ORDERS, missing])


def test_a_request_creates_no_topic(broker: MockBroker) -> None:
    """A request about a missing topic does not create it."""
    with pytest.raises(TopicNotFoundError):
        broker.cluster().watermarks([TopicPartition("nowhere", 0)])
    assert broker.cluster().topic_names() == frozenset()


def test_an_empty_request_is_not_sent() -> None:
    """An empty request succeeds even if the cluster can't be reached."""
    cluster = _cluster(free_address())
    assert cluster.watermarks([]) == {}
    assert cluster.topics([]) == {}


@pytest.mark.parametrize("ask", QUESTIONS)
def test_a_closed_port_is_reported_in_time(
    ask: Callable[[KafkaCluster], object], capfd: pytest.CaptureFixture[str]
) -> None:
    """The error names cluster, servers, seconds and librdkafka's reason; stderr stays empty."""
    servers = free_address()
    started = time.monotonic()
    with pytest.raises(
        ClusterUnreachableError,
        match=rf"^target \(bootstrap\.servers={servers}\): did not answer, tried for \d+\.\d s: "
        ".*Connection refused.*; check that the brokers run",
    ):
        ask(_cluster(servers))
    assert 0.5 <= time.monotonic() - started < SLACK
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("ask", QUESTIONS)
def test_a_silent_server_is_given_up(ask: Callable[[KafkaCluster], object]) -> None:
    """A server that accepts and never answers is given up after the timeout."""
    started = time.monotonic()
    with silent_broker() as servers, pytest.raises(ClusterUnreachableError, match=r"for \d+\.\d s"):
        ask(_cluster(servers))
    assert 0.5 <= time.monotonic() - started < SLACK


@pytest.mark.parametrize("ask", QUESTIONS)
def test_a_wrong_password_is_reported_as_such(ask: Callable[[KafkaCluster], object]) -> None:
    """Rejected authentication is reported at once, without the password."""
    login = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "spark",
        "sasl.password": "hunter2",
    }
    started = time.monotonic()
    with rejecting_broker() as servers, pytest.raises(ClusterSecurityError) as caught:
        ask(replace(_cluster(servers, **login), timeout=60))
    assert "): authentication failed, tried for " in str(caught.value)
    assert "timed out" not in str(caught.value).lower()
    assert "hunter2" not in str(caught.value)
    assert time.monotonic() - started < SLACK


def test_secrets_are_not_in_the_repr() -> None:
    """The repr of a cluster can be logged."""
    assert "hunter2" not in repr(_cluster("a:9092", **{"sasl.password": "hunter2"}))


def test_a_setting_that_librdkafka_does_not_know_is_named() -> None:
    """A misspelt property is a configuration error that names cluster and property."""
    cluster = _cluster(free_address(), **{"sasl.passwrod": "x"})
    with pytest.raises(ConfigurationError, match=r"^target: .*sasl\.passwrod"):
        cluster.describe()


def test_a_cluster_without_servers_cannot_be_made() -> None:
    """A cluster without servers is refused before any request."""
    with pytest.raises(ConfigurationError, match="target: bootstrap"):
        KafkaCluster(name="target", config={})


def test_a_timeout_of_nothing_is_refused() -> None:
    """A timeout must leave time for an answer."""
    with pytest.raises(ConfigurationError, match=r"target: timeout is 0\.0 s"):
        KafkaCluster(name="target", config={"bootstrap.servers": "a:1"}, timeout=0.0)
