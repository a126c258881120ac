"""The index that a server keeps in memory."""

import gc
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

import pytest

from airflow_mm2_offsets.api.cache import SyncCache, read_on
from airflow_mm2_offsets.core import SyncIndex, TopicPartition
from airflow_mm2_offsets.errors import ClusterUnreachableError, SyncsTopicError
from airflow_mm2_offsets.kafka.cluster import KafkaCluster
from airflow_mm2_offsets.kafka.descriptions import TopicInfo
from airflow_mm2_offsets.kafka.stable_read import SyncsTopicState
from airflow_mm2_offsets.kafka.syncs import SyncsSnapshot
from stack.waiting import wait_until
from tests.support.pairs import Pair

ORDERS = TopicPartition("orders", 0)


def cached(*pairs: tuple[int, int], next_offset: int = 0) -> SyncsSnapshot:
    return SyncsSnapshot(
        index=SyncIndex().extended({ORDERS: pairs}),
        next_offset=next_offset,
        topic_id="a",
        records_read=0,
        read_at=datetime.now(UTC),
    )


def test_a_refresh_swaps_one_reference() -> None:
    """A reader sees the whole old index or the whole new one."""
    first, second = cached((0, 0)), cached((0, 0), (10, 12))
    previous: list[SyncsSnapshot | None] = []

    def read(snapshot: SyncsSnapshot | None) -> SyncsSnapshot:
        previous.append(snapshot)
        return second if snapshot else first

    cache = SyncCache(read)
    assert cache.state.syncs is None
    assert cache.refresh() is first
    before = cache.state
    assert cache.refresh() is second
    assert before.syncs is first
    assert previous == [None, first]


def test_latest_leaves_the_cache_alone() -> None:
    """The syncs that were read for one answer do not enter the cache."""
    cache = SyncCache(lambda _previous: cached((0, 0)))
    first = cache.refresh()
    assert cache.latest() is not first
    assert cache.state.syncs is first


def test_a_failed_refresh_keeps_the_last_good_one() -> None:
    """The syncs are marked stale with the error until a refresh succeeds."""
    outcomes: list[Callable[[], SyncsSnapshot]] = [partial(cached, (0, 0)), _fail, _fail, cached]
    cache = SyncCache(lambda _previous: outcomes.pop(0)())
    good = cache.refresh()
    for failures in (1, 2):
        with pytest.raises(ClusterUnreachableError, match="no broker"):
            cache.refresh()
        assert cache.state.syncs is good
        assert str(cache.state.error) == "no broker"
        assert (cache.state.refreshes, cache.state.failures) == (1, failures)
    cache.refresh()
    assert cache.state.error is None
    assert cache.state.syncs is not good


def _fail_unexpectedly() -> SyncsSnapshot:
    raise ValueError("x")


def _fail() -> SyncsSnapshot:
    raise ClusterUnreachableError("no broker")


class Gate:
    """A reader that waits to be let through, and counts."""

    def __init__(self) -> None:
        self.reads = 0
        self.entered = threading.Semaphore(0)
        self.open = threading.Semaphore(0)

    def __call__(self, _previous: SyncsSnapshot | None) -> SyncsSnapshot:
        self.reads += 1
        self.entered.release()
        assert self.open.acquire(timeout=10)
        return cached((self.reads, self.reads))


class CountingLock:
    """A lock that tells how many have come to it."""

    def __init__(self) -> None:
        self.came = 0
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        self.came += 1
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


@pytest.mark.parametrize("method", ["refresh", "latest"])
def test_many_calls_at_once_share_a_read(monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    """Callers that come during a read wait for the next read, which serves all of them."""
    gate, lock = Gate(), CountingLock()
    cache = SyncCache(gate)
    monkeypatch.setattr(getattr(cache, f"_shared_{method}"), "_next_lock", lock)
    call = getattr(cache, method)
    with ThreadPoolExecutor(9) as pool:
        first = pool.submit(call)
        assert gate.entered.acquire(timeout=10)
        late = [pool.submit(call) for _ in range(8)]
        wait_until(lambda: lock.came == 10, "all to have come")
        gate.open.release(2)
        assert first.result(10).index.partitions[ORDERS].last == (1, 1)
        # None of them is content with a read that began before it came.
        assert {each.result(10).index.partitions[ORDERS].last for each in late} == {(2, 2)}
    assert gate.reads == 2


def test_readers_do_not_wait_for_a_refresh() -> None:
    """The last state is there while the next one is read."""
    gate = Gate()
    cache = SyncCache(gate)
    gate.open.release()
    good = cache.refresh()
    assert gate.entered.acquire(timeout=10)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(cache.refresh)
        assert gate.entered.acquire(timeout=10)
        assert cache.state.syncs is good
        gate.open.release()
        assert running.result(10) is cache.state.syncs


def test_old_indexes_are_freed() -> None:
    """Neither a refresh nor a failure keeps replaced syncs or half a read in memory."""

    def fail() -> SyncsSnapshot:
        half = cached((0, 0))
        raise ClusterUnreachableError(f"no broker after {len(half.index)}")

    before = _count_snapshots()
    reads: list[Callable[[], SyncsSnapshot]] = [partial(cached, (0, 0)), fail]
    outcomes = iter(reads * 10)
    cache = SyncCache(lambda _previous: next(outcomes)())
    for _ in range(20):
        with suppress(ClusterUnreachableError):
            cache.refresh()
    assert _count_snapshots() == before + 1


def _count_snapshots() -> int:
    gc.collect()
    return sum(type(each) is SyncsSnapshot for each in gc.get_objects())


def test_the_thread_refreshes_until_it_is_stopped() -> None:
    """It continues after any failure, and ends once it is stopped."""
    outcomes: list[Callable[[], SyncsSnapshot]] = [cached, _fail, _fail_unexpectedly, cached]
    cache = SyncCache(lambda _previous: outcomes.pop(0)() if outcomes else cached(), interval=0.01)
    cache.start()
    try:
        wait_until(lambda: cache.state.refreshes >= 3, "refreshes")
        assert cache.state.failures == 2
    finally:
        cache.stop()
    _wait_for_the_end()


def test_only_a_failure_before_the_first_success_is_reported() -> None:
    """Whoever starts the thread learns each, and may end the process; later ones it outlives."""
    outcomes: list[Callable[[], SyncsSnapshot]] = [_fail, _fail_unexpectedly, cached, _fail]
    cache = SyncCache(lambda _previous: outcomes.pop(0)() if outcomes else cached(), interval=0.01)
    reported: list[Exception] = []
    cache.start(on_unread=reported.append)
    try:
        wait_until(lambda: cache.state.refreshes >= 2, "refreshes")
    finally:
        cache.stop()
    _wait_for_the_end()
    assert cache.state.failures == 3
    assert list(map(type, reported)) == [ClusterUnreachableError, ValueError]


def _wait_for_the_end() -> None:
    wait_until(
        lambda: all(each.name != "mm2-syncs" for each in threading.enumerate()), "the thread to end"
    )


class Turns:
    """Stands in for the event that ends a cache's thread: ends it after some waits."""

    def __init__(self, log: list[str], waits: int) -> None:
        self._log = log
        self._waits = waits

    def is_set(self) -> bool:
        return self._log.count("wait") >= self._waits

    def wait(self, seconds: float) -> None:
        assert seconds == 30
        self._log.append("wait")


@pytest.mark.parametrize("refreshed", [False, True])
def test_the_topic_is_first_read_once(monkeypatch: pytest.MonkeyPatch, *, refreshed: bool) -> None:
    """There is one first read, whether the thread or its starter does it."""
    log: list[str] = []

    def read(_previous: SyncsSnapshot | None) -> SyncsSnapshot:
        log.append("read")
        return cached((0, 0))

    cache = SyncCache(read, interval=30)
    if refreshed:
        cache.refresh()
    monkeypatch.setattr(cache, "_stop", Turns(log, 2))
    cache.start()
    _wait_for_the_end()
    assert log == ["read", "wait", "read", "wait"]


@pytest.fixture
def topic_ids(monkeypatch: pytest.MonkeyPatch) -> list[str | None]:
    """Ids that the syncs topic has, one after the other: librdkafka's broker knows none."""
    ids: list[str | None] = ["a"]

    def topics(_self: KafkaCluster, names: Iterable[str]) -> dict[str, TopicInfo]:
        topic_id = ids.pop(0) if len(ids) > 1 else ids[0]
        return {name: TopicInfo(name=name, partitions=1, topic_id=topic_id) for name in names}

    monkeypatch.setattr(KafkaCluster, "topics", topics)
    return ids


def test_a_second_read_brings_the_newer_syncs(clusters: Pair, topic_ids: list[str | None]) -> None:
    """The second read begins where the first ended, and keeps what the first brought."""
    assert topic_ids
    clusters.sync("orders", (0, 0), (10, 12))
    first = read_on(clusters.pair, None)
    clusters.sync("orders", (20, 23))
    second = read_on(clusters.pair, first)
    assert (first.next_offset, len(first.index)) == (2, 2)
    assert (second.next_offset, len(second.index)) == (3, 3)


def test_a_recreated_topic_is_read_from_its_beginning(
    clusters: Pair, topic_ids: list[str | None]
) -> None:
    """The changed id shows it even if the end does not; syncs of the old topic are dropped."""
    clusters.sync("orders", (0, 0), (10, 12))
    old = replace(cached((500, 500)), next_offset=1)
    topic_ids[:] = ["b"]
    new = read_on(clusters.pair, old)
    assert (new.topic_id, new.next_offset) == ("b", 2)
    assert [*new.index.partitions[ORDERS].upstream] == [0, 10]


def test_a_truncated_topic_is_read_from_its_beginning(
    clusters: Pair, topic_ids: list[str | None]
) -> None:
    """Its end is before the first offset of the next read."""
    assert topic_ids
    clusters.sync("orders", (0, 0))
    previous = replace(read_on(clusters.pair, None), next_offset=99)
    assert read_on(clusters.pair, previous).next_offset == 1


def test_a_topic_recreated_during_a_read_is_read_again(
    clusters: Pair, topic_ids: list[str | None]
) -> None:
    """The read is repeated until the topic's id stays the same; else an error names the reason."""
    clusters.sync("orders", (0, 0))
    topic_ids[:] = ["a", "b", "b"]
    assert read_on(clusters.pair, None).topic_id == "b"
    topic_ids[:] = list("abcdefg")
    with pytest.raises(SyncsTopicError, match="recreated or truncated during each of 3 reads"):
        read_on(clusters.pair, None)


def test_a_topic_truncated_during_a_read_is_read_again(
    clusters: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without topic ids, an end before the last read offset shows it."""
    clusters.sync("orders", (0, 0))
    states = [SyncsTopicState(None, end) for end in (1, 0, 1, 1)]
    monkeypatch.setattr("airflow_mm2_offsets.kafka.stable_read.look", lambda *_: states.pop(0))
    assert read_on(clusters.pair, None).next_offset == 1
    assert states == []


def test_a_topic_that_is_gone_is_an_error(clusters: Pair, topic_ids: list[str | None]) -> None:
    """An index whose topic was deleted is not used."""
    assert topic_ids
    clusters.sync("orders", (0, 0))
    previous = read_on(clusters.pair, None)
    gone = replace(clusters.pair, naming=replace(clusters.pair.naming, source_alias="gone"))
    with pytest.raises(SyncsTopicError, match="gone"):
        read_on(gone, previous)
