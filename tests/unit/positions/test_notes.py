"""Positions that are noted when they are read, and compared before the job starts elsewhere."""

import pytest

from airflow_mm2_offsets.core import Positions
from airflow_mm2_offsets.core.ids import PairIds
from airflow_mm2_offsets.errors import HandoverError, StoredPositionsError, TopicNotFoundError
from airflow_mm2_offsets.positions.comparison import check_unchanged
from airflow_mm2_offsets.positions.notes import note_positions
from airflow_mm2_offsets.spark.position_ids import check_ids
from airflow_mm2_offsets.testing import simulated_mm2

THREE: Positions = {"orders": {0: 4, 1: 0, 2: 7}}


def test_the_ids_of_the_time_are_noted() -> None:
    """A topic that is recreated later is refused by the ids that were noted with positions."""
    with simulated_mm2() as mm2:
        mm2.source.create_topic("orders", partitions=3)
        noted = note_positions(mm2.pair, THREE)
        assert (noted["positions"], noted["topics"]) == (
            '{"orders":{"0":4,"1":0,"2":7}}',
            "orders",
        )
        mm2.source.delete_topic("orders")
        mm2.source.create_topic("orders", partitions=3)
        again = note_positions(mm2.pair, THREE)
    with pytest.raises(HandoverError, match=r"clusters\.source\.topic_ids\.orders is "):
        check_ids(PairIds.from_json(noted["clusters"]), PairIds.from_json(again["clusters"]))


def test_a_partition_without_a_position_is_named() -> None:
    """The system that kept the positions may not know a new partition, or have lost one."""
    with simulated_mm2() as mm2:
        mm2.source.create_topic("orders", partitions=4)
        with pytest.raises(
            StoredPositionsError, match=r"orders\[3\]: has no position, and the sou"
        ):
            note_positions(mm2.pair, THREE)


def test_positions_of_another_cluster_are_named() -> None:
    """A partition or topic that the source has not is of another cluster."""
    with simulated_mm2() as mm2:
        with pytest.raises(TopicNotFoundError, match="orders: the topic does not exist there"):
            note_positions(mm2.pair, THREE)
        mm2.source.create_topic("orders", partitions=2)
        with pytest.raises(StoredPositionsError, match=r"orders\[2\]: has a position, 7, and the "):
            note_positions(mm2.pair, THREE)


def test_a_lost_source_can_not_be_asked() -> None:
    """Its ids are unknown, and the partitions are not compared; the positions are still noted."""
    with simulated_mm2() as mm2:
        mm2.source.produce("orders", 0, [b"order"])
        mm2.mirror()
        mm2.source.is_running = False
        noted = note_positions(mm2.pair, {"orders": {0: 1}})
    assert noted["clusters"]["source"] == {"cluster_id": None, "topic_ids": {}}
    assert noted["clusters"]["target"]["cluster_id"] is not None


def test_a_job_that_has_run_on_is_named_with_both_values() -> None:
    """Each partition that differs is named: moved, new, gone."""
    now: Positions = {"orders": {0: 5, 1: 0}, "payments": {0: 1}}
    message = (
        r"orders\[0\]: 5 now, 4 then; orders\[2\]: none now, 7 then; "
        r"payments\[0\]: 1 now, none then\. Stop the job, then read"
    )
    with pytest.raises(HandoverError, match=message):
        check_unchanged(THREE, now)


@pytest.mark.parametrize(
    "first", [THREE, '{"orders":{"0":4,"1":0,"2":7}}', {"orders": {"2": "7", "1": "0", "0": 4}}]
)
def test_a_job_that_stands_still_may_go_on_elsewhere(first: Positions | str) -> None:
    """However an XCom carries the positions, equal ones pass."""
    check_unchanged(first, THREE)
