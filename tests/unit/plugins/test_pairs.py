"""The pairs of Airflow's connections that the API server keeps in memory."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from airflow_mm2_offsets.api.pairs import ServedPair
from airflow_mm2_offsets.api.problems import Problem
from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.errors import ConfigurationError
from airflow_mm2_offsets.hooks.mm2 import Mm2OffsetHook
from airflow_mm2_offsets.plugins import pairs
from airflow_mm2_offsets.plugins.pairs import ConnectionPairs
from tests.support.pairs import Pair


class Connections:
    """Airflow's connections, and the time of this machine."""

    def __init__(self, pair: ClusterPair) -> None:
        self.pairs = {"mm2_one": pair, "mm2_two": pair}
        self.now = 0.0
        self.before_read: Callable[[], None] = lambda: None

    def get_conn(self, conn_id: str) -> ClusterPair:
        self.before_read()
        if conn_id not in self.pairs:
            raise ConfigurationError(f"connection {conn_id} does not exist")
        return self.pairs[conn_id]


@pytest.fixture
def connections(monkeypatch: pytest.MonkeyPatch) -> Iterator[Connections]:
    clusters = Pair()
    clusters.write("orders", range(3))
    clusters.copy("orders", range(3))
    clusters.sync("orders", (0, 0))
    made = Connections(clusters.pair)
    monkeypatch.setattr(Mm2OffsetHook, "get_conn", lambda hook: made.get_conn(hook.mm2_conn_id))
    served: list[ServedPair] = []
    of = ServedPair.of

    def remember(pair: ClusterPair, **settings: float) -> ServedPair:
        served.append(of(pair, **settings))  # type: ignore[arg-type]
        return served[-1]

    monkeypatch.setattr(ServedPair, "of", remember)
    yield made
    for each in served:
        each.cache.stop()


def ask(loaded: ConnectionPairs, name: str) -> ServedPair:
    return asyncio.run(loaded.get(name))


def is_stopped(served: ServedPair) -> bool:
    thread = served.cache._thread  # noqa: SLF001 - the thread is what must end
    assert thread is not None
    thread.join(10)
    return not thread.is_alive()


def test_a_deleted_connection_is_forgotten(connections: Connections) -> None:
    """It is refused at its next reading; its refreshes stop, and metrics name it no more."""
    loaded = ConnectionPairs(lambda: connections.now)
    served = ask(loaded, "mm2_one")
    del connections.pairs["mm2_one"]
    assert ask(loaded, "mm2_one") is served
    connections.now = pairs.REREAD_SECONDS + 1
    with pytest.raises(Problem, match="does not exist"):
        ask(loaded, "mm2_one")
    assert is_stopped(served)
    assert loaded.served() == {}


def test_a_connection_that_nobody_uses_is_forgotten(connections: Connections) -> None:
    """Any request after an hour frees its syncs; asked again, they are read again."""
    loaded = ConnectionPairs(lambda: connections.now)
    unused = ask(loaded, "mm2_one")
    connections.now = pairs.UNUSED_SECONDS - 1
    ask(loaded, "mm2_two")
    assert set(loaded.served()) == {"mm2_one", "mm2_two"}
    connections.now = pairs.UNUSED_SECONDS + 1
    ask(loaded, "mm2_two")
    assert set(loaded.served()) == {"mm2_two"}
    assert is_stopped(unused)
    assert ask(loaded, "mm2_one").index.partitions


def test_a_changed_connection_is_read_again(connections: Connections) -> None:
    """The syncs of the old clusters are dropped; those of an unchanged one are kept."""
    loaded = ConnectionPairs(lambda: connections.now)
    before = ask(loaded, "mm2_one")
    connections.now = pairs.REREAD_SECONDS + 1
    assert ask(loaded, "mm2_one") is before
    naming = replace(connections.pairs["mm2_one"].naming, target_alias="north")
    connections.pairs["mm2_one"] = replace(connections.pairs["mm2_one"], naming=naming)
    connections.now *= 3
    assert ask(loaded, "mm2_one") is not before
    assert is_stopped(before)


def test_unknown_names_leave_nothing(connections: Connections) -> None:
    """A client that asks for any names does not fill the memory."""
    assert connections.pairs
    loaded = ConnectionPairs(lambda: connections.now)
    for number in range(50):
        with pytest.raises(Problem):
            ask(loaded, f"missing_{number}")
    assert (loaded._locks, loaded._used_at) == ({}, {})  # noqa: SLF001 - what would grow


def test_a_pair_that_is_asked_for_is_not_forgotten_meanwhile(connections: Connections) -> None:
    """An hour after the last use, a request for another pair comes while a database is read."""
    loaded = ConnectionPairs(lambda: connections.now)
    ask(loaded, "mm2_one")
    connections.now = pairs.UNUSED_SECONDS - 1
    reading, answered = threading.Event(), threading.Event()

    async def both() -> ServedPair:
        first = asyncio.create_task(loaded.get("mm2_one"))
        await asyncio.to_thread(reading.wait, 10)
        connections.before_read = lambda: None
        connections.now = pairs.UNUSED_SECONDS + 1
        await loaded.get("mm2_two")
        answered.set()
        return await first

    def slow() -> None:
        reading.set()
        assert answered.wait(10)

    connections.before_read = slow
    served = asyncio.run(both())
    thread = served.cache._thread  # noqa: SLF001 - the thread must go on
    assert thread is not None
    assert not served.cache._stop.is_set()  # noqa: SLF001 - what would end it
    assert "mm2_one" in loaded.served()


def test_all_who_wait_for_a_deleted_connection_are_told(connections: Connections) -> None:
    """The second request, which waited for the first, is refused as well."""
    loaded = ConnectionPairs(lambda: connections.now)
    ask(loaded, "mm2_one")
    del connections.pairs["mm2_one"]
    connections.now = pairs.REREAD_SECONDS + 1

    async def both() -> list[ServedPair | BaseException]:
        asked = (loaded.get("mm2_one") for _ in range(2))
        return await asyncio.gather(*asked, return_exceptions=True)

    assert [type(each) for each in asyncio.run(both())] == [Problem, Problem]
