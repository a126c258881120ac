"""Requests about groups, as brokers answer them while a coordinator moves."""

from collections import Counter
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError

from airflow_mm2_offsets.core import TopicPartition
from airflow_mm2_offsets.core.group_offsets import GroupCommit
from airflow_mm2_offsets.testing import InMemoryCluster
from airflow_mm2_offsets.testing.descriptions import DescribingAdmin, done

KEY = TopicPartition("orders", 0)
LOADING = KafkaError(KafkaError.COORDINATOR_LOAD_IN_PROGRESS)
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
