"""What is read of one connection, while clusters answer and while they do not."""

from dataclasses import replace
from typing import Any

import pytest

from airflow_mm2_offsets.api.pairs import ServedPair
from airflow_mm2_offsets.core import TopicPartition
from airflow_mm2_offsets.plugins.page import mirror
from airflow_mm2_offsets.plugins.page.mirror import read_mirror
from tests.support.pairs import STOPPED, Pair, connect


@pytest.fixture
def clusters() -> Pair:
    made = Pair()
    made.write("orders", range(100))
    made.copy("orders", range(60))
    made.sync("orders", (0, 0), (40, 35))
    made.write("payments", range(7), partition=1)
    made.sync("payments", (5, 5), partition=1)
    return made


def served(pair: Pair, **changes: Any) -> ServedPair:
    made = ServedPair.of(replace(pair.pair, **changes), interval=1000)
    made.cache.refresh()
    return made


def test_shift_lag_and_times_of_each_partition(clusters: Pair) -> None:
    """The shift of the newest sync; the records after it count as lag without Connect."""
    page = read_mirror(served(clusters))
    first, second = page.partitions
    assert first.partition == TopicPartition("orders", 0)
    assert (first.shift, first.lag, first.sync_count, first.last) == (-5, 59, 2, (40, 35))
    assert first.shift_plot is not None
    assert (first.shift_plot.lowest, first.shift_plot.highest) == (-5, 0)
    assert first.last_at is not None
    assert second.lag == 1
    assert (page.matches, page.most_lag, page.problems) == (2, 59, [])


def test_connect_knows_more_than_the_syncs(clusters: Pair) -> None:
    """What it has committed is copied."""
    made = served(clusters, connect=connect({("orders", 0): 89}))
    assert read_mirror(made).partitions[0].lag == 10


def test_new_syncs_count_at_once(clusters: Pair) -> None:
    """The page does not wait for the next refresh of the cache."""
    made = served(clusters)
    clusters.sync("orders", (99, 80))
    assert read_mirror(made).partitions[0].lag == 0


def test_a_recreated_topic_has_no_lag(clusters: Pair) -> None:
    """Syncs beyond the source's end are of an older topic: 0 would say that all is copied."""
    clusters.sync("orders", (1_000_000, 900_000))
    page = read_mirror(served(clusters))
    assert [each.lag for each in page.partitions] == [None, 1]
    assert "the source ends at 100: the topic was recreated or truncated" in page.problems[0]


def test_a_deleted_topic_leaves_the_others(clusters: Pair) -> None:
    """Its syncs outlive it in a compacted topic."""
    del clusters.source.topics["payments"]
    assert [each.lag for each in read_mirror(served(clusters)).partitions] == [59, None]


def test_a_source_that_is_lost_leaves_the_rest(clusters: Pair) -> None:
    """The lag is unknown, and a sentence says why; shifts and plots stay."""
    page = read_mirror(served(clusters, source=STOPPED.cluster("source", timeout=0.1)))
    assert [each.lag for each in page.partitions] == [None, None]
    assert [each.shift for each in page.partitions] == [-5, 0]
    assert page.partitions[0].shift_plot is not None
    assert len(page.problems) == 1


def test_a_lost_syncs_topic_leaves_those_in_memory(clusters: Pair) -> None:
    """And the page says that they are older."""
    quick = replace(clusters.pair, target=clusters.target.cluster("target", timeout=0.1))
    made = ServedPair.of(quick, interval=1000)
    made.cache.refresh()
    clusters.target.is_running = False
    page = read_mirror(made)
    assert page.partitions[0].last == (40, 35)
    assert "those of the last read" in page.problems[0]


def test_names_are_filtered_and_cut_into_pages(
    clusters: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever their case; beyond the last page is the last."""
    made = served(clusters)
    assert [each.partition.topic for each in read_mirror(made, text="PAY").partitions] == [
        "payments"
    ]
    assert read_mirror(made, text="[1]").matches == 1
    assert read_mirror(made, text="nothing").partitions == []
    monkeypatch.setattr(mirror, "PAGE_PARTITIONS", 1)
    page = read_mirror(made, number=9)
    assert (page.number, page.pages) == (2, 2)
    assert [each.partition.topic for each in page.partitions] == ["payments"]
