"""The walk through a pair of clusters."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.connect.client import ConnectClient
from airflow_mm2_offsets.connection_check import check_connection
from airflow_mm2_offsets.core import ReplicationPolicy
from airflow_mm2_offsets.errors import ClusterUnreachableError, ConnectError
from airflow_mm2_offsets.health import PartHealth
from airflow_mm2_offsets.kafka.cluster import KafkaCluster
from tests.support.pairs import STOPPED_CONNECT, Pair, connect


@pytest.fixture
def clusters() -> Pair:
    return Pair()


def steps(pair: ClusterPair) -> dict[str, PartHealth]:
    return {step.part: step for step in check_connection(pair)}


def test_what_answers_says_who_it_is(clusters: Pair) -> None:
    """A cluster names its id and brokers, the topic its syncs; the topics can be read."""
    clusters.write("orders", range(10))
    clusters.copy("orders", range(10))
    clusters.sync("orders", (0, 0), (4, 9))
    source, target, syncs, reads_source, reads_target = check_connection(clusters.pair)
    assert source.answer.startswith(f"cluster {clusters.source.cluster_id}")
    assert str(clusters.pair.target.config["bootstrap.servers"]) in target.answer
    assert syncs.part == f"syncs topic {clusters.pair.syncs_topic} on target"
    assert syncs.answer == "syncs: 2, partitions: 1"
    assert syncs.to_json() == {
        "part": syncs.part,
        "ok": True,
        "answer": syncs.answer,
        "error": None,
    }
    assert (reads_source.part, reads_target.part) == ("source: rights", "target: rights")
    assert reads_source.answer == "may read 1 of 1 topics that have syncs"


def test_what_does_not_answer_says_why(clusters: Pair) -> None:
    """An empty pair of clusters has no syncs; a Connect that is down is told apart."""
    down = ConnectClient(url=STOPPED_CONNECT.url, timeout=1)
    source, target, syncs, worker = check_connection(replace(clusters.pair, connect=down))
    assert (source.error, target.error) == (None, None)
    assert syncs.to_json()["ok"] is False
    assert "offset-syncs topic" in str(syncs.error)
    assert isinstance(worker.error, ClusterUnreachableError)


def test_connect_must_run_the_connector_of_the_pair(clusters: Pair) -> None:
    """A Connect that copies between other aliases is of no use to the pair."""
    asked = replace(clusters.pair, connect=connect())
    found = steps(asked)
    assert found["Connect"].answer == "version 4.1.0, connector mirror"
    assert found["Connect: settings"].error is None
    worker = steps(replace(asked, naming=replace(asked.naming, target_alias="z")))["Connect"]
    assert isinstance(worker.error, ConnectError)


def test_a_policy_that_is_not_the_connector_s_is_found(clusters: Pair) -> None:
    """Both values are named: a wrong policy names another topic, which may well exist."""
    naming = replace(clusters.pair.naming, policy=ReplicationPolicy.DEFAULT)
    *_, settings = check_connection(replace(clusters.pair, connect=connect(), naming=naming))
    assert settings.part == "Connect: settings"
    assert "IdentityReplicationPolicy" in str(settings.error)
    assert "'default'" in str(settings.error)


def test_one_cluster_given_twice_is_found(clusters: Pair) -> None:
    """Both connections answer, so only the ids tell."""
    both = replace(clusters.pair, target=replace(clusters.pair.source, name="target"))
    twice = steps(both)["source and target"]
    assert str(clusters.source.cluster_id) in str(twice.error)
    assert "bootstrap.servers" in str(twice.error)


def test_a_right_that_is_missing_is_named(clusters: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """Five topics at most; it is no error while others can be read, which may be the job's."""
    for number in range(7):
        clusters.sync(f"orders-{number}", (0, 0))

    readable = {"orders-6"}

    def unreadable(cluster: KafkaCluster, names: Iterable[str]) -> frozenset[str]:
        is_target = cluster.name == clusters.pair.target.name
        return frozenset(names) - readable if is_target else frozenset()

    monkeypatch.setattr(KafkaCluster, "unreadable", unreadable)
    some = steps(clusters.pair)
    assert some["source: rights"].error is some["target: rights"].error is None
    assert "may read 1 of 7 topics" in some["target: rights"].answer
    readable.clear()
    message = str(steps(clusters.pair)["target: rights"].error)
    assert "may read 0 of 7 topics that have syncs, not orders-0, orders-1, orders-2" in message
    assert "orders-4 and 2 more: grant READ on those" in message
