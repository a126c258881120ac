"""Requests about groups, as brokers answer them while a coordinator moves."""

from collections import Counter
from concurrent.futures import Future
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, KafkaException

from airflow_mm2_offsets.core import TopicPartition
from airflow_mm2_offsets.core.group_offsets import GroupCommit
from airflow_mm2_offsets.testing import InMemoryCluster
from airflow_mm2_offsets.testing.descriptions import DescribingAdmin, done, failed

KEY = TopicPartition("orders", 0)
LOADING = KafkaError(KafkaError.COORDINATOR_LOAD_IN_PROGRESS)
UNSTABLE = KafkaError(KafkaError.UNSTABLE_OFFSET_COMMIT)
LIST = "list_consumer_group_offsets"
ALTER = "alter_consumer_group_offsets"


def test_only_what_was_not_answered_is_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A coordinator that loads its groups answers with an error for each partition.

    A commit that was written is not repeated: its group may have members by then.
    """
    alter, sent = getattr(DescribingAdmin, ALTER), Counter[str]()

    def answer(
        self: DescribingAdmin, requests: list[ConsumerGroupTopicPartitions], **options: Any
    ) -> dict[str, Future[Any]]:
        (request,) = requests
        sent[request.group_id] += 1
        if request.group_id == "slow" and sent["slow"] < 3:
            loading = SimpleNamespace(**KEY._asdict(), error=LOADING)
            return {"slow": done(SimpleNamespace(topic_partitions=[loading]))}
        answers: dict[str, Future[Any]] = alter(self, requests, **options)
        return answers

    monkeypatch.setattr(DescribingAdmin, ALTER, answer)
    monkeypatch.setattr("airflow_mm2_offsets.kafka.session.ASK_AGAIN", 0.001)
    cluster = InMemoryCluster()
    commits = {group: {KEY: GroupCommit(offset=3)} for group in ("fast", "slow")}
    assert cluster.cluster("target").commit_group_offsets(commits) == {}
    assert sent == {"fast": 1, "slow": 3}
    assert cluster.group_offsets["slow"] == {KEY: (3, "")}


@pytest.mark.parametrize("in_partition", [True, False])
@pytest.mark.parametrize("is_hanging", [True, False])
def test_a_pending_commit_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, *, is_hanging: bool, in_partition: bool
) -> None:
    """Until the time is up: then its group is named, and others are answered.

    Brokers say so only if they are asked for stable offsets of named partitions (KIP-447).
    """
    list_offsets, sent = getattr(DescribingAdmin, LIST), Counter[str]()

    def answer(
        self: DescribingAdmin,
        requests: list[ConsumerGroupTopicPartitions],
        *,
        require_stable: bool,
        **options: Any,
    ) -> dict[str, Future[Any]]:
        (request,) = requests
        assert require_stable
        assert [(each.topic, each.partition) for each in request.topic_partitions or []] == [KEY]
        sent[request.group_id] += 1
        if request.group_id == "exactly-once" and (is_hanging or sent["exactly-once"] < 3):
            if not in_partition:
                return {request.group_id: failed(KafkaException(UNSTABLE))}
            unstable = SimpleNamespace(**KEY._asdict(), offset=-1, error=UNSTABLE)
            return {request.group_id: done(SimpleNamespace(topic_partitions=[unstable]))}
        answers: dict[str, Future[Any]] = list_offsets(self, requests, **options)
        return answers

    monkeypatch.setattr(DescribingAdmin, LIST, answer)
    monkeypatch.setattr("airflow_mm2_offsets.kafka.session.ASK_AGAIN", 0.001)
    cluster = InMemoryCluster()
    cluster.group_offsets |= {"exactly-once": {KEY: (7, "")}, "other": {KEY: (8, "")}}
    target = replace(cluster.cluster("target"), timeout=0.05 if is_hanging else 30.0)
    stable = target.stable_group_offsets({"exactly-once": {KEY}, "other": {KEY}})
    assert stable.pending == ({"exactly-once"} if is_hanging else set())
    offsets = {group: commits[KEY].offset for group, commits in stable.offsets.items()}
    assert offsets == {"other": 8} | ({} if is_hanging else {"exactly-once": 7})
    assert sent["other"] == 1
    assert sent["exactly-once"] > 2


def test_a_group_of_many_partitions_is_committed_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """All parts arrive, and none is larger than a broker takes, however long the metadata is."""
    alter, sizes = getattr(DescribingAdmin, ALTER), list[int]()

    def answer(
        self: DescribingAdmin, requests: list[ConsumerGroupTopicPartitions], **options: Any
    ) -> dict[str, Future[Any]]:
        partitions = requests[0].topic_partitions or []
        sizes.append(sum(len(each.metadata or "") for each in partitions))
        answers: dict[str, Future[Any]] = alter(self, requests, **options)
        return answers

    monkeypatch.setattr(DescribingAdmin, ALTER, answer)
    cluster = InMemoryCluster()
    commit = GroupCommit(offset=1, metadata="m" * 4000)
    commits = {TopicPartition("wide", number): commit for number in range(1201)}
    assert cluster.cluster("target").commit_group_offsets({"wide": commits}) == {}
    assert len(cluster.group_offsets["wide"]) == 1201
    assert max(sizes) < 2**19
