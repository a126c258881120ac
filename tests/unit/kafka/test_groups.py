"""Requests about groups, as brokers answer them while a coordinator moves."""

from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, KafkaException

from airflow_mm2_offsets.core import TopicPartition
from airflow_mm2_offsets.core.group_offsets import GroupCommit
from airflow_mm2_offsets.errors import ClusterRefusedError, ClusterUnreachableError
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


def _answer_once(
    monkeypatch: pytest.MonkeyPatch, group: str, answer: Callable[[int], Future[Any] | None]
) -> tuple[Counter[str], list[list[TopicPartition]]]:
    """Answer the requests for a group's stable offsets; None: as the cluster does.

    Returns:
        How many requests were sent for each group, and which partitions they named.
    """
    list_offsets, sent = getattr(DescribingAdmin, LIST), Counter[str]()
    named: list[list[TopicPartition]] = []

    def answer_group(
        self: DescribingAdmin,
        requests: list[ConsumerGroupTopicPartitions],
        *,
        require_stable: bool,
        **options: Any,
    ) -> dict[str, Future[Any]]:
        (request,) = requests
        assert require_stable
        keys = [
            TopicPartition(each.topic, each.partition) for each in request.topic_partitions or ()
        ]
        named.append(keys)
        sent[request.group_id] += 1
        if request.group_id == group and (given := answer(sent[group])) is not None:
            return {group: given}
        answers: dict[str, Future[Any]] = list_offsets(self, requests, **options)
        return answers

    monkeypatch.setattr(DescribingAdmin, LIST, answer_group)
    monkeypatch.setattr("airflow_mm2_offsets.kafka.session.ASK_AGAIN", 0.001)
    return sent, named


@pytest.fixture
def two_groups() -> InMemoryCluster:
    cluster = InMemoryCluster()
    cluster.group_offsets |= {"exactly-once": {KEY: (7, "")}, "other": {KEY: (8, "")}}
    return cluster


def _in_partition(error: KafkaError) -> Future[Any]:
    partition = SimpleNamespace(**KEY._asdict(), offset=-1, error=error)
    return done(SimpleNamespace(topic_partitions=[partition]))


@pytest.mark.parametrize("in_partition", [True, False])
@pytest.mark.parametrize("is_hanging", [True, False])
def test_a_pending_commit_is_waited_for(
    monkeypatch: pytest.MonkeyPatch,
    two_groups: InMemoryCluster,
    *,
    is_hanging: bool,
    in_partition: bool,
) -> None:
    """Until the time is up: then its group is named, and others are answered.

    Brokers say so only if they are asked for stable offsets of named partitions (KIP-447). All that
    the group has committed comes after it, without names.
    """

    def answer(number: int) -> Future[Any] | None:
        if not is_hanging and number >= 3:
            return None
        return _in_partition(UNSTABLE) if in_partition else failed(KafkaException(UNSTABLE))

    sent, named = _answer_once(monkeypatch, "exactly-once", answer)
    target = replace(two_groups.cluster("target"), timeout=0.05 if is_hanging else 30.0)
    states = target.group_states({"exactly-once": {KEY}, "other": {KEY}})
    assert states.pending == ({"exactly-once"} if is_hanging else set())
    offsets = {group: commits[KEY].offset for group, commits in states.offsets.items()}
    assert offsets == {"other": 8} | ({} if is_hanging else {"exactly-once": 7})
    assert sent["other"] == 2
    assert sent["exactly-once"] > 2
    assert (named[0], named[-1]) == ([KEY], [])


@pytest.mark.parametrize("error", [UNSTABLE, LOADING])
def test_the_others_wait_no_longer_than_the_patience(
    monkeypatch: pytest.MonkeyPatch, two_groups: InMemoryCluster, error: KafkaError
) -> None:
    """A group that has no answer yet is named, long before the time is up."""
    _answer_once(monkeypatch, "exactly-once", lambda _: _in_partition(error))
    target = replace(two_groups.cluster("target"), timeout=3600.0)
    states = target.group_states({"exactly-once": {KEY}, "other": {KEY}}, patience=0.01)
    assert states.pending == {"exactly-once"}
    assert states.offsets.keys() == {"other"}


@pytest.mark.parametrize("in_partition", [True, False])
@pytest.mark.parametrize("code", [KafkaError.GROUP_ID_NOT_FOUND, KafkaError.UNKNOWN_MEMBER_ID])
def test_a_group_that_the_broker_does_not_tell_is_named(
    monkeypatch: pytest.MonkeyPatch, two_groups: InMemoryCluster, code: int, *, in_partition: bool
) -> None:
    """As OffsetFetch answers for share groups (KIP-932) and by KIP-848; others are told."""
    error = KafkaError(code)
    answer = _in_partition(error) if in_partition else failed(KafkaException(error))
    _answer_once(monkeypatch, "exactly-once", lambda _: answer)
    states = two_groups.cluster("target").group_states({"exactly-once": {KEY}, "other": {KEY}})
    assert states.offsets.keys() == {"other"}
    assert states.refusals.keys() == {"exactly-once"}
    assert "see the broker's log" in states.refusals["exactly-once"]


def test_a_group_whose_members_are_not_told_is_named(
    monkeypatch: pytest.MonkeyPatch, two_groups: InMemoryCluster
) -> None:
    """Without its members nothing is known of it."""
    describe = DescribingAdmin.describe_consumer_groups
    error = KafkaException(KafkaError(KafkaError.INVALID_GROUP_ID))

    def answer(
        self: DescribingAdmin, names: list[str], **options: object
    ) -> dict[str, Future[Any]]:
        return describe(self, names, **options) | {"exactly-once": failed(error)}

    monkeypatch.setattr(DescribingAdmin, "describe_consumer_groups", answer)
    states = two_groups.cluster("target").group_states({"exactly-once": {KEY}, "other": {KEY}})
    assert states.members == {"other": 0}
    assert states.offsets.keys() == {"other"}
    assert states.refusals.keys() == {"exactly-once"}


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (KafkaError(KafkaError.GROUP_AUTHORIZATION_FAILED), ClusterRefusedError),
        (KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED), ClusterRefusedError),
        (LOADING, ClusterUnreachableError),
    ],
)
def test_a_missing_right_or_answer_is_raised(
    monkeypatch: pytest.MonkeyPatch,
    two_groups: InMemoryCluster,
    error: KafkaError,
    raised: type[Exception],
) -> None:
    """It concerns all groups, or goes away by itself: none is told as failed for it."""
    _answer_once(monkeypatch, "exactly-once", lambda _: _in_partition(error))
    target = replace(two_groups.cluster("target"), timeout=0.05)
    with pytest.raises(raised):
        target.group_states({"exactly-once": {KEY}, "other": {KEY}})


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
