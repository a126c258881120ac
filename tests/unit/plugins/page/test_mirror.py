"""What is read of one connection, while clusters answer and while they do not."""

from dataclasses import replace

import pytest

from airflow_mm2_offsets.api.pairs import ServedPair
from airflow_mm2_offsets.core import TopicPartition
from airflow_mm2_offsets.plugins.page.mirror import PAGE_PARTITIONS, read_mirror
from tests.support.pairs import STOPPED, Pair, connect


@pytest.fixture
def clusters() -> Pair:
    made = Pair()
    made.write("orders", range(100))
    made.copy("orders", range(60))
    made.sync("orders", (0, 0), (40, 35))
    made.sync("payments", (5, 5), partition=1)
    made.write("payments", range(3), partition=1)
    return made


def served(pair: Pair, **changes: object) -> ServedPair:
    made = ServedPair.of(replace(pair.pair, **changes), interval=1000)  # type: ignore[arg-type]
    made.cache.refresh()
    return made


def test_shift_lag_and_times_of_each_partition(clusters: Pair) -> None:
    """The shift of the newest sync; the records after it count as lag without Connect."""
    page = read_mirror(served(clusters))
    first, second = page.partitions
    assert first.partition == TopicPartition("orders", 0)
    assert (first.shift, first.lag, first.sync_count, first.last) == (-5, 59, 2, (40, 35))
    assert [each.shift for each in first.timed] == [0, -5]
    assert second.lag == 0  # the sync is beyond the source's end: nothing is left to copy
    assert (page.found, page.most_lag, page.problems) == (2, 59, [])


def test_connect_knows_more_than_the_syncs(clusters: Pair) -> None:
    """What it has committed is copied."""
    made = served(clusters, connect=connect({("orders", 0): 89}))
    assert read_mirror(made).partitions[0].lag == 10


def test_a_source_that_is_lost_leaves_the_rest(clusters: Pair) -> None:
    """The lag is unknown, and one sentence says why; shifts and plots stay."""
    page = read_mirror(served(clusters, source=STOPPED.cluster("source", timeout=0.1)))
    assert [each.lag for each in page.partitions] == [None, None]
    assert [each.shift for each in page.partitions] == [-5, 0]
    assert page.partitions[0].timed
    assert len(page.problems) == 1
    assert "stopped" in page.problems[0] or "source" in page.problems[0]


def test_names_are_filtered_and_cut_into_pages(clusters: Pair) -> None:
    """A page beyond the last is empty, and asks no cluster."""
    made = served(clusters)
    assert [each.partition.topic for each in read_mirror(made, text="pay").partitions] == [
        "payments"
    ]
    assert read_mirror(made, text="[1]").found == 1
    assert read_mirror(made, page=2).partitions == []
    assert PAGE_PARTITIONS >= 2
