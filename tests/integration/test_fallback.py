"""Fallbacks on real brokers: where a partition starts that no sync speaks of."""

from datetime import UTC, datetime, timedelta
from uuid import uuid4

from confluent_kafka import Producer

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.core import (
    Naming,
    OffsetSync,
    OnUnmapped,
    ReplicationPolicy,
    encode_offset_sync,
)
from airflow_mm2_offsets.kafka.cluster import KafkaCluster
from airflow_mm2_offsets.planning.options import PlanOptions
from airflow_mm2_offsets.planning.plan import plan_failover
from stack.mirror import Stack
from stack.topics import create_topic

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def _write(servers: str, topic: str, minutes: range) -> None:
    """Create a topic with one record a minute, counted from noon."""
    create_topic(servers, topic)
    producer = Producer({"bootstrap.servers": servers})
    for minute in minutes:
        time = NOON + timedelta(minutes=minute)
        producer.produce(topic, str(minute), timestamp=int(time.timestamp() * 1000))
    producer.flush(30)


def _pair(stack: Stack) -> ClusterPair:
    """Return clusters whose syncs topic speaks of another topic alone."""
    alias = uuid4().hex[:8]
    pair = ClusterPair(
        source=KafkaCluster(name="source", config={"bootstrap.servers": stack.source}),
        target=KafkaCluster(name="target", config={"bootstrap.servers": stack.target}),
        naming=Naming(source_alias="a", target_alias=alias, policy=ReplicationPolicy.IDENTITY),
    )
    create_topic(stack.source, pair.syncs_topic)
    producer = Producer({"bootstrap.servers": stack.source})
    key, value = encode_offset_sync(
        OffsetSync(topic="other", partition=0, upstream=0, downstream=0)
    )
    producer.produce(pair.syncs_topic, value, key=key)
    producer.flush(30)
    return pair


def test_timestamp_starts_at_records_as_old_as_the_position(stack: Stack) -> None:
    """The target starts at the first record as young as the source's, less the margin."""
    topic = f"unmapped-{uuid4().hex[:8]}"
    _write(stack.source, topic, range(20))
    _write(stack.target, topic, range(-30, 15))
    pair = _pair(stack)

    def start(position: int, time: datetime | None = None) -> int | None:
        options = PlanOptions(
            on_unmapped=OnUnmapped.TIMESTAMP, unmapped_time=time, unmapped_margin=180
        )
        plan = plan_failover(pair, {topic: {0: position}}, options=options)
        assert plan.fallbacks == 1
        return plan.partitions[0].start

    assert start(10) == 30 + 10 - 3
    assert start(19, NOON + timedelta(minutes=5)) == 30 + 5 - 3
    assert start(19) == 45  # Nothing on the target is as young: its end.
