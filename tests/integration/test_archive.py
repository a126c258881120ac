"""The archive beside a real MirrorMaker 2: it answers as the syncs topic did."""

from collections.abc import Iterator
from dataclasses import replace
from math import inf
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka import TopicPartition as KafkaTopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
)

from airflow_mm2_offsets.archive import SyncArchive
from airflow_mm2_offsets.archive.update import archive_syncs
from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.core import (
    Basis,
    Positions,
    SyncIndex,
    SyncsLocation,
    TopicPartition,
    Translation,
)
from airflow_mm2_offsets.errors import ArchiveError, ClusterUnreachableError, SyncsTopicError
from airflow_mm2_offsets.kafka.cluster import KafkaCluster
from airflow_mm2_offsets.kafka.syncs import read_syncs
from airflow_mm2_offsets.planning.options import PlanOptions
from airflow_mm2_offsets.planning.plan import plan_failover
from airflow_mm2_offsets.planning.syncs import load_syncs
from stack.mirror import Stack
from stack.topics import create_topic
from stack.waiting import wait_until
from tests.integration.mirrors import Mirror, mirror, topic_partitions
from tests.unit.archive import archive_builder


class Moving:
    """A topic of two partitions under a mirror, whose syncs lie on the source."""

    def __init__(self, stack: Stack, made: Mirror) -> None:
        self.stack = stack
        self.mirror = made
        self.pair = replace(made.pair, syncs_location=SyncsLocation.SOURCE)
        self.topic = f"{made.name}-orders"
        self.source = AdminClient({"bootstrap.servers": stack.source})
        self.target = AdminClient({"bootstrap.servers": stack.target})
        self.producer = Producer({"bootstrap.servers": stack.source})
        self.written = 0
        create_topic(stack.source, self.topic, 2)

    def start(self) -> None:
        location: dict[str, str | int] = {
            "offset-syncs.topic.location": "source",
            "offset.lag.max": 10,
        }
        self.mirror.configure(**location)
        self.mirror.wait_running()

    def delete(self, admin: AdminClient, cluster: KafkaCluster, topic: str) -> None:
        admin.delete_topics([topic])[topic].result(timeout=30)
        wait_until(lambda: topic not in cluster.topics([topic]), f"{topic} to go")

    def delete_records(self, topic: str) -> None:
        """Delete all that a topic of the source holds, as compaction takes its time."""
        entry = ConfigEntry("cleanup.policy", "delete", incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[entry])
        self.source.incremental_alter_configs([resource])[resource].result(timeout=30)
        until = KafkaTopicPartition(topic, 0, -1)
        self.source.delete_records([until])[until].result(timeout=30)

    def write(self, count: int = 100) -> None:
        """Write to both partitions, and wait until a sync of the last records is there."""
        for partition in (0, 1):
            for number in range(count):
                self.producer.produce(self.topic, value=b"%d" % number, partition=partition)
        assert self.producer.flush(30) == 0
        self.written += count
        wait_until(self._synced, f"syncs of {self.topic}")

    def stop(self) -> None:
        """Stop the connector; nothing writes syncs any more."""
        self.mirror.ask("PUT", "/stop")
        wait_until(lambda: self.mirror.states() == ["STOPPED"], "the connector to stop")

    def _synced(self) -> bool:
        try:
            index = read_syncs(self.pair.syncs_cluster, self.pair.syncs_topic).index
        except SyncsTopicError:
            return False
        return all(
            partition in index.partitions
            and index.partitions[partition].last.upstream == self.written - 1
            for partition in topic_partitions(self.topic, range(2))
        )

    def positions(self, position: int) -> Positions:
        return {self.topic: {0: position, 1: position + 1}}


@pytest.fixture
def moving(stack: Stack) -> Iterator[Moving]:
    with mirror(stack) as made:
        yield Moving(stack, made)


@pytest.fixture
def archive(tmp_path: Path) -> SyncArchive:
    return SyncArchive(str(tmp_path / "archive"))


def contents(index: SyncIndex) -> dict[TopicPartition, tuple[object, ...]]:
    """Return all but the source's end: only an archive notes it, where the first sync was lost."""
    partitions = {key: syncs.with_source_end(0) for key, syncs in index.partitions.items()}
    return archive_builder.contents(SyncIndex.of_partitions(partitions))


def loaded(pair: ClusterPair, archive: SyncArchive) -> SyncIndex:
    return load_syncs(pair, archive).index


def test_archive_and_topic_answer_as_the_topic(moving: Moving, archive: SyncArchive) -> None:
    """Whatever part is archived or compacted, archive and topic give the topic's index."""
    moving.start()
    for _ in range(3):
        moving.write()
        whole = contents(read_syncs(moving.pair.syncs_cluster, moving.pair.syncs_topic).index)
        assert contents(loaded(moving.pair, archive)) == whole
        run = archive_syncs(moving.pair, archive)
        assert run.new_syncs > 0
        now = read_syncs(moving.pair.syncs_cluster, moving.pair.syncs_topic)
        assert run.total == len(now.index)
        assert contents(loaded(moving.pair, archive)) == whole
    assert archive.compact(over=1) == 3
    assert contents(loaded(moving.pair, archive)) == whole
    (run_again, first) = (archive_syncs(moving.pair, archive), run)
    assert (run_again.new_syncs, run_again.total) == (0, first.total)


def test_the_archive_keeps_deleted_syncs(moving: Moving, archive: SyncArchive) -> None:
    """After syncs, and then the topic, are deleted, the archive answers as before."""
    moving.start()
    moving.write()
    archive_syncs(moving.pair, archive)
    before = read_syncs(moving.pair.syncs_cluster, moving.pair.syncs_topic).index
    whole, first = contents(before), before.partitions[TopicPartition(moving.topic, 0)].first
    moving.stop()
    syncs = moving.pair.syncs_topic
    moving.delete_records(syncs)
    assert contents(loaded(moving.pair, archive)) == whole

    moving.delete(moving.source, moving.pair.source, syncs)
    alone = load_syncs(moving.pair, archive)
    assert contents(alone.index) == whole
    assert alone.as_of is not None
    with pytest.raises(SyncsTopicError, match="does not exist"):
        archive_syncs(moving.pair, archive)

    moving.mirror.ask("PUT", "/resume")
    moving.mirror.wait_running()
    moving.write()
    run = archive_syncs(moving.pair, archive)
    assert run.incarnation == 2
    assert "incarnation 2" in run.notes[0]
    index = loaded(moving.pair, archive)
    assert index.translate(moving.topic, 0, first.upstream).target == first.downstream
    assert index.partitions[TopicPartition(moving.topic, 0)].last.upstream == 199
    assert len(index) > len(read_syncs(moving.pair.syncs_cluster, moving.pair.syncs_topic).index)


def test_a_recreated_target_topic_is_refused(moving: Moving, archive: SyncArchive) -> None:
    """Positions of the old topic are refused before and after the archive has seen the new one."""
    moving.start()
    moving.write()
    archive_syncs(moving.pair, archive)
    moving.stop()
    moving.delete(moving.target, moving.pair.target, moving.topic)
    create_topic(moving.stack.target, moving.topic, 2)
    for _ in range(2):
        answer = loaded_answer(moving, archive)
        assert answer is Basis.HISTORY_CUT
        run = archive_syncs(moving.pair, archive)
    assert run.total == 0
    assert not run.notes


def loaded_answer(moving: Moving, archive: SyncArchive) -> Basis:
    plan = plan_failover(moving.pair, moving.positions(50), options=PlanOptions(archive=archive))
    (basis,) = {each.translation.basis for each in plan.partitions}
    return basis


def test_with_the_source_gone_the_archive_answers(moving: Moving, archive: SyncArchive) -> None:
    """The plan from the archive alone equals the topic's, and names the time of the archive.

    Where MirrorMaker 2 has sent no sync for the first records, the archive says more: it has noted
    where the source ended after the first sync.
    """
    moving.start()
    moving.write()
    run = archive_syncs(moving.pair, archive)
    with_topic = PlanOptions(read_source=False)
    alone = PlanOptions(read_source=False, archive=archive)
    gone = lost(moving.pair)
    for position in (0, 33, 99):
        positions = moving.positions(position)
        before = plan_failover(moving.pair, positions, options=with_topic)
        after = plan_failover(gone, positions, options=alone)
        for by_archive, by_topic in zip(after.partitions, before.partitions, strict=True):
            near, wide = by_archive.translation, by_topic.translation
            if wide.basis is Basis.COPYING_AGAIN:
                (low, high), (lowest, highest) = _bounds(near), _bounds(wide)
                # The target was empty: each copy has the offset of its record.
                assert lowest <= low <= near.position <= high <= highest
            else:
                assert by_archive == by_topic
        assert (before.syncs_as_of, after.syncs_as_of) == (None, run.as_of)
    with pytest.raises(ClusterUnreachableError):
        plan_failover(gone, moving.positions(0), options=PlanOptions(archive=archive))


def _bounds(answer: Translation) -> tuple[float, float]:
    return (
        -inf if answer.low is None else answer.low,
        inf if answer.high is None else answer.high,
    )


def test_with_the_source_gone_a_recreated_target_topic_is_refused(
    moving: Moving, archive: SyncArchive
) -> None:
    """The archive knows only the old topic: the plan is refused and names both topic ids."""
    moving.start()
    moving.write()
    run = archive_syncs(moving.pair, archive)
    moving.stop()
    old = moving.pair.target.topics([moving.topic])[moving.topic].topic_id
    moving.delete(moving.target, moving.pair.target, moving.topic)
    create_topic(moving.stack.target, moving.topic, 2)
    new = moving.pair.target.topics([moving.topic])[moving.topic].topic_id
    # Somebody else has filled it: what the archive knows lies within its watermarks.
    producer = Producer({"bootstrap.servers": moving.mirror.stack.target})
    for number in range(400):
        producer.produce(moving.topic, value=b"%d" % number, partition=number % 2)
    assert producer.flush(30) == 0
    alone = PlanOptions(read_source=False, archive=archive)
    plan = plan_failover(lost(moving.pair), moving.positions(50), options=alone)
    for each in plan.partitions:
        assert each.translation.basis is Basis.HISTORY_CUT
        assert f"had the id {old} when the archive last saw it and has {new} now" in (
            each.translation.reason
        )
    assert plan.syncs_as_of == run.as_of


def lost(pair: ClusterPair) -> ClusterPair:
    """Return the pair with a source that does not answer."""
    source = KafkaCluster(name="source", config={"bootstrap.servers": "127.0.0.1:1"}, timeout=2)
    return replace(pair, source=source, connect=None)


def test_an_archive_of_another_pair_is_refused(moving: Moving, archive: SyncArchive) -> None:
    """The same names on other clusters, here swapped, are another pair."""
    moving.start()
    moving.write()
    archive_syncs(moving.pair, archive)
    turned = replace(moving.pair, source=moving.pair.target, target=moving.pair.source)
    with pytest.raises(ArchiveError, match="another pair"):
        load_syncs(turned, archive)
