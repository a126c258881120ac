"""The simulated MirrorMaker 2 that users' tests stand on."""

import os

import httpx
import pytest

from airflow_mm2_offsets.connect.client import ConnectClient
from airflow_mm2_offsets.core import (
    Naming,
    ReplicationPolicy,
    SyncsLocation,
    TopicPartition,
    Watermarks,
)
from airflow_mm2_offsets.errors import ClusterUnreachableError, TopicNotFoundError
from airflow_mm2_offsets.hooks.mm2 import Mm2OffsetHook
from airflow_mm2_offsets.kafka import clients
from airflow_mm2_offsets.kafka.drain import drain
from airflow_mm2_offsets.kafka.syncs import read_syncs
from airflow_mm2_offsets.planning.ids import read_ids
from airflow_mm2_offsets.planning.mirror_config import check_names, read_mirror_connectors
from airflow_mm2_offsets.planning.plan import plan_failover
from airflow_mm2_offsets.testing import MirrorSettings, Mm2Simulation, Record, simulated_mm2

ORDERS = TopicPartition("orders", 0)
COPY = TopicPartition("source.orders", 0)


def _numbers(count: int) -> list[bytes]:
    return [b"%d" % number for number in range(count)]


def _syncs(mm2: Mm2Simulation) -> list[tuple[int, int]]:
    """Return the offset syncs of orders[0] as the package reads them from the topic."""
    syncs = read_syncs(mm2.pair.syncs_cluster, mm2.pair.syncs_topic).index.partitions[ORDERS]
    return list(zip(syncs.upstream, syncs.downstream, strict=True))


def _targets(mm2: Mm2Simulation, position: int) -> tuple[str, int | None]:
    (planned,) = plan_failover(mm2.pair, {"orders": {0: position}}).partitions
    return planned.translation.status.value, planned.translation.target


def test_everything_is_copied_and_committed() -> None:
    """The copies are equal to the records; the first sync comes at once, the last at the commit."""
    with simulated_mm2() as mm2:
        mm2.source.produce(*ORDERS, _numbers(50))
        mm2.mirror()
        assert mm2.target.records(*COPY) == mm2.source.records(*ORDERS)
        assert _syncs(mm2) == [(0, 0), (49, 49)]
        assert mm2.committed_offsets() == {ORDERS: 49}


def test_a_topic_longer_than_a_batch_is_read_whole() -> None:
    """A consumer that takes 1,000 messages at a time gets each: between two batches, too."""
    with simulated_mm2() as mm2:
        for number in range(2_500):
            mm2.write_sync("orders", number, 0, 0)
        syncs = read_syncs(mm2.pair.syncs_cluster, mm2.pair.syncs_topic)
        assert syncs.records_read == len(syncs.index) == 2_500


def test_syncs_are_lag_max_apart() -> None:
    """As ``offset.lag.max`` says: a sync once so many records came after the last one."""
    with simulated_mm2(settings=MirrorSettings(lag_max=10)) as mm2:
        mm2.source.produce(*ORDERS, _numbers(30))
        mm2.mirror(commit=False)
        assert _syncs(mm2) == [(0, 0), (11, 11), (22, 22)]


def test_a_killed_worker_copies_again_what_it_did_not_commit() -> None:
    """The syncs show the rewind; a position in the copies made twice has its newest copy."""
    with simulated_mm2() as mm2:
        mm2.source.produce(*ORDERS, _numbers(20))
        mm2.mirror(max_records=5)
        mm2.mirror(max_records=10, commit=False)
        mm2.restart_worker()
        mm2.mirror()
        assert mm2.target.watermarks(*COPY) == Watermarks(low=0, high=30)
        assert _syncs(mm2) == [(0, 0), (4, 4), (5, 15), (19, 29)]
        assert _targets(mm2, 7) == ("exact", 17)


def test_a_partition_that_is_behind_is_not_translated_as_copied() -> None:
    """What was not copied has no exact answer; after the rest is copied it has one."""
    with simulated_mm2() as mm2:
        mm2.source.produce(*ORDERS, _numbers(20))
        mm2.mirror(max_records=10)
        assert _targets(mm2, 15)[0] != "exact"
        mm2.mirror()
        assert _targets(mm2, 15) == ("exact", 15)
        assert _targets(mm2, 20) == ("exact", 20)


def test_a_transform_drops_and_changes_records() -> None:
    """A dropped record has no copy, so that later offsets differ on the target."""

    def transform(record: Record) -> Record | None:
        number = int(record.value or b"")
        return record._replace(headers=(("copied", b"yes"),)) if number % 2 else None

    with simulated_mm2(settings=MirrorSettings(transform=transform)) as mm2:
        mm2.source.produce(*ORDERS, _numbers(6))
        mm2.mirror()
        copies = mm2.target.records(*COPY)
        assert [record.value for record in copies.values()] == [b"1", b"3", b"5"]
        assert copies[0].headers == (("copied", b"yes"),)


def test_exactly_once_leaves_transaction_markers() -> None:
    """Each commit ends a transaction, whose marker takes a target offset and delivers nothing."""
    with simulated_mm2(settings=MirrorSettings(exactly_once=True)) as mm2:
        mm2.source.produce(*ORDERS, _numbers(4))
        mm2.mirror(max_records=2)
        mm2.mirror(max_records=2, commit=False)
        mm2.restart_worker()  # the open transaction is aborted
        mm2.mirror()
        values = {offset: record.value for offset, record in mm2.target.records(*COPY).items()}
        assert values == {0: b"0", 1: b"1", 6: b"2", 7: b"3"}
        assert mm2.target.watermarks(*COPY).high == 9


def test_offsets_without_a_record_are_skipped() -> None:
    """Holes and retention shift the target's offsets; the record after a hole has a sync."""
    with simulated_mm2() as mm2:
        mm2.source.produce(*ORDERS, _numbers(10))
        mm2.source.skip_offsets(*ORDERS, 3)
        mm2.source.produce(*ORDERS, [b"after", b"last"])
        mm2.source.delete_records(*ORDERS, 4)
        mm2.mirror()
        watermarks = mm2.source.cluster("source").watermarks([ORDERS])
        assert watermarks == {ORDERS: Watermarks(low=4, high=15)}
        assert _syncs(mm2) == [(4, 0), (13, 6), (14, 7)]
        assert mm2.target.records(*COPY)[6].value == b"after"
        assert _targets(mm2, 13) == ("exact", 6)


def test_a_recreated_target_topic_has_another_id() -> None:
    """MirrorMaker 2 goes on where it was: earlier records are missing in the new topic."""
    with simulated_mm2() as mm2:
        mm2.source.produce(*ORDERS, _numbers(3))
        mm2.mirror()
        before = read_ids(mm2.pair, ["orders"], ask_source=True)
        mm2.target.delete_topic("source.orders")
        mm2.source.produce(*ORDERS, _numbers(2))
        mm2.mirror()
        after = read_ids(mm2.pair, ["orders"], ask_source=True)
        assert before.source == after.source
        assert before.target.cluster_id == after.target.cluster_id
        assert before.target.topic_ids != after.target.topic_ids
        assert mm2.target.watermarks(*COPY).high == 2


def test_names_and_the_syncs_topic_follow_the_settings() -> None:
    """Identity policy, other aliases, syncs on the target; internal topics are not copied."""
    naming = Naming(source_alias="east", target_alias="west", policy=ReplicationPolicy.IDENTITY)
    with simulated_mm2(naming, syncs_location=SyncsLocation.TARGET) as mm2:
        mm2.source.create_topic("orders", partitions=3)
        mm2.source.produce("orders", 2, _numbers(3))
        mm2.source.produce("__consumer_offsets", 0, _numbers(3))
        mm2.mirror()
        assert set(mm2.target.topics) == {"orders", "mm2-offset-syncs.east.internal"}
        assert len(mm2.target.topics["orders"].partitions) == 3
        check_names(mm2.pair, read_mirror_connectors(mm2.pair))


@pytest.mark.parametrize("default", [True, False])
def test_a_hook_finds_clusters_and_connect(default: bool) -> None:  # noqa: FBT001 - a case
    """The connections lead to the simulation while it is open, and are gone afterwards."""
    before = dict(os.environ)
    with simulated_mm2() as mm2:
        if default:
            mm2.use_connection()
        else:
            mm2.use_connection("pair", source_conn_id="east", target_conn_id="west")
        mm2.source.produce(*ORDERS, _numbers(3))
        mm2.mirror()
        hook = Mm2OffsetHook("mm2_default" if default else "pair")
        assert hook.timeout == 0.5
        is_reachable, message = hook.test_connection()
        assert is_reachable, message
        connect = hook.get_conn().connect
        assert connect is not None
        (name,) = connect.find_mirror_sources("source", "target")
        assert connect.offsets(name) == {("source", "orders", 0): 2}
        mm2.connect.state = "PAUSED"
        assert connect.status(name).state == "PAUSED"
    assert dict(os.environ) == before
    assert Mm2OffsetHook("mm2_default").timeout == 30.0


def test_an_outage_is_reported_as_a_real_one() -> None:
    """The error names the cluster and its address; after the outage the cluster answers again."""
    with simulated_mm2() as mm2:
        mm2.source.produce(*ORDERS, _numbers(3))
        source = mm2.source.cluster("source", timeout=0.2)
        assert source.watermarks([ORDERS])[ORDERS].high == 3
        mm2.source.is_running = False
        address = mm2.source.bootstrap_servers
        for ask in (source.describe, lambda: source.watermarks([ORDERS])):
            with pytest.raises(ClusterUnreachableError, match=rf"^source .*{address}.* not answer"):
                ask()
        with pytest.raises(ClusterUnreachableError):
            source.topics(["orders"])
        mm2.source.is_running = True
        assert source.topics(["orders"])["orders"].partitions == 1


def test_an_outage_while_records_are_read() -> None:
    """A reader that was about to read gives up after its timeout."""
    with simulated_mm2() as mm2:
        mm2.source.produce(*ORDERS, _numbers(3))
        batches = drain(mm2.source.cluster("source", timeout=0.2), {ORDERS: 0})
        answers = iter([True, True])

        def end_after_two_answers() -> None:
            mm2.source.is_running = next(answers, False)

        mm2.source.before_answer = end_after_two_answers
        with pytest.raises(ClusterUnreachableError):
            list(batches)


def test_a_time_is_looked_up() -> None:
    """The first record that is as young; partitions whose records are all older are absent."""
    with simulated_mm2() as mm2:
        mm2.source.produce("orders", 0, [Record(None, b"a", 1000), Record(None, b"b", 3000)])
        source = mm2.source.cluster("source")
        assert source.offsets_at({ORDERS: 2000}) == {ORDERS: 1}
        assert source.offsets_at({ORDERS: 4000}) == {}


def test_a_missing_topic_is_named() -> None:
    """By a client as well as by the test's own call."""
    with simulated_mm2() as mm2:
        mm2.source.produce(*ORDERS, _numbers(1))
        with pytest.raises(TopicNotFoundError, match=r"orders\[7\]: does not exist"):
            mm2.source.cluster("source").watermarks([ORDERS, TopicPartition("orders", 7)])
        with pytest.raises(
            TopicNotFoundError, match=r"has no topic-partition orders\[7\].*produce"
        ):
            mm2.source.watermarks("orders", 7)
        with pytest.raises(TopicNotFoundError, match=r"has no topic returns"):
            mm2.source.delete_topic("returns")


def test_other_addresses_stay_real(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client of another address is made by librdkafka's class, with the same settings."""
    made: list[dict[str, object]] = []

    def make(settings: dict[str, object], **_: object) -> None:
        made.append(settings)

    monkeypatch.setattr("airflow_mm2_offsets.testing.clients.AdminClient", make)
    with simulated_mm2() as mm2:
        clients.make_admin("source", {"bootstrap.servers": "broker:9092"}, 0.1)
        clients.make_admin("source", mm2.pair.source.config, 0.1)
    assert [settings["bootstrap.servers"] for settings in made] == ["broker:9092"]


def test_a_client_keeps_the_transport_that_it_was_given() -> None:
    """A test can count or change the requests to a simulated worker."""
    with simulated_mm2() as mm2:
        transport = httpx.MockTransport(lambda _: httpx.Response(200, json={"version": "own"}))
        assert ConnectClient(url=mm2.connect.url, transport=transport).check() == "own"
        assert ConnectClient(url=mm2.connect.url).check() == "4.1.0"
