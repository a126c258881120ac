"""A pair's topics split between several MirrorSourceConnectors; Connect is played."""

import logging
from dataclasses import replace

import pytest

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.core import SyncsLocation, TopicPartition
from airflow_mm2_offsets.errors import ConfigurationError
from airflow_mm2_offsets.planning.checks import find_problems
from airflow_mm2_offsets.planning.connect_claims import read_claims
from airflow_mm2_offsets.planning.mirror_config import read_mirror_connectors, that_copy
from airflow_mm2_offsets.planning.offset_evidence import committed_by_connect
from airflow_mm2_offsets.planning.plan import plan_failover, still_copying
from airflow_mm2_offsets.testing.connect import SimulatedConnect, mirror_config
from airflow_mm2_offsets.testing.connectors import SimulatedConnector
from tests.support.pairs import NAMING, Pair

ORDERS, CLICKS = TopicPartition("orders", 0), TopicPartition("clicks", 0)
CONFIG = mirror_config(NAMING, SyncsLocation.TARGET)


@pytest.fixture
def copied(clusters: Pair) -> Pair:
    """Return clusters where every third record of orders[0] was dropped on the way."""
    clusters.write("orders", range(100))
    clusters.copy("orders", [number for number in range(100) if number % 3])
    clusters.sync("orders", (1, 0), (40, 26), (70, 46), (98, 65))
    return clusters


def connector(topics: str, *offsets: tuple[str, int], **settings: str) -> SimulatedConnector:
    """Return a connector of topics that has committed an offset of partition 0 of some."""
    named = {key.replace("_", "."): value for key, value in settings.items()}
    return SimulatedConnector(
        name="other",
        config=CONFIG | {"topics": topics} | named,
        offsets=[
            {
                "partition": {"cluster": "a", "topic": topic, "partition": 0},
                "offset": {"offset": last},
            }
            for topic, last in offsets
        ],
    )


def split(
    clusters: Pair, other: SimulatedConnector, *, orders: int = 99
) -> tuple[ClusterPair, SimulatedConnect]:
    """Return a pair whose connector ``mirror`` copies orders, and ``other`` something else."""
    worker = SimulatedConnect(
        config=CONFIG | {"topics": "orders"},
        committed_offsets=lambda: {ORDERS: orders},
        others={"other": other},
    )
    return replace(clusters.pair, connect=worker.client()), worker


def test_the_offsets_of_all_connectors_count(copied: Pair) -> None:
    """Each of two connectors has committed what is its own."""
    pair, _ = split(copied, connector("clicks", ("clicks", 7)))
    assert read_claims(pair) == {ORDERS: {"mirror": 99}, CLICKS: {"other": 7}}
    assert committed_by_connect(pair, [ORDERS, CLICKS]) == {ORDERS: 99, CLICKS: 7}


def test_a_plan_and_a_wait_take_the_offset_of_the_connector_that_has_it(copied: Pair) -> None:
    """The last record was dropped: only the offset of one of the connectors shows the end."""
    pair, _ = split(copied, connector("clicks", ("clicks", 7)))
    (planned,) = plan_failover(pair, {"orders": {0: 100}}).partitions
    assert (planned.translation.status, planned.start) == ("exact", 66)
    assert still_copying(pair, {"orders": {0: 100}}) == ()


def test_of_two_claims_the_lower_counts(copied: Pair, caplog: pytest.LogCaptureFixture) -> None:
    """A topic that moved to another connector has two claims; the log names both."""
    pair, _ = split(copied, connector("orders", ("orders", 98)))
    with caplog.at_level(logging.WARNING):
        (planned,) = plan_failover(pair, {"orders": {0: 100}}).partitions
    assert planned.translation.status == "bounded"
    assert "orders[0]: 2 connectors have copied it (mirror up to 99, other up to 98)" in caplog.text


def test_the_settings_of_the_connectors_of_a_topic_count(copied: Pair) -> None:
    """A transform counts for the topics of its connector; one that matches nothing names all."""
    changing = {"transforms": "x", "transforms_x_type": "InsertField"}
    apart, _ = split(copied, connector("clicks", **changing))
    shared, _ = split(copied, connector("clicks|orders", **changing))
    changes = [
        [each.changes_records for each in that_copy(read_mirror_connectors(pair), [topic])]
        for pair, topic in ((apart, "orders"), (apart, "clicks"), (shared, "orders"), (apart, "x"))
    ]
    assert changes == [[False], [True], [False, True], [False, True]]


def test_a_connector_that_names_other_topics_is_refused_for_its_topics_alone(copied: Pair) -> None:
    """Another separator of a connector of other topics names no topic of the job."""
    other = {"replication_policy_separator": "_"}
    apart, _ = split(copied, connector("clicks", **other))
    assert plan_failover(apart, {"orders": {0: 50}}).partitions
    shared, _ = split(copied, connector("orders.*", **other))
    with pytest.raises(ConfigurationError, match="'_' in connector other"):
        plan_failover(shared, {"orders": {0: 50}})


def test_a_connector_that_is_down_is_a_problem_for_its_topics_alone(copied: Pair) -> None:
    """The check before a failover asks the connectors that copy the job's topics."""
    pair, worker = split(copied, connector("clicks"))
    worker.others["other"].state = "PAUSED"
    assert not _about_connect(pair)
    worker.state = "PAUSED"
    (problem,) = _about_connect(pair)
    assert "connector mirror is PAUSED" in problem


def _about_connect(pair: ClusterPair) -> list[str]:
    return [each for each in find_problems(pair, {"orders": {0: 50}}) if "Connect" in each]
