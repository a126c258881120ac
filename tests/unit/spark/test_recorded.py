"""Reading what Spark 4.2.0 itself has written."""

from pathlib import Path

import pytest

from airflow_mm2_offsets.core.positions import Positions
from airflow_mm2_offsets.spark.checkpoint import read_checkpoint

RECORDED = Path(__file__).with_name("recorded")


def _at(first: int, second: int, refunds: int | None = None) -> Positions:
    orders = {"ex-orders": {0: first, 1: second}}
    return orders if refunds is None else orders | {"ex-refunds": {0: refunds}}


@pytest.mark.parametrize(
    ("name", "batch", "positions"),
    [
        ("two_topics", 1, _at(2, 2, 4)),
        ("one_topic_twice", 1, _at(2, 2)),
        ("beside_rate", 1, _at(2, 2)),
        ("beside_files", 1, _at(2, 2)),
        ("transforming", 1, _at(158, 158)),
        ("offset_log_v2", 1, _at(2, 2, 4)),
        ("named_sources", 45, _at(46, 46, 92)),
        ("state_ids", 23, _at(24, 24)),
        ("asynchronous", 34, _at(35, 35)),
        ("continuous", 8, _at(24, 24)),
        ("real_time", 1, _at(44, 44)),
    ],
)
def test_every_kind_of_query(name: str, batch: int, positions: Positions) -> None:
    """Sources of all kinds, both offset logs, commits v1 and v2, and all kinds of trigger."""
    checkpoint = read_checkpoint(str(RECORDED / name))
    assert (checkpoint.committed_batch, checkpoint.positions) == (batch, positions)
    assert (checkpoint.pending_batch, checkpoint.reread) == (None, 0)
    # Continuous processing does not log where it began.
    begun = {topic: dict.fromkeys(each, 0) for topic, each in positions.items()}
    assert checkpoint.start == ({} if name == "continuous" else begun)


def test_a_batch_that_failed() -> None:
    """A query that failed in batch 2 leaves it pending."""
    checkpoint = read_checkpoint(str(RECORDED / "pending"))
    assert (checkpoint.committed_batch, checkpoint.positions) == (1, _at(2, 2))
    assert (checkpoint.pending_batch, checkpoint.pending) == (2, _at(3, 3))
    assert checkpoint.reread == 2
    assert checkpoint.read_until == checkpoint.pending
