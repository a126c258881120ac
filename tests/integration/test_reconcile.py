"""Finding what was lost, duplicated and swapped, on real Kafka, MirrorMaker 2 and Spark."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from airflow_mm2_offsets.core import FailoverPlan
from airflow_mm2_offsets.errors import ReconciliationError
from airflow_mm2_offsets.planning.plan import plan_failover
from airflow_mm2_offsets.spark.offsets import format_offsets
from stack.mirror import Stack
from tests.integration.mirrors import FILTER, mirror
from tests.integration.planted_differences import SWITCH, plan_cases
from tests.integration.reconcile_operator import run_operator
from tests.integration.reconcile_suite import FOR_FEW_RECORDS, ReconcileSuite, Topic
from tests.integration.reconciled_topics import PARTITIONS, Row, numbered


@pytest.fixture(scope="module")
def suite(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReconcileSuite]:
    """All topics written, all sinks planted, all cases run."""
    with mirror(stack) as made:
        made.configure(**FILTER)
        suite = ReconcileSuite(mirror=made, folder=tmp_path_factory.mktemp("reconcile"))
        plan_cases(suite)
        suite.run()
        yield suite


def at(rows: Sequence[Row], *numbers: int) -> list[int]:
    return [row["offset"] for row in numbered(rows, *numbers)]


@pytest.mark.parametrize("name", ["planted", "clusters", "clean without lineage"])
def test_equal_sides_have_no_difference(suite: ReconcileSuite, name: str) -> None:
    """Null, empty and equal records, tombstones and aborted records are no difference."""
    topic, result = suite.topics["clean"], suite.cases[name].result()
    assert suite.cases[name].differences(topic) == set()
    assert result.not_judged == 0
    source = next(
        each
        for each in result.report["ranges"]
        if (each["side"], each["topic"], each["partition"]) == ("source", topic.name, 0)
    )
    assert (source["records"], source["tombstones"]) == (40, 4)
    assert source["holes"] == 6  # twice: a commit's marker, an aborted record and its marker


def test_without_values_no_record_counts_as_a_tombstone(suite: ReconcileSuite) -> None:
    """Where only keys are compared, nothing tells which records are tombstones."""
    ranges = suite.cases["keys alone"].result().report["ranges"]
    assert sum(each["records"] for each in ranges) > 0
    assert sum(each["tombstones"] for each in ranges) == 0


def test_a_clean_reconciliation(suite: ReconcileSuite) -> None:
    """Without differences no row is written, and the summary counts what was compared."""
    case = suite.cases["clean without lineage"]
    assert pq.read_table(case.folder / "report" / "differences").num_rows == 0
    assert case.result().outcome == "clean"
    case.result().check()
    assert case.result().summary().startswith("CLEAN: compared 80 records of the source, ")


def test_every_planted_difference_is_found(suite: ReconcileSuite) -> None:
    """Every loss, duplicate and swap is found, by MirrorMaker 2 or in the sink, and no other."""
    topic, case = suite.topics["planted"], suite.cases["planted"]
    source, target = topic.source, topic.target
    dropped = at(source[0], 30, 31)
    (_, again) = at(target[1], 33)
    thrice = [row["offset"] for row in target[0] if row["key"] == "thrice"]
    (nothing,) = (row["offset"] for row in source[0] if (row["key"], row["value"]) == (None, ""))
    twice = [row["offset"] for row in source[1] if row["key"] == "twice"]
    assert len(thrice) == 4
    assert case.differences(topic) == {
        *(("source-target", "lost", 0, "after", offset) for offset in dropped),
        *(("source-sink", "lost", 0, "after", offset) for offset in dropped),
        ("source-target", "duplicated", 1, "target", again),
        ("source-sink", "duplicated", 1, "from_target", again),
        ("source-target", "duplicated", 0, "target", thrice[-1]),
        ("source-sink", "duplicated", 0, "from_target", thrice[-1]),
        ("source-sink", "lost", 0, "before", nothing),
        ("source-sink", "lost", 1, "before", twice[-1]),
        *(("source-sink", "lost", 1, "after", offset) for offset in at(source[1], 20)),
        *(("target-sink", "lost", 1, "target", offset) for offset in at(target[1], 20)),
        *(("source-sink", "duplicated", 1, "from_source", at_) for at_ in at(source[1], 11)),
        *(("source-sink", "duplicated", 0, "from_target", at_) for at_ in at(target[0], 35)),
        *(("target-sink", "duplicated", 0, "from_target", at_) for at_ in at(target[0], 35)),
        *(("source-sink", "out_of_order", 1, "from_source", at_) for at_ in at(source[1], 10, 13)),
        *(("target-sink", "out_of_order", 0, "from_target", at_) for at_ in at(target[0], 28, 36)),
    }
    result = case.result()
    assert result.total("lost", "source-target") == 2
    with pytest.raises(ReconciliationError, match=r"\[0\]: 2 lost from source to target"):
        result.check()
    (example,) = (
        each
        for each in result.report["examples"]
        if (each["comparison"], each["kind"]) == ("target-sink", "lost")
    )
    assert (example["key"], example["offset"]) == ("key", str(at(target[1], 20)[0]))


def test_without_lineage_contents_are_counted(suite: ReconcileSuite) -> None:
    """In a sink of keys and values alone, each lost and each additional record is counted."""
    result = suite.cases["planted without lineage"].result()
    assert result.total("lost", "source-sink") == 5
    assert result.total("duplicated", "source-sink") == 4
    assert result.total("lost", "target-sink") == result.total("unknown") == 0
    assert "a sink without lineage" in result.summary()


def test_a_source_that_is_gone_is_not_needed(suite: ReconcileSuite) -> None:
    """Target and sink alone show what the target job lost, duplicated or exchanged."""
    topic = suite.topics["planted"]
    target = topic.target
    assert suite.cases["source gone"].differences(topic) == {
        *(("target-sink", "lost", 1, "target", offset) for offset in at(target[1], 20)),
        *(("target-sink", "duplicated", 0, "from_target", at_) for at_ in at(target[0], 35)),
        *(("target-sink", "out_of_order", 0, "from_target", at_) for at_ in at(target[0], 28, 36)),
    }


def test_a_swap_on_the_target_is_found(suite: ReconcileSuite) -> None:
    """Two exchanged copies are both named; a copy with another header is another record."""
    topic = suite.topics["swapped"]
    assert suite.cases["clusters"].differences(topic) == {
        *(
            ("source-target", "out_of_order", number, "target", offset)
            for number in range(PARTITIONS)
            for offset in at(topic.target[number], 4, 7)
        ),
        *(("source-target", "lost", 1, "after", offset) for offset in at(topic.source[1], 6)),
        *(("source-target", "unknown", 1, "target", offset) for offset in at(topic.target[1], 6)),
    }


def test_a_job_that_started_elsewhere(suite: ReconcileSuite) -> None:
    """A start two records early gives two duplicates; a start one record late loses one."""
    topic, case = suite.topics["clean"], suite.cases["shifted"]
    (missed,) = at(topic.source[1], SWITCH)
    again = at(topic.target[0], 13, 14)
    assert case.differences(topic) == {
        *(("source-sink", "duplicated", 0, "from_target", offset) for offset in again),
        *(("source-target", "unknown", 0, "target", offset) for offset in again),
        ("source-target", "lost", 1, "after", missed),
        ("source-sink", "lost", 1, "after", missed),
    }
    assert len(case.result(allowed=2).failures) == 2
    with pytest.raises(ReconciliationError, match=r"\(at most 1 twice, none lost\)"):
        case.result(allowed=1).check()
    assert len(case.result(allowed=1).failures) == 3


def test_a_record_that_came_late_is_found(suite: ReconcileSuite) -> None:
    """The batch number shows that a record came after later ones of its partition."""
    topic = suite.topics["clean"]
    assert suite.cases["source"].differences(topic) == {
        ("source-sink", "out_of_order", number, "from_source", at_)
        for number in (0, 1)
        for at_ in at(topic.source[number], 13)
    }


def test_a_range_of_time(suite: ReconcileSuite) -> None:
    """A loss before the start of the time range is not reported."""
    topic = suite.topics["clean"]
    assert suite.cases["timed"].differences(topic) == {
        found
        for number in (0, 1)
        for found in (
            ("source-sink", "lost", number, "after", at(topic.source[number], 28)[0]),
            ("target-sink", "lost", number, "target", at(topic.target[number], 28)[0]),
        )
    }


def test_deleted_records_are_not_judged(suite: ReconcileSuite) -> None:
    """Deleted records and future offsets are counted; the rest is compared."""
    topic, case = suite.topics["expired"], suite.cases["source"]
    result = case.result()
    first, end = at(topic.source[0], 12)[0], topic.source[0][-1]["offset"] + 4
    deleted = next(each for each in result.report["ranges"] if each["topic"] == topic.name)
    assert case.differences(topic) == set()
    assert deleted["wanted"] == ["0", "1000"]
    assert deleted["judged"] == [str(first), str(end)]
    assert deleted["not_judged"] == first + 1000 - end
    assert "NOT JUDGED" in result.summary()


@pytest.mark.parametrize(
    ("name", "message"), [("no sink", "nowhere"), ("no cluster", "TimeoutException")]
)
def test_a_job_that_can_not_compare_says_why(
    suite: ReconcileSuite, name: str, message: str
) -> None:
    """The report holds the reason, so that a look into Spark's log is not needed."""
    with pytest.raises(ReconciliationError, match=f"the Spark job could not compare: .*{message}"):
        suite.cases[name].result()


def _sinks_of_a_plan(
    suite: ReconcileSuite, topic: Topic, positions: Mapping[int, int], plan: FailoverPlan
) -> dict[str, str]:
    """Write what both jobs have written, but for one row, and return where by cluster."""
    starts = plan.target_positions()[topic.name]
    rows = {
        "source": [
            row
            for number, topic_rows in topic.source.items()
            for row in topic_rows
            if row["offset"] < positions[number] and row not in numbered(topic.source[1], 11)
        ],
        "target": [
            row
            for number, topic_rows in topic.target.items()
            for row in topic_rows
            if row["offset"] >= starts[number]
        ],
    }
    return {side: suite.sink(f"plan-{side}", rows[side]) for side in rows}


@pytest.mark.long
def test_the_operator_verifies_a_plan(suite: ReconcileSuite, tmp_path: Path) -> None:
    """With real connections, spark-submit and a real plan, a row that the sink lost is named."""
    mirrored, topic = suite.mirror, suite.topics["clean"]
    positions = {topic.name: {n: at(topic.source[n], SWITCH)[0] for n in range(PARTITIONS)}}
    plan = plan_failover(mirrored.pair, positions)
    paths = _sinks_of_a_plan(suite, topic, positions[topic.name], plan)
    ends = {topic.name: {n: rows[-1]["offset"] + 1 for n, rows in topic.target.items()}}
    settings: dict[str, object] = {
        "plan": plan.to_json(),
        "scope": {"committed": format_offsets(ends)},
        "sinks": [{"cluster": side, "path": path} for side, path in paths.items()],
        "report": str(tmp_path / "report"),
        "conf": {**FOR_FEW_RECORDS, "spark.log.level": "WARN"},
    }
    log = run_operator(suite, tmp_path, settings)
    assert f"{topic.name}[1]: 1 lost from source to sink" in log
    assert f"every difference is in {tmp_path}/report/differences" in log
    (report,) = (
        json.loads(line.removeprefix("XCOM return_value "))
        for line in log.splitlines()
        if line.startswith("XCOM return_value ")
    )
    counts = {(each["comparison"], each["kind"]): each["count"] for each in report["counts"]}
    assert counts.pop(("source-sink", "lost")) == 1
    # Where the plan starts early, that is what it announced.
    announced = {("source-sink", "duplicated"), ("source-target", "unknown")}
    assert {*counts} <= (announced if plan.max_reread else set())
