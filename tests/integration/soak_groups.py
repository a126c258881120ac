"""Consumer groups beside MirrorMaker 2's own sync, in one run: what each reads again and loses.

``make soak NAME=groups`` prints the tables of docs/consumer-groups.md.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import wait
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, Producer
from confluent_kafka import TopicPartition as PartitionOffset
from confluent_kafka.admin import AdminClient

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.connect.client import ConnectClient
from airflow_mm2_offsets.core import Naming, ReplicationPolicy, SyncsLocation, TopicPartition
from airflow_mm2_offsets.core.summary import table
from airflow_mm2_offsets.groups import OffsetsFrom, parse_selection, publish_positions, sync_groups
from airflow_mm2_offsets.kafka.cluster import KafkaCluster
from airflow_mm2_offsets.kafka.drain import drain
from airflow_mm2_offsets.kafka.error_codes import is_unanswered
from airflow_mm2_offsets.kafka.syncs import read_syncs
from stack.mirror import Stack
from stack.topics import create_topic
from stack.waiting import wait_until
from tests.soaks import LONGEST, add_figures

if TYPE_CHECKING:
    from airflow_mm2_offsets.groups.report import GroupsReport

pytestmark = pytest.mark.timeout(LONGEST)

TOPIC = "orders-groups"
PARTITIONS = 2
RECORDS = 20_000
BATCH = 50
GROUPS = 20
FLEET = 1_000
QUIET_SECONDS = 15
WAIT_SECONDS = 600
OWN_SYNC = {
    "sync.group.offsets.enabled": "true",
    "sync.group.offsets.interval.seconds": "1",
    "emit.checkpoints.interval.seconds": "1",
    "refresh.groups.interval.seconds": "1",
    "groups": "mm2-.*,fleet-.*",
}
KEYS = [TopicPartition(TOPIC, number) for number in range(PARTITIONS)]


@dataclass(frozen=True, kw_only=True)
class Score:
    """What the groups of one tool would read on the target."""

    tool: str
    without_offset: int
    read_again: int
    most: int
    lost: int


class Ground:
    """Both clusters, their records by offset, and the groups."""

    def __init__(self, stack: Stack) -> None:
        self.stack = stack
        self.pair = ClusterPair(
            source=KafkaCluster(name="source", config={"bootstrap.servers": stack.source}),
            target=KafkaCluster(name="target", config={"bootstrap.servers": stack.target}),
            naming=Naming(
                source_alias="source", target_alias="target", policy=ReplicationPolicy.IDENTITY
            ),
            syncs_location=SyncsLocation.TARGET,
            connect=ConnectClient(url=stack.connect_url),
        )

    def write(self) -> None:
        """Write transactions, some aborted: offsets differ, since MM2 copies what is committed."""
        create_topic(self.stack.source, TOPIC, PARTITIONS)
        producer = Producer(
            {"bootstrap.servers": self.stack.source, "transactional.id": "soak-groups"}
        )
        producer.init_transactions(30)
        for number in range(0, RECORDS, BATCH):
            producer.begin_transaction()
            aborted = number % (10 * BATCH) == 0
            for each in range(number, number + BATCH):
                for partition in range(PARTITIONS):
                    value = b"aborted" if aborted else b"%d-%d" % (partition, each)
                    producer.produce(TOPIC, value, partition=partition)
            end = producer.abort_transaction if aborted else producer.commit_transaction
            end(60)

    def values(self, cluster: KafkaCluster) -> dict[TopicPartition, dict[int, bytes]]:
        """Return the committed records of each partition by offset."""
        read: dict[TopicPartition, dict[int, bytes]] = {key: {} for key in KEYS}
        batches = drain(cluster, dict.fromkeys(KEYS, 0), isolation="read_committed")
        for record in chain.from_iterable(batches):
            value = record.value()
            assert value is not None
            read[TopicPartition(record.topic(), record.partition())][record.offset()] = value
        return read

    def commit_on_source(self, groups: Mapping[str, Mapping[TopicPartition, int]]) -> None:
        """Commit as consumers that have left."""
        admin = AdminClient({"bootstrap.servers": self.stack.source})
        requests = [
            ConsumerGroupTopicPartitions(
                group, [PartitionOffset(*key, offset) for key, offset in offsets.items()]
            )
            for group, offsets in groups.items()
        ]

        def commit() -> bool:
            futures = [
                future
                for request in requests
                for future in admin.alter_consumer_group_offsets([request]).values()
            ]
            wait(futures)
            # The coordinator of a new broker loads its groups first.
            return not any(is_unanswered(each) for each in futures)

        wait_until(commit, "the commits on the source", seconds=WAIT_SECONDS)


@pytest.fixture(scope="module")
def ground(stack: Stack) -> Iterator[Ground]:
    made = Ground(stack)
    made.write()
    wait_until(lambda: _is_copied(made), "the copy", seconds=WAIT_SECONDS)
    yield made
    stack.create_mirror("orders.*")


def _is_copied(ground: Ground) -> bool:
    if TOPIC not in ground.pair.target.topic_names():
        return False
    source, target = ground.values(ground.pair.source), ground.values(ground.pair.target)
    return all([*source[key].values()] == [*target[key].values()] for key in KEYS)


def _positions(ground: Ground) -> dict[int, dict[TopicPartition, int]]:
    """Return where the groups stand: from the beginning to the end, at equal distances."""
    ends = {key: each.high for key, each in ground.pair.source.watermarks(KEYS).items()}
    return {
        number: {key: end * number // (GROUPS - 1) for key, end in ends.items()}
        for number in range(GROUPS)
    }


def _settled(read: Callable[[], object]) -> Callable[[], bool]:
    """Return a condition: what ``read`` returns has not changed for ``QUIET_SECONDS``."""
    state: list[object] = [None, time.monotonic()]

    def is_settled() -> bool:
        now = read()
        if now != state[0] or not now:
            state[:] = [now, time.monotonic()]
        return time.monotonic() - float(str(state[1])) > QUIET_SECONDS

    return is_settled


def _score(
    ground: Ground, tool: str, prefix: str, positions: Mapping[int, Mapping[TopicPartition, int]]
) -> Score:
    """Read the target from each commit as a consumer would, and compare with the source."""
    source, target = ground.values(ground.pair.source), ground.values(ground.pair.target)
    names = {number: f"{prefix}{number}" for number in positions}
    commits = ground.pair.target.group_offsets(names.values()).offsets
    without, again, lost = 0, [0], 0
    for number, at in positions.items():
        for key, position in at.items():
            commit = commits.get(names[number], {}).get(key)
            if commit is None:
                without += 1
                continue
            expected = {value for offset, value in source[key].items() if offset >= position}
            read = {value for offset, value in target[key].items() if offset >= commit.offset}
            again.append(len(read - expected))
            lost += len(expected - read)
    return Score(
        tool=tool, without_offset=without, read_again=sum(again), most=max(again), lost=lost
    )


def test_groups_beside_the_sync_of_mirror_maker_2(
    ground: Ground, capsys: pytest.CaptureFixture[str]
) -> None:
    """No group loses a record by any of the three; ours reads the fewest again.

    The syncs confirm each checkpoint of MirrorMaker 2, but of a partition whose first sync came
    late: syncs alone do not show what was copied before it.
    """
    positions = _positions(ground)
    both = {
        f"{prefix}{number}": at for number, at in positions.items() for prefix in ("mm2-", "ours-")
    }
    ground.commit_on_source(both)
    ground.stack.create_mirror("orders.*", **OWN_SYNC)
    names = [f"mm2-{number}" for number in positions]
    wait_until(
        _settled(lambda: ground.pair.target.group_offsets(names).offsets),
        "MirrorMaker 2",
        seconds=WAIT_SECONDS,
    )
    report = sync_groups(ground.pair, parse_selection("ours-.*"))
    rename = {name: f"checkpointed-{name}" for name in names}
    by_checkpoints = sync_groups(
        ground.pair,
        parse_selection("mm2-.*"),
        offsets_from=OffsetsFrom.CHECKPOINTS,
        rename=rename,
    )
    scores = [
        _score(ground, "MirrorMaker 2's own sync", "mm2-", positions),
        _score(ground, "ours, from its checkpoints", "checkpointed-mm2-", positions),
        _score(ground, "ours, from translation", "ours-", positions),
    ]
    with capsys.disabled():
        print(f"\n{GROUPS} groups, {PARTITIONS} partitions of {RECORDS} records\n")  # noqa: T201
        print(_table(scores))  # noqa: T201
        print(f"reads: {report.reads}; {by_checkpoints.reads}")  # noqa: T201
    add_figures(
        groups=GROUPS,
        read_again_by_MirrorMaker_2=scores[0].read_again,
        read_again_by_ours=scores[-1].read_again,
        lost=sum(each.lost for each in scores),
    )
    assert [each.lost for each in scores] == [0, 0, 0]
    problems = [each.reason for each in by_checkpoints.decisions if each.commit is None]
    assert problems == []
    unconfirmed = {
        each.position.topic_partition for each in by_checkpoints.decisions if each.is_unconfirmed
    }
    syncs = read_syncs(ground.pair.syncs_cluster, ground.pair.syncs_topic).index.partitions
    assert unconfirmed <= {key for key in KEYS if syncs[key].downstream[0] > 0}
    assert scores[-1].without_offset == 0
    assert scores[-1].read_again <= scores[0].read_again


def _table(scores: list[Score]) -> str:
    header = ("offsets by", "without an offset", "read again", "at most", "lost")
    rows = [(s.tool, s.without_offset, s.read_again, s.most, s.lost) for s in scores]
    return table(header, rows)


def test_a_thousand_groups_in_one_read(ground: Ground, capsys: pytest.CaptureFixture[str]) -> None:
    """The checkpoints topic is read once, whatever the number of groups; so are the syncs."""
    ends = {key: each.high for key, each in ground.pair.source.watermarks(KEYS).items()}
    fleet = {f"fleet-{number}": {KEYS[0]: ends[KEYS[0]] - number % 500} for number in range(FLEET)}
    ground.commit_on_source(fleet)
    ground.stack.create_mirror("orders.*", **OWN_SYNC)
    selection = parse_selection("fleet-.*")
    found: list[GroupsReport] = []

    def all_there() -> bool:
        # MirrorMaker 2's own sync commits for the same groups: a dry run needs no guard.
        found[:] = [sync_groups(ground.pair, selection, offsets_from=OffsetsFrom.CHECKPOINTS)]
        return len(found[0].decisions) == FLEET

    wait_until(all_there, "the checkpoints of all groups", seconds=WAIT_SECONDS)
    began = time.monotonic()
    by_checkpoints = sync_groups(ground.pair, selection, offsets_from=OffsetsFrom.CHECKPOINTS)
    middle = time.monotonic()
    translated = sync_groups(ground.pair, selection)
    ended = time.monotonic()
    with capsys.disabled():
        print(f"\n{FLEET} groups: {by_checkpoints.reads}, {middle - began:.1f} s")  # noqa: T201
        print(f"{FLEET} groups: {translated.reads}, {ended - middle:.1f} s")  # noqa: T201
    assert by_checkpoints.reads["checkpoints_topic_reads"] == 1
    assert translated.reads["syncs_topic_reads"] == 1
    assert len({each.position.group for each in by_checkpoints.decisions}) == FLEET


def test_a_group_of_five_thousand_partitions(ground: Ground) -> None:
    """One commit of all would be larger than a batch of __consumer_offsets may be."""
    cluster, wide = replace(ground.pair.target, timeout=300.0), "wide-groups"
    create_topic(ground.stack.target, wide, 5000)
    positions = {wide: dict.fromkeys(range(5000), 0)}
    report = publish_positions(cluster, "wide", positions, f"s3://bucket/{'x' * 150}")
    assert report.to_json()["totals"]["committed"] == 5000
    assert len(cluster.group_offsets(["wide"]).offsets["wide"]) == 5000
