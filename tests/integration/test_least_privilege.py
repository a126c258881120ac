"""Each task works with the rights that are listed for it; without one, the error names it."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer

from airflow_mm2_offsets.archive import SyncArchive
from airflow_mm2_offsets.archive.update import archive_syncs
from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.core import TopicPartition
from airflow_mm2_offsets.core.acls import TASK_RIGHTS, Operation, Resource
from airflow_mm2_offsets.core.group_offsets import GroupCommit, GroupRules
from airflow_mm2_offsets.core.wire import Checkpoint, encode_checkpoint
from airflow_mm2_offsets.errors import ArchiveError, ClusterRefusedError
from airflow_mm2_offsets.groups import (
    OffsetsFrom,
    parse_selection,
    publish_positions,
    sync_groups,
)
from airflow_mm2_offsets.kafka.cluster import KafkaCluster
from airflow_mm2_offsets.kafka.syncs import read_syncs
from airflow_mm2_offsets.planning.acls import ClusterAcl, acls_of
from airflow_mm2_offsets.planning.heartbeats import read_heartbeats
from airflow_mm2_offsets.planning.ids import read_ids
from airflow_mm2_offsets.planning.plan import plan_failover, still_copying
from airflow_mm2_offsets.storage import open_location
from stack.acls import grant, revoke_all
from stack.mirror import Broker
from stack.topics import create_topic
from stack.waiting import wait_until
from tests.integration.secured import Secured, scram

GROUP = "shop"
SIDES: tuple[Broker, ...] = ("source", "target")


def _archive(pair: ClusterPair, _: Secured, folder: Path) -> object:
    return archive_syncs(pair, SyncArchive(open_location(str(folder / "archive"), ArchiveError)))


def _check(pair: ClusterPair, secured: Secured, _: Path) -> object:
    topic = secured.mirrored.topic
    pair.target.topic_settings([topic])
    pair.source.readers([topic])
    read_heartbeats(pair)
    return plan_failover(pair, secured.positions)


def _wait(pair: ClusterPair, secured: Secured, _: Path) -> object:
    """Ask about the ends, where a stopped job is: markers and aborted records lie before some."""
    ends = {number: each.high for number, each in secured.mirrored.watermarks.items()}
    return still_copying(pair, {secured.mirrored.topic: ends})


def _forecast(pair: ClusterPair, secured: Secured, _: Path) -> object:
    read_heartbeats(pair)
    return plan_failover(pair, secured.positions)


def _groups(pair: ClusterPair, secured: Secured, _: Path) -> object:
    """List, read and commit; the live consumer is on the source alone."""
    assert GROUP in pair.source.group_names()
    pair.source.group_offsets([GROUP])
    plan_failover(pair, secured.positions)
    return _commit(pair.target, secured)


def _checkpointed_groups(pair: ClusterPair, *_: object) -> object:
    return sync_groups(
        pair,
        parse_selection(GROUP),
        offsets_from=OffsetsFrom.CHECKPOINTS,
        rules=GroupRules(overwrite_others=True),  # of the task before
    )


def _publish(pair: ClusterPair, secured: Secured, _: Path) -> object:
    """Publish for a group that is active here, and commit nevertheless, as if it were not."""
    publish_positions(pair.source, GROUP, secured.positions, "s3://bucket/orders")
    return _commit(pair.source, secured)


def _commit(cluster: KafkaCluster, secured: Secured) -> object:
    key = TopicPartition(secured.mirrored.topic, 0)
    cluster.group_states({GROUP: {key}})
    return cluster.commit_group_offsets({GROUP: {key: GroupCommit(offset=0)}})


TASKS: dict[str, Callable[[ClusterPair, Secured, Path], object]] = {
    "syncs": lambda pair, *_: read_syncs(pair.syncs_cluster, pair.syncs_topic),
    "ids": lambda pair, secured, _: read_ids(pair, secured.positions, ask_source=True),
    "wait": _wait,
    "translate": lambda pair, secured, _: plan_failover(pair, secured.positions),
    "archive": _archive,
    "forecast": _forecast,
    "check": _check,
    "groups": _groups,
    "checkpointed_groups": _checkpointed_groups,
    "publish": _publish,
}
"""What the tasks ask the clusters; a reconciliation's records are read by a Spark job."""


@pytest.fixture(scope="module", autouse=True)
def reader(secured: Secured) -> Iterator[None]:
    """A member of a consumer group on the source: ``check`` describes such groups."""
    consumer = Consumer(
        {
            "bootstrap.servers": secured.stack.source,
            "group.id": GROUP,
            "auto.offset.reset": "earliest",
            "log_level": 0,
        }
    )
    consumer.subscribe([secured.mirrored.topic])
    wait_until(lambda: consumer.poll(0.5) is not None, "a member of the group shop")
    yield
    consumer.close()


@pytest.fixture(scope="module", autouse=True)
def checkpoint(secured: Secured) -> None:
    """A checkpoint of that group, as MirrorMaker 2 writes it: above what ``groups`` commits."""
    topic = secured.open_pair.naming.checkpoints_topic()
    create_topic(secured.stack.target, topic)
    written = Checkpoint(
        group=GROUP, topic=secured.mirrored.topic, partition=0, upstream=1, downstream=1
    )
    key, value = encode_checkpoint(written)
    producer = Producer({"bootstrap.servers": secured.stack.target, "log_level": 0})
    producer.produce(topic, value, key)
    assert producer.flush(30) == 0


def _pair(secured: Secured) -> ClusterPair:
    """Return the clusters without Connect, whose filters would explain what compaction may."""
    return replace(secured.pair(scram), connect=None)


def _rights(secured: Secured, task: str) -> list[ClusterAcl]:
    return acls_of(secured.open_pair, task, [secured.mirrored.topic])


def _grant(secured: Secured, rights: list[ClusterAcl]) -> None:
    for side in SIDES:
        servers = getattr(secured.stack, side)
        revoke_all(servers)
        principal = secured.stack.clusters[side].principals[0]
        grant(servers, [principal], [each.acl for each in rights if each.side == side])


def _without(secured: Secured, task: str) -> Iterator[tuple[list[ClusterAcl], ClusterAcl]]:
    """Yield what is granted, and the right that the error must name.

    Who lacks Read lacks Describe too, unless that is granted: brokers refuse this one first.
    """
    rights = _rights(secured, task)
    for removed in rights:
        left = [each for each in rights if each != removed]
        if removed.acl.operation is not Operation.READ:
            yield left, removed
            continue
        described = removed._replace(acl=replace(removed.acl, operation=Operation.DESCRIBE))
        yield left, described
        yield [*left, described], removed


@pytest.mark.parametrize("task", TASKS)
def test_a_task_works_with_its_rights_alone(secured: Secured, task: str, tmp_path: Path) -> None:
    """Nothing else is granted: the brokers allow nobody what no ACL allows."""
    _grant(secured, _rights(secured, task))
    assert TASKS[task](_pair(secured), secured, tmp_path) is not None


@pytest.mark.parametrize("task", TASKS)
def test_each_missing_right_is_named(
    secured: Secured, task: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The error names operation, resource and principal, and the command that grants it.

    Without the copies' settings a plan is made, but refuses more: a warning says the same.
    """
    for number, (left, missing) in enumerate(_without(secured, task)):
        _grant(secured, left)
        caplog.clear()
        error = _refusal(secured, task, tmp_path / str(number))
        cluster, acl = secured.stack.clusters[missing.side], missing.acl
        assert error or acl.operation is Operation.DESCRIBE_CONFIGS, f"works without {missing}"
        said = error or caplog.text
        if acl.resource is Resource.GROUP:
            acl = replace(acl, name=GROUP)  # the one that the request was about
        assert f"{cluster.principals[0]} lacks {acl};" in said, missing
        assert acl.command(cluster.principals[0], cluster.sasl) in said


def _refusal(secured: Secured, task: str, folder: Path) -> str:
    """Return the error; none where the task works."""
    folder.mkdir()
    try:
        TASKS[task](_pair(secured), secured, folder)
    except ClusterRefusedError as error:
        return str(error)
    return ""


def test_every_task_that_asks_the_clusters_is_tried() -> None:
    """``tests.e2e.test_secured`` tries those that need a Spark job or a whole failover.

    ``apply`` and ``offsets`` describe topics, as ``ids`` does, and else ask Kafka Connect.
    """
    elsewhere = {"doctor", "reconcile", "failover", "stream", "apply", "offsets"}
    assert {each.task for each in TASK_RIGHTS} - TASKS.keys() == elsewhere
