"""What a reconciliation is asked to compare."""

from typing import Any

import pytest

from airflow_mm2_offsets.core import (
    FailoverPlan,
    Naming,
    Strategy,
    SyncIndex,
    TopicPartition,
    plan_partitions,
)
from airflow_mm2_offsets.errors import ConfigurationError, PositionError, TranslationRefusedError
from airflow_mm2_offsets.reconcile.ranges import partitions_of_plan, partitions_of_ranges
from airflow_mm2_offsets.reconcile.request import COLUMNS, make_request

NAMING = Naming(source_alias="a", target_alias="b")
SYNCS = [(60, 0), (100, 40), (200, 140), (260, 200), (300, 240)]
INDEX = SyncIndex().extended({TopicPartition("orders", 0): SYNCS})


def plan(index: SyncIndex = INDEX, position: int = 200) -> FailoverPlan:
    return FailoverPlan(
        created_at="2026-11-21T08:00:00+00:00",
        strategy=Strategy.SAFE,
        syncs_read=5,
        syncs_skipped=0,
        partitions=plan_partitions([index.translate("orders", 0, position)], NAMING),
    )


@pytest.mark.parametrize(
    ("committed", "source_end", "target_end"),
    [(239, "260", "200"), (240, "300", "240"), (199, "200", "140"), (140, "200", "140")],
)
def test_a_running_job_is_compared_up_to_a_sync(
    committed: int, source_end: str, target_end: str
) -> None:
    """Both ranges end at the last sync that the target job has passed."""
    (found,) = partitions_of_plan(
        plan(), index=INDEX, committed={"a.orders": {0: committed}}, records_before=50
    )
    assert found == {
        "topic": "orders",
        "partition": 0,
        "target_topic": "a.orders",
        "source": ["150", source_end],
        "target": ["140", target_end],
        "switch": "200",
    }


def test_a_drill_is_compared_from_its_positions_on() -> None:
    """Its sink holds nothing of before, so ``records_before`` is 0: no record can seem lost."""
    (found,) = partitions_of_plan(
        plan(position=230), index=INDEX, committed={"a.orders": {0: 239}}, records_before=0
    )
    assert (found["source"][0], found["switch"]) == ("230", "230")
    assert int(found["target"][0]) <= 170


def test_after_a_rewind_the_furthest_sync_counts() -> None:
    """MirrorMaker 2 copied again from 210 on: what was copied before that is compared too."""
    index = SyncIndex().extended({TopicPartition("orders", 0): [*SYNCS, (210, 250), (230, 270)]})
    (found,) = partitions_of_plan(
        plan(), index=index, committed={"a.orders": {0: 280}}, records_before=0
    )
    assert (found["source"], found["target"]) == (["200", "300"], ["140", "240"])


def test_without_a_source_the_committed_position_is_the_end() -> None:
    """Target and sink need no sync to tie them to the source."""
    (found,) = partitions_of_plan(
        plan(), index=None, committed={"a.orders": {0: 239}}, records_before=50
    )
    assert found["target"] == ["140", "239"]


def test_a_job_that_has_ended_is_compared_to_the_end() -> None:
    """Without a committed position, both ranges end where the clusters do."""
    (found,) = partitions_of_plan(plan(), index=INDEX, records_before=1000)
    assert (found["source"], found["target"]) == (["0", None], ["140", None])


def test_a_refused_plan_has_no_region() -> None:
    """A partition without a target position has nothing to compare."""
    with pytest.raises(TranslationRefusedError, match=r"orders\[0\]"):
        partitions_of_plan(plan(SyncIndex()), index=INDEX, records_before=0)


def test_ranges_of_offsets() -> None:
    """Ranges go by the source's names; offsets may be numbers, text, or open."""
    source, target = {"orders": {"0": [1, "2"]}}, {"orders": {0: [None, 2**60]}}
    (both,) = partitions_of_ranges(NAMING, source, target)
    assert (both["source"], both["target"]) == (["1", "2"], [None, str(2**60)])
    assert both["target_topic"] == "a.orders"
    (alone,) = partitions_of_ranges(NAMING, {}, target)
    assert (alone["source"], alone["target"]) == (None, [None, str(2**60)])


@pytest.mark.parametrize(
    ("source", "target", "error"),
    [
        ({}, {}, ConfigurationError),
        ({"orders": {0: [1, 2]}}, {"orders": {1: [1, 2]}}, ConfigurationError),
        ({"orders": {0: [1, 2, 3]}}, {}, ConfigurationError),
        ({"orders": {0: "12"}}, {}, ConfigurationError),
        ({"orders": {0: [-1, 2]}}, {}, PositionError),
    ],
)
def test_what_is_no_range_is_refused(
    source: dict[str, Any], target: dict[str, Any], error: type[Exception]
) -> None:
    """Each cluster that has ranges has one of each partition, of two offsets."""
    with pytest.raises(error):
        partitions_of_ranges(NAMING, source, target)


def test_a_sink_is_completed() -> None:
    """A path is enough: Parquet with the lineage columns of the source."""
    (sink,) = make_request([], [{"path": "/lake"}])["sinks"]
    assert sink == {
        "cluster": "source",
        "path": "/lake",
        "format": "parquet",
        "where": None,
        "columns": dict(COLUMNS),
    }


def test_what_a_sink_lacks_is_compared_nowhere() -> None:
    """Headers count between clusters; with a sink of values alone, values do."""
    assert make_request([])["kafka"] == {name: name for name in ("key", "value", "headers")}
    request = make_request([], [{"path": "/a", "columns": {"key": None}}, {"path": "/b"}])
    assert request["kafka"] == {"value": "value"}
    assert [sink["columns"]["key"] for sink in request["sinks"]] == [None, None]


@pytest.mark.parametrize(
    ("sinks", "message"),
    [
        ([{}], "a sink has a path"),
        ([{"path": "/a", "cluster": "both"}], "a sink has a path"),
        ([{"path": "/a", "kind": "delta"}], "a sink has a path"),
        ([{"path": "/a", "columns": {"id": "id"}}], "a sink has a path"),
        ([{"path": "/a", "columns": {"topic": None}}], "has only offset, partition: name all"),
        (
            [
                {"path": "/a"},
                {"path": "/b", "columns": dict.fromkeys(("topic", "partition", "offset"))},
            ],
            "reconcile them one by one",
        ),
    ],
)
def test_a_sink_that_can_not_be_compared_is_refused(
    sinks: list[dict[str, Any]], message: str
) -> None:
    """What there is not in a sink is said before Spark is started."""
    with pytest.raises(ConfigurationError, match=message):
        make_request([], sinks)
