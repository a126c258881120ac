"""The tests that the REST API passes alone and inside Airflow, on a topic whose truth is known."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import httpx
import pytest

from airflow_mm2_offsets.core import Status, SyncIndex, TopicPartition, Translation
from airflow_mm2_offsets.core.positions import MAX_OFFSET
from airflow_mm2_offsets.kafka.syncs import read_syncs
from airflow_mm2_offsets.planning.options import PlanOptions
from airflow_mm2_offsets.planning.plan import plan_failover
from stack.mirror import Stack
from stack.waiting import wait_until
from tests.integration.mirrors import FILTER, Mirror, Writer, mirror, read
from tests.integration.mm2_offset_map_client import (
    STATUS,
    SYNC,
    TRANSLATION,
    read_batch,
    read_fields,
)

BASE = "/api/v1/offsets"
FIRST, SECOND, UNUSED = range(3)
REFRESH_SECONDS = 3600
"""The refresh interval to configure, so that only ``/refresh`` refreshes."""


@dataclass(frozen=True, kw_only=True)
class Mirrored:
    """A topic of three partitions, one of them empty, whose offsets differ on the target."""

    mirror: Mirror
    writer: Writer

    @property
    def topic(self) -> str:
        return self.writer.topic

    @cached_property
    def copies(self) -> dict[tuple[int, int], int]:
        """Where each copied record of the first writing is on the target."""
        pair, partitions = self.mirror.pair, range(3)
        target_offsets = {
            (each.partition(), each.value()): each.offset()
            for each in read(pair.target, self.topic, partitions)
        }
        return {
            (each.partition(), each.offset()): target_offsets[each.partition(), each.value()]
            for each in read(pair.source, self.topic, partitions)
            if (each.partition(), each.value()) in target_offsets
        }

    def truth(self, partition: int, position: int) -> int:
        """Return the largest target position that misses no record from ``position`` on."""
        return min(
            there
            for (number, here), there in self.copies.items()
            if number == partition and here >= position
        )


def airflow_connections(stack: Stack, mirrored: Mirrored) -> dict[str, dict[str, Any]]:
    """Return Airflow's connections of a mirror and its clusters: ``mm2_default`` and two more."""
    naming = mirrored.mirror.pair.naming
    mm2 = {
        "source_alias": naming.source_alias,
        "target_alias": naming.target_alias,
        "replication_policy": "identity",
        "offset_syncs_topic_location": "target",
        "connect_url": stack.connect_url,
    }
    return {
        "kafka_source": {"conn_type": "kafka", "extra": {"bootstrap.servers": stack.source}},
        "kafka_target": {"conn_type": "kafka", "extra": {"bootstrap.servers": stack.target}},
        "mm2_default": {"conn_type": "mm2", "extra": mm2},
    }


@contextmanager
def mirrored(stack: Stack) -> Iterator[Mirrored]:
    """Yield a mirror with aborted transactions and dropped records, copied to its end."""
    with mirror(stack) as made:
        writer = Writer(made, made.create_topic(3))
        writer.write({FIRST: 1, SECOND: 1})
        made.configure(**FILTER, **{"offset.lag.max": 20})
        wait_until(lambda: made.has_begun(writer), f"the first syncs of {writer.topic}")
        for _ in range(4):
            writer.write({FIRST: 30, SECOND: 60})
            writer.abort({FIRST: 5})
            writer.write({SECOND: 7}, drop=True)
        writer.write({FIRST: 1, SECOND: 1})
        wait_until(lambda: made.has_noted(writer), f"the copy of {writer.topic} to be noted")
        yield Mirrored(mirror=made, writer=writer)


@dataclass(frozen=True, kw_only=True)
class RunningApi:
    """A running API."""

    client: httpx.Client
    """Logged in; its base is where ``/api/v1/offsets`` begins."""
    stranger: httpx.Client
    """Not logged in."""
    mirrored: Mirrored
    open_probes: bool = True
    """Whether ``/healthz`` and ``/readyz`` answer strangers."""
    wrong_token: int = 401
    """The status that an invalid token gets."""

    def get(self, path: str, **query: Any) -> httpx.Response:
        return self.client.get(BASE + path, params=query)

    def post(self, path: str, body: Any = None, **query: Any) -> httpx.Response:  # noqa: ANN401 - as httpx takes it
        return self.client.post(BASE + path, json=body, params=query)

    def refresh(self) -> Any:  # noqa: ANN401 - JSON
        answer = self.post("/refresh")
        assert answer.status_code == 200, answer.text
        return answer.json()

    def index(self) -> SyncIndex:
        """Return the index that it answers from, as it lists it; its topic is whole."""
        pairs: dict[TopicPartition, list[tuple[int, int]]] = {}
        for each in self.get("/syncs", limit=100_000).json()["syncs"]:
            partition = TopicPartition(each["topic"], each["partition"])
            pairs.setdefault(partition, []).append((each["upstreamOffset"], each["targetOffset"]))
        return SyncIndex().extended(pairs, complete=pairs)


def expected(index: SyncIndex, answer: Translation, strategy: str) -> dict[str, Any]:
    """Return what is to be answered for a translation, field by field."""
    syncs = index.partitions[TopicPartition(answer.topic, answer.partition)]
    before = syncs.segments.bracket(answer.position).before
    return {
        "topic": answer.topic,
        "partition": answer.partition,
        "sourceOffset": answer.position,
        "targetOffset": answer.target,
        "syncUpstreamOffset": before.upstream if before else None,
        "syncTargetOffset": before.downstream if before else None,
        "strategy": strategy,
        "status": answer.status.value,
        "low": answer.low,
        "high": answer.high,
        "reason": answer.reason,
        "basis": answer.basis.value,
    }


class Contract:
    """The tests; each subclass defines the fixture ``api``, with the scope of the class."""

    @pytest.fixture(autouse=True)
    def _refreshed(self, api: RunningApi) -> None:
        api.refresh()

    @pytest.mark.parametrize("strategy", ["safe", "linear", "kafka"])
    def test_translate(self, api: RunningApi, strategy: str) -> None:
        """The REST answers equal those of the index; a safe answer is never above the truth."""
        index, topic = api.index(), api.mirrored.topic
        for partition, end in api.mirrored.mirror.ends(topic).items():
            for position in range(0, end if partition != UNUSED else 0, 10):
                query = {"topic": topic, "partition": partition, "offset": position}
                answer = api.get("/translate", **query, strategy=strategy)
                translated = index.translate(topic, partition, position, strategy=strategy)
                if translated.status is Status.REFUSED:  # before the first sync
                    assert strategy != "safe"
                    assert answer.status_code == 404
                    assert answer.json()["translation"]["reason"] == translated.reason
                    continue
                assert answer.json() == expected(index, translated, strategy)
                assert api.post("/translate", query, strategy=strategy).json() == answer.json()
                if strategy == "safe":
                    truth = api.mirrored.truth(partition, position)
                    assert answer.json()["targetOffset"] <= truth

    def test_linear_is_their_formula(self, api: RunningApi) -> None:
        """Linear is mm2-offset-map's formula, and safe is the default strategy."""
        topic = api.mirrored.topic
        first = api.index().partitions[TopicPartition(topic, FIRST)].first
        query = {"topic": topic, "partition": FIRST, "offset": first.upstream + 7}
        linear = api.get("/translate", **query, strategy="linear").json()
        past = linear["sourceOffset"] - linear["syncUpstreamOffset"]
        assert linear["targetOffset"] == linear["syncTargetOffset"] + past
        assert api.get("/translate", **query).json()["strategy"] == "safe"

    def test_latest_reads_the_topic_now(self, api: RunningApi) -> None:
        """/translate/latest reads the topic; /translate answers from memory until a refresh."""
        made, writer = api.mirrored.mirror, api.mirrored.writer
        before = api.get("/status").json()
        end = made.ends(writer.topic)[SECOND]
        writer.write({SECOND: 50})
        query = {"topic": writer.topic, "partition": SECOND, "offset": end + 40}
        stale = api.get("/translate", **query).json()
        wait_until(
            lambda: api.get("/translate/latest", **query).json() != stale,
            "the new syncs",
        )
        assert api.post("/translate/latest", query).json()["syncUpstreamOffset"] >= end
        assert api.get("/translate", **query).json() == stale
        after = api.get("/status").json()
        assert after["refreshedAt"] == before["refreshedAt"]
        assert after["syncCount"] == before["syncCount"]
        assert api.refresh()["syncCount"] > before["syncCount"]
        assert api.get("/translate", **query).json() != stale

    @pytest.mark.parametrize("path", ["/translate/batch", "/translate/batch/latest"])
    def test_batch(self, api: RunningApi, path: str) -> None:
        """Results come by partition; the source's end is accepted; an invalid item fails alone."""
        topic, index = api.mirrored.topic, api.index()
        end = api.mirrored.mirror.ends(topic)[FIRST]
        good = [(FIRST, 5), (SECOND, 30), (FIRST, end)]
        bad = [(FIRST, end + 1), (FIRST, -1), (UNUSED, 0), (9, 0), ("x", 0), (SECOND, "many")]
        items = [{"partition": number, "startOffset": at} for number, at in good + bad]
        answer = api.post(path, {"topicName": topic, "offsetList": items})
        assert answer.status_code == 200, answer.text
        body = answer.json()
        assert set(body) == {
            "topicName",
            "sourceCluster",
            "targetCluster",
            "partitionResults",
            "summary",
            "timestamp",
        }
        naming = api.mirrored.mirror.pair.naming
        assert (body["topicName"], body["sourceCluster"], body["targetCluster"]) == (
            topic,
            naming.source_alias,
            naming.target_alias,
        )
        assert [(each["partition"], each["status"]) for each in body["partitionResults"]] == [
            (FIRST, "PARTIAL_SUCCESS"),
            (SECOND, "PARTIAL_SUCCESS"),
            (UNUSED, "FAILED"),
            (9, "FAILED"),
            ("x", "FAILED"),
        ]
        translated = index.translate(topic, FIRST, 5)
        assert body["partitionResults"][FIRST]["offsetTranslations"][0] == {
            "sourceOffset": 5,
            "targetOffset": translated.target,
            "translationMethod": "OFFSET_SYNC",
            "errorMessages": None,
            "success": True,
            "strategy": "safe",
            "status": translated.status.value,
            "low": translated.low,
            "high": translated.high,
            "reason": translated.reason,
            "basis": translated.basis.value,
        }
        failed = [
            each
            for result in body["partitionResults"]
            for each in result["offsetTranslations"]
            if not each["success"]
        ]
        assert len(failed) == len(bad)
        assert all(each["targetOffset"] is None and each["errorMessages"] for each in failed)
        assert isinstance(body["summary"].pop("processTimeMs"), int)
        assert body["summary"] == {
            "totalRequested": 9,
            "successCount": 3,
            "failureCount": 6,
            "partitionProcessed": 5,
        }

    @pytest.mark.parametrize("path", ["/translate/batch", "/translate/batch/latest"])
    def test_a_client_of_mm2_offset_map_reads_a_batch(self, api: RunningApi, path: str) -> None:
        """Each field of their README is there with its type: all well, part, none, nothing."""
        topic = api.mirrored.topic
        end = api.mirrored.mirror.ends(topic)[FIRST]
        good, bad = {"partition": 0, "startOffset": 10}, {"partition": 0, "startOffset": end + 1}
        for name, items, statuses in (
            (topic, [good], ["SUCCESS"]),
            (topic, [good, bad], ["PARTIAL_SUCCESS"]),
            (topic, [bad], ["FAILED"]),
            ("unknown-topic", [good], ["FAILED"]),
            (topic, [], []),
        ):
            answer = api.post(path, {"topicName": name, "offsetList": items})
            assert answer.status_code == 200
            results = read_batch(answer.json())
            assert [result["status"] for result in results] == statuses

    def test_a_client_of_mm2_offset_map_reads_the_rest(self, api: RunningApi) -> None:
        """Each field of their other answers is there with its type."""
        topic = api.mirrored.topic
        first = api.index().partitions[TopicPartition(topic, FIRST)].first
        query = {"topic": topic, "partition": FIRST, "offset": first.upstream}
        for path in ("/translate", "/translate/latest"):
            read_fields(api.get(path, **query).json(), TRANSLATION)
            read_fields(api.post(path, query).json(), TRANSLATION)
        for sync in api.get("/syncs").json()["syncs"]:
            read_fields(sync, SYNC)
        read_fields(api.get("/status").json(), STATUS)
        read_fields(api.refresh(), STATUS)

    def test_syncs(self, api: RunningApi) -> None:
        """/syncs lists the syncs of the topic, filtered and paged."""
        pair, topic = api.mirrored.mirror.pair, api.mirrored.topic
        listed, second = api.index(), TopicPartition(topic, SECOND)
        now = read_syncs(pair.syncs_cluster, pair.syncs_topic).index
        assert set(listed.partitions) == {(topic, FIRST), second}
        for partition, syncs in listed.partitions.items():
            assert [*syncs.upstream] == [*now.partitions[partition].upstream][: len(syncs)]
        one = api.get("/syncs", topic=topic, partition=SECOND).json()
        assert one["total"] == len(one["syncs"]) == len(listed.partitions[second])
        assert set(one["syncs"][0]) == {
            "topic",
            "partition",
            "upstreamOffset",
            "targetOffset",
            "sourcePartition",
        }
        page = api.get("/syncs", limit=3).json()
        rest = api.get("/syncs", after=page["next"]).json()
        assert page["syncs"] + rest["syncs"] == api.get("/syncs").json()["syncs"]

    def test_status_and_refresh(self, api: RunningApi) -> None:
        """Both report topic, last refresh and counts as mm2-offset-map does, and staleness."""
        naming = api.mirrored.mirror.pair.naming
        refreshed, status = api.refresh(), api.get("/status").json()
        assert 0 <= status.pop("ageSeconds") < 60
        refreshed.pop("ageSeconds")
        assert refreshed == status
        assert status.pop("refreshedAt") > "2026"
        assert status == {
            "topic": api.mirrored.mirror.pair.syncs_topic,
            "syncCount": len(api.index()),
            "partitionCount": 2,
            "skippedCount": 0,
            "stale": False,
            "error": None,
            "sourceCluster": naming.source_alias,
            "targetCluster": naming.target_alias,
        }

    @pytest.mark.parametrize("changed_records", [None, False, True])
    def test_plan(self, api: RunningApi, *, changed_records: bool | None) -> None:
        """The plan equals the one that an operator puts into XCom with the same options."""
        pair, topic = api.mirrored.mirror.pair, api.mirrored.topic
        positions = {topic: {FIRST: 17, SECOND: 33, UNUSED: 0}}
        body = {topic: {str(number): str(at) for number, at in positions[topic].items()}}
        choices: dict[str, Any] = {}
        if changed_records is not None:
            choices["changed_records"] = changed_records
        answer = api.post("/plan", {"positions": body, **choices})
        assert answer.status_code == 200, answer.text
        made = answer.json()
        ours = plan_failover(pair, positions, options=PlanOptions(**choices)).to_json()
        for each in (made, ours):
            # These move on: MirrorMaker 2 may have written more syncs in between.
            each.pop("created_at")
            each.pop("digest")
            each.pop("syncs")
        assert made == ours
        assert made["verdict"] == "ready"
        for each in made["partitions"][:UNUSED]:
            truth = api.mirrored.truth(each["partition"], int(each["position"]))
            assert int(each["target"]) <= truth

    @pytest.mark.parametrize(
        ("query", "status"),
        [
            ({"topic": "unknown-topic"}, 404),
            ({"partition": 99}, 404),
            ({"offset": -1}, 400),
            ({"offset": MAX_OFFSET + 1}, 400),
            ({"offset": "many"}, 400),
            ({"topic": "<script>"}, 400),
            ({"topic": "x" * 250}, 400),
            ({"strategy": "best"}, 400),
        ],
    )
    @pytest.mark.parametrize("path", ["/translate", "/translate/latest"])
    def test_bad_queries(
        self, api: RunningApi, path: str, query: dict[str, Any], status: int
    ) -> None:
        """The problem names the invalid field and does not repeat its value."""
        asked = {"topic": api.mirrored.topic, "partition": FIRST, "offset": 1} | query
        answer = api.get(path, **asked)
        assert answer.status_code == answer.json()["status"] == status
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json()["field"].rpartition(".")[2] == next(iter(query))
        assert "<script>" not in answer.text

    def test_a_batch_that_is_too_large(self, api: RunningApi) -> None:
        """It is refused, with the count."""
        items = [{"partition": 0, "startOffset": 1}] * 100_001
        body = {"topicName": api.mirrored.topic, "offsetList": items}
        answer = api.post("/translate/batch", body)
        assert answer.status_code == 413
        assert "100001" in answer.json()["detail"]

    def test_a_body_of_100_mb(self, api: RunningApi) -> None:
        """A body is refused for its Content-Length, or in chunks once it is too large."""
        sent = 0

        def chunks() -> Iterator[bytes]:
            nonlocal sent
            for _ in range(100):
                sent += 1
                yield b" " * 2**20

        for content in (b" " * (100 * 2**20), chunks()):
            try:
                answer = api.client.post(
                    BASE + "/translate",
                    content=content,
                    headers={"Content-Type": "application/json"},
                )
            except httpx.TransportError:
                continue  # The server closed the connection before the body was sent.
            assert answer.status_code == 413
        assert sent < 100
        assert api.get("/status").status_code == 200

    def test_requests_without_a_valid_login(self, api: RunningApi) -> None:
        """Every route refuses a request without a token or with an invalid one."""
        paths = api.client.get("/openapi.json").json()["paths"]
        described = [(method, path) for path, each in paths.items() for method in each]
        probes = {"/healthz", "/readyz"} if api.open_probes else set()
        assert len(described) == 13
        for method, path in [*described, ("get", "/openapi.json"), ("get", "/docs")]:
            if path in probes:
                continue
            for headers, status in (
                ({}, 401),
                ({"Authorization": "Bearer wrong"}, api.wrong_token),
            ):
                answer = api.stranger.request(method, path, headers=headers)
                assert answer.status_code == status, (method, path)

    def test_probes_and_metrics(self, api: RunningApi) -> None:
        """The health probes and the Prometheus metrics answer."""
        client = api.stranger if api.open_probes else api.client
        assert client.get("/healthz").json() == {"status": "ok"}
        assert client.get("/readyz").json() == {"status": "ready"}
        text = api.client.get("/metrics").text
        assert "mm2_offsets_requests_total" in text
        assert "mm2_offsets_syncs{" in text

    def test_the_description_holds(self, api: RunningApi, tmp_path: Path) -> None:
        """Schemathesis finds no 5xx, and no answer or refusal that OpenAPI does not describe."""
        login = {"authorization", "cookie"}
        headers = [
            # Titled: it tries without the login as well, and finds it by this name.
            f"{name.title()}: {value}"
            for name, value in api.client.headers.items()
            if name in login
        ]
        base = str(api.client.base_url).rstrip("/")
        program = Path(sys.executable).with_name("schemathesis")
        options = [*chain.from_iterable(("-H", each) for each in headers), "--url", base]
        limits = ["--max-examples", "10", "--seed", "1", "--phases", "examples,coverage,fuzzing"]
        ran = subprocess.run(
            [program, "run", f"{base}/openapi.json", *options, *limits],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, ran.stdout
