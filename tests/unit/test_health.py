"""Which parts of a pair answer."""

from dataclasses import replace

import pytest

from airflow_mm2_offsets.connect.client import ConnectClient
from airflow_mm2_offsets.errors import ClusterUnreachableError, ConfigurationError, ConnectError
from airflow_mm2_offsets.health import check_health
from airflow_mm2_offsets.planning.ids import read_ids
from tests.support.pairs import STOPPED_CONNECT, Pair, connect


@pytest.fixture
def clusters() -> Pair:
    return Pair()


def test_what_answers_says_who_it_is(clusters: Pair) -> None:
    """A cluster names its id and brokers, the topic its syncs."""
    clusters.sync("orders", (0, 0), (4, 9))
    source, target, syncs = check_health(clusters.pair)
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


def test_one_cluster_given_twice_is_told(clusters: Pair) -> None:
    """Its plan would be right for no failover; a plan refuses it too."""
    clusters.sync("orders", (0, 0))
    pair = replace(clusters.pair, source=replace(clusters.pair.target, name="source"))
    *_, last = check_health(pair)
    assert "source and target are the same cluster" in str(last.error)
    with pytest.raises(ConfigurationError, match="are the same cluster"):
        read_ids(pair, [], ask_source=True)
    assert read_ids(pair, [], ask_source=False).target.cluster_id == clusters.target.cluster_id


def test_what_does_not_answer_says_why(clusters: Pair) -> None:
    """An empty pair of clusters has no syncs; a Connect that is down is told apart."""
    down = ConnectClient(url=STOPPED_CONNECT.url, timeout=1)
    source, target, syncs, worker = check_health(replace(clusters.pair, connect=down))
    assert (source.error, target.error) == (None, None)
    assert syncs.to_json()["ok"] is False
    assert "offset-syncs topic" in str(syncs.error)
    assert isinstance(worker.error, ClusterUnreachableError)


def test_connect_must_run_the_connector_of_the_pair(clusters: Pair) -> None:
    """A Connect that copies between other aliases is of no use to the pair."""
    asked = replace(clusters.pair, connect=connect())
    assert check_health(asked)[-1].answer == "version 4.1.0, connector mirror"
    asked = replace(asked, naming=replace(asked.naming, target_alias="z"))
    worker = check_health(asked)[-1]
    assert worker.part == "Connect"
    assert isinstance(worker.error, ConnectError)
