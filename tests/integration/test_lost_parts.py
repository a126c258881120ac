"""A source that dies for real: killed brokers, and one that takes connections and never answers.

Every answer is measured: a lost source must cost seconds, not minutes.
"""

import logging
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import Producer
from upath import UPath

from airflow_mm2_offsets.archive import SyncArchive
from airflow_mm2_offsets.archive.update import archive_syncs
from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.core import Naming, OffsetSync, ReplicationPolicy, encode_offset_sync
from airflow_mm2_offsets.core.forecast import ForecastRequest
from airflow_mm2_offsets.core.policy import DISASTER
from airflow_mm2_offsets.kafka.cluster import KafkaCluster
from airflow_mm2_offsets.planning.forecast_file import forecast_once
from airflow_mm2_offsets.planning.lost_parts import PROBE_SECONDS
from airflow_mm2_offsets.planning.options import PlanOptions
from airflow_mm2_offsets.planning.partial_plan import plan_from_what_is_left
from benchmarks.broker import OneBroker
from stack import jars
from stack.topics import create_topic

log = logging.getLogger(__name__)

BUILD = Path(__file__).parents[2] / "build"
POSITIONS = {"orders": {0: 150}}
NAMING = Naming(source_alias="a", target_alias="b", policy=ReplicationPolicy.IDENTITY)
BOUND = 5 * PROBE_SECONDS
"""Seconds for a plan, and for a forecast: the probe, and what a busy machine reads of the target.
Without the probe each of many requests waits for half a minute."""


@pytest.fixture
def brokers(tmp_path: Path) -> Iterator[tuple[OneBroker, OneBroker]]:
    """Two brokers of the test's own: JVMs, which can be killed."""
    kafka = jars.fetch(BUILD, progress=print).kafka
    with OneBroker(tmp_path / "a", kafka) as source, OneBroker(tmp_path / "b", kafka) as target:
        yield source, target


@pytest.fixture
def pair(brokers: tuple[OneBroker, OneBroker]) -> ClusterPair:
    """Clusters with 200 records, copied, and their syncs on the source."""
    source, target = (each.source for each in brokers)
    made = ClusterPair(
        source=KafkaCluster(name="source", config={"bootstrap.servers": source}),
        target=KafkaCluster(name="target", config={"bootstrap.servers": target}),
        naming=NAMING,
    )
    for servers in (source, target):
        create_topic(servers, "orders", 1)
        _write(servers, "orders", [(b"key", b"%d" % number) for number in range(200)])
    create_topic(source, made.syncs_topic, 1)
    syncs = [
        OffsetSync(topic="orders", partition=0, upstream=at, downstream=at) for at in (0, 100, 199)
    ]
    _write(source, made.syncs_topic, [encode_offset_sync(sync) for sync in syncs])
    return made


@pytest.fixture
def silent() -> Iterator[str]:
    """An address that takes every connection and never answers."""
    held: list[socket.socket] = []
    ended = threading.Event()
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        server.settimeout(0.1)

        def take() -> None:
            while not ended.is_set():
                with suppress(TimeoutError):
                    held.append(server.accept()[0])

        thread = threading.Thread(target=take)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        ended.set()
        thread.join()
    for each in held:
        each.close()


@pytest.mark.parametrize("death", ["killed", "silent"])
def test_a_lost_source_costs_seconds(
    pair: ClusterPair,
    brokers: tuple[OneBroker, OneBroker],
    silent: str,
    death: str,
    tmp_path: Path,
) -> None:
    """Plan and forecast come from archive and target, soon, and name the source as left out."""
    archive = SyncArchive(str(tmp_path / "archive"))
    for _ in range(2):
        archive_syncs(pair, archive)
        time.sleep(1.1)  # two runs less than a second apart say nothing of a rate
    if death == "killed":
        brokers[0].stop_broker("source")
    else:
        dead = KafkaCluster(name="source", config={"bootstrap.servers": silent})
        pair = replace(pair, source=dead)
    began = time.monotonic()
    plan = plan_from_what_is_left(pair, POSITIONS, options=PlanOptions(archive=archive))
    planned = time.monotonic()
    request = ForecastRequest(policy=DISASTER, plan_digest=plan.to_json()["digest"], max_rate=10)
    path = UPath(tmp_path / "forecast.json")
    told = forecast_once(pair, plan, request, archive=archive, path=path)
    ended = time.monotonic()
    log.info("%s: plan %.1f s, forecast %.1f s", death, planned - began, ended - planned)
    assert [each.part for each in plan.left_out] == ["source", "syncs topic"]
    assert plan.refused == ()
    assert told.at_risk.at_most is not None
    assert told.read_again.at_most is not None
    assert planned - began < BOUND
    assert ended - planned < BOUND


def _write(servers: str, topic: str, records: list[tuple[bytes, bytes]]) -> None:
    producer = Producer({"bootstrap.servers": servers})
    for key, value in records:
        producer.produce(topic, value, key, partition=0)
    assert not producer.flush(30)
