"""Which parts of a pair answer."""

from dataclasses import replace

from airflow_mm2_offsets.connect.client import ConnectClient
from airflow_mm2_offsets.errors import ClusterUnreachableError, ConnectError
from airflow_mm2_offsets.service.probing import probe, probe_to_json
from tests.support.pairs import STOPPED_CONNECT, Pair, connect


def test_what_answers_says_who_it_is(clusters: Pair) -> None:
    """A cluster names its id and brokers, the topic its syncs."""
    clusters.sync("orders", (0, 0), (4, 9))
    source, target, syncs = probe(clusters.pair)
    assert source.found.startswith(f"cluster {clusters.source.cluster_id}")
    assert clusters.pair.target.config["bootstrap.servers"] in target.found
    assert syncs.part == f"syncs topic {clusters.pair.syncs_topic} on target"
    assert syncs.found == "syncs: 2, partitions: 1"
    assert probe_to_json(syncs) == {
        "part": syncs.part,
        "ok": True,
        "found": syncs.found,
        "error": None,
    }


def test_what_does_not_answer_says_why(clusters: Pair) -> None:
    """An empty pair of clusters has no syncs; a Connect that is down is told apart."""
    down = ConnectClient(url=STOPPED_CONNECT.url, timeout=1)
    source, target, syncs, worker = probe(replace(clusters.pair, connect=down))
    assert (source.error, target.error) == (None, None)
    assert probe_to_json(syncs)["ok"] is False
    assert "offset-syncs topic" in str(syncs.error)
    assert isinstance(worker.error, ClusterUnreachableError)


def test_connect_must_run_the_connector_of_the_pair(clusters: Pair) -> None:
    """A Connect that copies between other aliases is of no use to the pair."""
    asked = replace(clusters.pair, connect=connect())
    assert probe(asked)[-1].found == "version 4.1.0, connector mirror"
    asked = replace(asked, naming=replace(asked.naming, target_alias="z"))
    worker = probe(asked)[-1]
    assert worker.part == "Connect"
    assert isinstance(worker.error, ConnectError)
