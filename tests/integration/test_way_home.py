"""Real MirrorMaker 2 that copies one way: a consumer goes to the target and home, five times."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain

import pytest

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.core import FailoverPlan, ReplicationPolicy, TopicPartition
from airflow_mm2_offsets.kafka.cluster import KafkaCluster
from airflow_mm2_offsets.kafka.drain import Record, drain
from airflow_mm2_offsets.planning.options import PlanOptions
from airflow_mm2_offsets.planning.plan import plan_failover
from stack.mirror import Stack
from stack.waiting import wait_until
from tests.integration.mirrors import Writer, mirror, topic_partitions, wait_copied

PARTITIONS = (0, 1)
_POLICIES = {
    ReplicationPolicy.IDENTITY: "org.apache.kafka.connect.mirror.IdentityReplicationPolicy",
    ReplicationPolicy.DEFAULT: "org.apache.kafka.connect.mirror.DefaultReplicationPolicy",
}


@pytest.mark.parametrize("policy", list(ReplicationPolicy))
def test_five_round_trips(stack: Stack, policy: ReplicationPolicy) -> None:
    """Under writes, of transactions too, no record is lost and none is read twice."""
    with mirror(stack) as made:
        topic = made.create_topic(len(PARTITIONS))
        settings: dict[str, str | int] = {
            "replication.policy.class": _POLICIES[policy],
            "offset.lag.max": 10,
            "offset-syncs.topic.location": "target",
        }
        made.configure(**settings)
        naming = replace(made.pair.naming, policy=policy)
        job = _Job(replace(made.pair, naming=naming), topic)
        writer = Writer(made, topic)
        for _ in range(5):
            _write(writer)
            job.read_at_home()
            job.move_away()
            _write(writer)
            job.read_half_away()
            job.come_home()
        job.read_at_home()
        assert len(job.values) == len(set(job.values))
        assert set(job.values) == job.all_values()


def _write(writer: Writer) -> None:
    writer.write({0: 25, 1: 13})
    writer.begin({0: 5, 1: 3})
    writer.commit()
    writer.abort({0: 4})
    writer.write({0: 3})


class _Job:
    """A plain consumer in the place of a Spark job."""

    def __init__(self, pair: ClusterPair, topic: str) -> None:
        self.pair, self.topic = pair, topic
        self.away_topic = pair.naming.target_topic(topic)
        self.at_home = dict.fromkeys(PARTITIONS, 0)
        self.away = dict.fromkeys(PARTITIONS, 0)
        self.first: FailoverPlan | None = None
        self.values: list[bytes] = []

    def read_at_home(self) -> None:
        """Read to the last stable offset, as Spark does, and stand there."""
        keys = topic_partitions(self.topic, PARTITIONS)
        stable = self.pair.source.watermarks(keys, isolation="read_committed")
        stops = {key: each.high for key, each in stable.items()}
        self.values += _values(self.pair.source, self.topic, self.at_home, stops)
        self.at_home = {number: end for (_, number), end in stops.items()}

    def move_away(self) -> None:
        positions = {self.topic: self.at_home}
        wait_copied(self.pair, positions)
        self.first = plan_failover(self.pair, positions)
        self.away = dict(self.first.target_positions()[self.away_topic])

    def read_half_away(self) -> None:
        """Read one partition until all that is written was copied, the other in part."""
        wait_until(lambda: self._left_away(0) >= 33, "MirrorMaker 2 to copy what was written")
        for number, share in ((0, 1.0), (1, 0.5)):
            start = {number: self.away[number]}
            records = list(_records(self.pair.target, self.away_topic, start))
            read = records[: int(len(records) * share)]
            self.values += [each.value() or b"" for each in read]
            if read:
                self.away[number] = read[-1].offset() + 1

    def come_home(self) -> None:
        options = PlanOptions(first_plan=self.first)
        plan = plan_failover(self.pair.exchanged(), {self.away_topic: self.away}, options=options)
        assert plan.max_reread == 0, plan.to_json()
        self.at_home = dict(plan.target_positions()[self.topic])

    def all_values(self) -> set[bytes]:
        return {*_values(self.pair.source, self.topic, dict.fromkeys(PARTITIONS, 0))}

    def _left_away(self, number: int) -> int:
        start = {number: self.away[number]}
        return sum(1 for _ in _records(self.pair.target, self.away_topic, start))


def _records(
    cluster: KafkaCluster,
    topic: str,
    starts: dict[int, int],
    stops: dict[TopicPartition, int] | None = None,
) -> Iterator[Record]:
    positions = {TopicPartition(topic, number): start for number, start in starts.items()}
    batches = drain(cluster, positions, stops=stops, isolation="read_committed")
    return chain.from_iterable(batches)


def _values(
    cluster: KafkaCluster,
    topic: str,
    starts: dict[int, int],
    stops: dict[TopicPartition, int] | None = None,
) -> list[bytes]:
    return [record.value() or b"" for record in _records(cluster, topic, starts, stops)]
