"""What stands in the way of a failover, as real clusters and a real Kafka Connect show it."""

import re
import socket
from collections.abc import Iterator
from dataclasses import replace

import pytest
from confluent_kafka import Producer
from confluent_kafka import TopicPartition as KafkaTopicPartition
from confluent_kafka.admin import AdminClient

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.connect.client import ConnectClient
from airflow_mm2_offsets.core import Positions, SyncsLocation
from airflow_mm2_offsets.kafka.cluster import KafkaCluster
from airflow_mm2_offsets.planning.checks import find_problems
from airflow_mm2_offsets.planning.plan import plan_failover
from stack.mirror import Stack
from stack.topics import create_topic
from stack.waiting import wait_until
from tests.integration.mirrors import Writer, mirror

BUSY, DELETED = range(2)


@pytest.fixture(scope="module")
def writer(stack: Stack) -> Iterator[Writer]:
    """Return a writer to a topic that is copied as far as it goes."""
    with mirror(stack) as made:
        writer = Writer(made, made.create_topic(2))
        writer.write({BUSY: 10, DELETED: 10})
        before = KafkaTopicPartition(writer.topic, DELETED, 5)
        admin = AdminClient({"bootstrap.servers": stack.source})
        admin.delete_records([before])[before].result(timeout=30)
        made.configure()
        wait_until(
            lambda: made.has_noted(writer), f"MirrorMaker 2 to note its copy of {writer.topic}"
        )
        yield writer


@pytest.fixture
def positions(writer: Writer) -> Positions:
    """Return positions that nothing is wrong with."""
    return {writer.topic: writer.mirror.ends(writer.topic)}


def _only_problem(pair: ClusterPair, positions: Positions) -> str:
    (problem,) = find_problems(pair, positions)
    return problem


def _unreachable(name: str) -> KafkaCluster:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
    return KafkaCluster(name=name, config={"bootstrap.servers": address}, timeout=1)


def test_a_healthy_pair_has_no_problems(writer: Writer, positions: Positions) -> None:
    """A healthy pair has no problems, with Connect and without it."""
    pair = writer.mirror.pair
    assert find_problems(pair, positions) == []
    assert find_problems(replace(pair, connect=None), positions) == []


def test_records_that_are_no_syncs_are_counted(writer: Writer, positions: Positions) -> None:
    """Truncated and foreign records on the offset-syncs topic are skipped and counted."""
    pair = writer.mirror.pair
    producer = Producer({"bootstrap.servers": writer.mirror.stack.target})
    for value in (b"", b"foreign", None):
        producer.produce(pair.syncs_topic, key=b"key", value=value, partition=0)
    assert producer.flush(30) == 0
    assert find_problems(pair, positions) == []
    assert plan_failover(pair, positions).syncs_skipped == 3


def test_clusters_that_do_not_answer_are_named(writer: Writer, positions: Positions) -> None:
    """Each is named, with its address, the seconds tried and the reason."""
    pair = replace(
        writer.mirror.pair,
        source=_unreachable("source"),
        target=_unreachable("target"),
        connect=ConnectClient(url="http://127.0.0.1:1"),
    )
    for problem, name in zip(
        find_problems(pair, positions), ("source", "target", "Connect"), strict=True
    ):
        assert problem.startswith(name)
        assert re.search(
            r"127\.0\.0\.1:\d+.* did not answer, tried for \d\.\d s: .*; check", problem
        )


def test_a_syncs_topic_in_another_place(writer: Writer, positions: Positions) -> None:
    """The problem names the missing topic and the syncs topics that exist."""
    pair = writer.mirror.pair
    told = replace(pair, syncs_location=SyncsLocation.SOURCE)
    assert "'source' in our settings" in _only_problem(told, positions)
    elsewhere = _only_problem(replace(told, connect=None), positions)
    assert re.match(
        r"source: mm2-offset-syncs\.\S+-b\.internal: the offset-syncs topic does not exist; ",
        elsewhere,
    )
    assert "offset-syncs.topic.location" in elsewhere
    naming = replace(pair.naming, source_alias="unknown")
    other = _only_problem(replace(pair, naming=naming, connect=None), positions)
    assert "mm2-offset-syncs.unknown.internal: the offset-syncs topic does not exist; " in other
    assert pair.syncs_topic in other


def test_a_topic_that_is_not_copied(writer: Writer, stack: Stack) -> None:
    """A topic that the target lacks is named, and so is one that MirrorMaker 2 does not copy."""
    pair, name = writer.mirror.pair, f"other-{writer.topic}"
    create_topic(stack.source, name)
    Writer(writer.mirror, name).write({0: 3})
    missing = _only_problem(pair, {name: {0: 3}})
    assert missing.startswith(f"target has no topic {name}: see that the topics setting")
    create_topic(stack.target, name)
    never = _only_problem(pair, {name: {0: 3}})
    assert re.match(
        rf"{name}\[0\] at 3: .*MirrorMaker 2 never copied it; see that the topics", never
    )


def test_positions_that_the_source_cannot_have(writer: Writer) -> None:
    """A position beyond the end or below the first offset is named with both numbers."""
    topic = writer.topic
    problems = find_problems(writer.mirror.pair, {topic: {BUSY: 11, DELETED: 4}})
    beyond, below = problems
    assert beyond.startswith(f"{topic}[{BUSY}] at 11: position 11 lies beyond the source's end 10")
    assert below.startswith(f"{topic}[{DELETED}] at 4: position 4 lies below the source's first ")
    assert all(
        each.endswith("check the checkpoint location and the source's connection")
        for each in problems
    )


def test_partitions_that_differ(writer: Writer, positions: Positions) -> None:
    """Partitions that only the checkpoint or only the topic has are named."""
    pair, topic = writer.mirror.pair, writer.topic
    for partitions, difference in (
        ({BUSY: 10}, "has partitions [1], the checkpoint has not; "),
        ({**positions[topic], 2: 0}, "lacks partitions [2] of the checkpoint; "),
    ):
        on_source, on_target = find_problems(pair, {topic: partitions})
        assert on_source.startswith(f"source: topic {topic} {difference}")
        assert on_target.startswith(f"target: topic {topic} {difference}")


@pytest.mark.parametrize(("action", "state"), [("pause", "PAUSED"), ("stop", "STOPPED")])
def test_a_connector_that_does_not_run(
    writer: Writer, positions: Positions, action: str, state: str
) -> None:
    """A paused or stopped connector is named, with the way to resume it."""
    made = writer.mirror
    made.ask("PUT", f"/{action}")
    wait_until(lambda: set(made.states()) == {state}, f"the connector to {action}")
    problem = _only_problem(made.pair, positions)
    assert problem.startswith(
        f"Connect at {made.stack.connect_url}: connector {made.name} is {state}; "
    )
    assert f"PUT /connectors/{made.name}/resume" in problem
    made.ask("PUT", "/resume")
    made.wait_running()


def test_a_task_that_failed(writer: Writer, positions: Positions) -> None:
    """A task that failed is named with the first line of its trace, and how to restart it."""
    made = writer.mirror
    made.configure(**{"producer.override.max.request.size": 1})

    def fails() -> bool:
        writer.write({BUSY: 1})  # The task with the old settings may still take some.
        return "FAILED" in made.states()

    wait_until(fails, "the task to fail")
    problem = _only_problem(made.pair, positions)
    assert re.search(r": task \d of connector \w+ is FAILED \(\S+Exception: .*\); mend", problem)
    made.configure()
    made.ask("POST", "/restart?includeTasks=true")
    made.wait_running()


def test_a_connector_with_nothing_to_copy(writer: Writer, positions: Positions) -> None:
    """A connector whose topics setting matches no topic has no task, and is named."""
    made = writer.mirror
    made.configure(topics="nothing-like-it")
    wait_until(lambda: made.states() == ["RUNNING"], "the connector to have no task")
    assert "runs without a task; its topics setting" in _only_problem(made.pair, positions)
