"""Consumer groups on real brokers: what Kafka's documentation says, and our guards beside it.

The words are those of KIP-396 (``alterConsumerGroupOffsets``), KIP-211 (expiration of offsets) and
KIP-545 (``sync.group.offsets.enabled``).
"""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as PartitionOffset

from airflow_mm2_offsets.core import TopicPartition
from airflow_mm2_offsets.core.group_offsets import GroupCommit, GroupRules
from airflow_mm2_offsets.groups import publish_positions
from airflow_mm2_offsets.kafka.cluster import KafkaCluster
from airflow_mm2_offsets.kafka.groups import GroupStates
from stack.mirror import Stack
from stack.topics import create_topic
from stack.waiting import wait_until

RECORDS = 10
CHECKPOINT = "s3://bucket/checkpoints/orders"


@pytest.fixture(scope="module")
def cluster(stack: Stack) -> KafkaCluster:
    return KafkaCluster(name="target", config={"bootstrap.servers": stack.target})


@pytest.fixture(scope="module")
def topic(stack: Stack) -> str:
    """Make a topic of two partitions with records."""
    name = f"groups-{uuid4().hex[:8]}"
    create_topic(stack.target, name, 2)
    producer = Producer({"bootstrap.servers": stack.target})
    for number in range(2 * RECORDS):
        producer.produce(name, b"%d" % number, partition=number % 2)
    assert producer.flush(30) == 0
    return name


@pytest.fixture
def group() -> str:
    return f"group-{uuid4().hex[:8]}"


@contextmanager
def consumer_of(
    stack: Stack, group: str, topic: str, protocol: str = "classic"
) -> Iterator[Consumer]:
    """Yield a live member of a group that is assigned a partition."""
    consumer = Consumer(
        {
            "bootstrap.servers": stack.target,
            "group.id": group,
            "group.protocol": protocol,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe([topic])
    try:
        wait_until(lambda: consumer.poll(0.2) is not None, f"a member of {group}")
        yield consumer
    finally:
        consumer.close()


def _publish(
    cluster: KafkaCluster,
    group: str,
    topic: str,
    offset: int,
    *,
    checkpoint: str = CHECKPOINT,
    rules: GroupRules | None = None,
) -> tuple[str, str]:
    """Publish a position of partition 0; return its status and its reason."""
    report = publish_positions(
        cluster, group, {topic: {0: offset}}, checkpoint, rules=rules or GroupRules()
    )
    (decision,) = report.decisions
    return decision.status.value, decision.reason


def _committed(cluster: KafkaCluster, group: str, topic: str) -> GroupCommit | None:
    return cluster.group_offsets([group]).offsets.get(group, {}).get(TopicPartition(topic, 0))


@pytest.mark.parametrize("name", ["a b", "ü/漢字*[", "x" * 255, "with\nline"])
def test_a_commit_is_read_back_with_its_metadata(
    cluster: KafkaCluster, topic: str, name: str
) -> None:
    """Whatever characters the group's name has."""
    group = f"{name}-{uuid4().hex[:4]}"
    assert _publish(cluster, group, topic, 4)[0] == "committed"
    commit = _committed(cluster, group, topic)
    assert commit is not None
    assert commit.offset == 4
    assert commit.metadata.endswith(f"origin=checkpoint {CHECKPOINT}")
    assert _publish(cluster, group, topic, 6)[0] == "committed"
    assert _publish(cluster, group, topic, 5)[0] == "unchanged"
    assert group in cluster.group_names()


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_live_consumer_is_left_alone(
    stack: Stack, cluster: KafkaCluster, topic: str, group: str, protocol: str
) -> None:
    """By our check, and by the broker: "offsets can only be altered if the group is empty"."""
    assert _publish(cluster, group, topic, 2)[0] == "committed"
    before = _committed(cluster, group, topic)
    with consumer_of(stack, group, topic, protocol):
        status, reason = _publish(cluster, group, topic, 8, rules=GroupRules(overwrite_others=True))
        assert (status, "1 members" in reason) == ("refused", True)
        key = TopicPartition(topic, 0)
        errors = cluster.commit_group_offsets({group: {key: GroupCommit(offset=8)}})
        assert "UNKNOWN_MEMBER_ID" in errors[group, key]
        assert _committed(cluster, group, topic) == before
    assert _publish(cluster, group, topic, 8)[0] == "committed"


def test_a_group_that_wakes_between_check_and_commit(
    stack: Stack, cluster: KafkaCluster, topic: str, group: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broker refuses it; the group's offset stays, and the next run goes by the new state."""
    assert _publish(cluster, group, topic, 2)[0] == "committed"
    members: list[Consumer] = []
    stacked: list[object] = []
    read = KafkaCluster.group_states

    def read_and_wake(
        self: KafkaCluster, partitions: Mapping[str, Collection[TopicPartition]], **options: float
    ) -> GroupStates:
        offsets = read(self, partitions, **options)
        living = consumer_of(stack, group, topic)
        stacked.append(living)
        members.append(living.__enter__())
        return offsets

    with monkeypatch.context() as patched:
        patched.setattr(KafkaCluster, "group_states", read_and_wake)
        status, reason = _publish(cluster, group, topic, 8)
    try:
        assert status == "failed"
        assert "got members after it was checked" in reason
        commit = _committed(cluster, group, topic)
        assert commit is not None
        assert commit.offset == 2
        assert _publish(cluster, group, topic, 8)[0] == "refused"
    finally:
        members[0].close()


def test_a_consumers_own_commit_is_kept(
    stack: Stack, cluster: KafkaCluster, topic: str, group: str
) -> None:
    """A group that has moved over commits without our marker: it is never overwritten unasked."""
    assert _publish(cluster, group, topic, 2)[0] == "committed"
    with consumer_of(stack, group, topic) as consumer:
        consumer.commit(offsets=[PartitionOffset(topic, 0, 5)], asynchronous=False)
    assert _publish(cluster, group, topic, 9)[0] == "kept"
    others = GroupRules(overwrite_others=True)
    assert _publish(cluster, group, topic, 4, rules=others)[0] == "kept"
    assert _publish(cluster, group, topic, 9, rules=others)[0] == "committed"


def test_other_origins_rewinds_and_lost_topics(
    cluster: KafkaCluster, topic: str, group: str
) -> None:
    """Each guard against what the broker holds."""
    assert _publish(cluster, group, topic, 6)[0] == "committed"
    assert _publish(cluster, group, topic, 8, checkpoint="s3://bucket/other")[0] == "refused"
    assert _publish(cluster, group, topic, RECORDS + 1)[0] == "refused"
    assert _publish(cluster, group, f"{topic}-gone", 1)[0] == "refused"
    assert _publish(cluster, group, topic, 1)[0] == "unchanged"
    assert _publish(cluster, group, topic, 1, rules=GroupRules(allow_rewind=True))[0] == "committed"


def test_what_the_broker_does_not_take_is_named(
    cluster: KafkaCluster, topic: str, group: str
) -> None:
    """Metadata above ``offset.metadata.max.bytes``, 4096 by default; and nothing else fails."""
    status, reason = _publish(cluster, group, topic, 3, checkpoint="x" * 5000)
    assert status == "failed"
    assert group not in cluster.group_offsets([group]).offsets
    assert "metadata" in reason.lower()
