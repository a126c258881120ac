"""Judging the report of a reconciliation."""

import json
from pathlib import Path
from typing import Any

import pytest
from upath import UPath

from airflow_mm2_offsets.errors import ReconciliationError
from airflow_mm2_offsets.reconcile import NAMED_PARTITIONS, Reconciliation, read_report


def found(comparison: str, kind: str, count: int, partition: int | None = 0) -> dict[str, Any]:
    topic = None if partition is None else "orders"
    return {
        "comparison": comparison,
        "topic": topic,
        "partition": partition,
        "kind": kind,
        "count": count,
    }


def report(*counts: dict[str, Any], not_judged: int = 0) -> dict[str, Any]:
    judged = {"topic": "orders", "partition": 0, "records": 7, "not_judged": not_judged}
    return {
        "schema_version": 1,
        "compared": ["key", "value"],
        "ranges": [judged | {"side": "source"}, judged | {"side": "target", "records": 5}],
        "sinks": [{"side": "from_source", "topic": "orders", "partition": 0, "records": 7}],
        "counts": list(counts),
        "examples": [],
        "differences": "s3://lake/reconcile/differences",
    }


@pytest.mark.parametrize(
    ("counts", "allowed", "outcome"),
    [
        ([], 0, "clean"),
        ([found("source-sink", "duplicated", 2)], 2, "announced"),
        ([found("source-sink", "duplicated", 2)], 1, "failed"),
        ([found("source-sink", "duplicated", 1, number) for number in (0, 1)], 1, "failed"),
        ([found(each, "duplicated", 1) for each in ("source-sink", "target-sink")], 1, "announced"),
        ([found("source-sink", "duplicated", 99)], None, "announced"),
        ([found("source-sink", "lost", 1)], None, "failed"),
        ([found("source-target", "lost", 1)], 9, "failed"),
        ([found("source-target", "out_of_order", 2)], 9, "failed"),
        ([found("source-target", "unknown", 3)], 0, "clean"),
        ([found("target-sink", "unknown", 1)], 0, "failed"),
    ],
)
def test_the_outcome(counts: list[dict[str, Any]], allowed: int | None, outcome: str) -> None:
    """Duplicates may be as many as announced in each comparison; all else fails but strangers."""
    result = Reconciliation(report=report(*counts), allowed=allowed)
    assert result.outcome == outcome
    assert result.to_json()["outcome"] == outcome
    if outcome != "failed":
        result.check()


def test_a_comparison_of_nothing_says_so() -> None:
    """No difference among no records is no proof, though it is no failure either."""
    compared = report()
    assert "NOTHING WAS COMPARED" not in Reconciliation(report=compared).summary()
    nothing = [{**each, "records": 0} for each in compared["ranges"]]
    summary = Reconciliation(report={**compared, "ranges": nothing}).summary()
    assert "NOTHING WAS COMPARED: the ranges hold no record" in summary


def test_a_failure_names_place_count_and_differences() -> None:
    """One error says where, how many of what, what was announced, and where to look."""
    counts = [found("source-sink", "lost", 3, 1), found("target-sink", "out_of_order", 2, None)]
    with pytest.raises(ReconciliationError) as caught:
        Reconciliation(report=report(*counts), allowed=4).check()
    assert str(caught.value) == (
        "source, target and sink differ by more than was announced (at most 4 twice, none lost); "
        "every difference is in s3://lake/reconcile/differences:\n"
        "  orders[1]: 3 lost from source to sink\n"
        "  a sink without lineage: 2 out of order from target to sink"
    )


def test_a_failure_of_many_partitions_is_bounded() -> None:
    """A thousand partitions are not a thousand lines."""
    counts = [found("source-sink", "lost", 1, number) for number in range(1000)]
    with pytest.raises(ReconciliationError, match=r"and 980 more$") as caught:
        Reconciliation(report=report(*counts)).check()
    assert len(str(caught.value).splitlines()) == NAMED_PARTITIONS + 2


def test_the_summary_is_a_sentence_and_a_table() -> None:
    """What was compared, what could not be judged, and each partition's counts."""
    result = Reconciliation(report=report(found("source-sink", "lost", 3), not_judged=6))
    sentence, _, table = result.summary().partition("\n\n")
    assert sentence == (
        "FAILED: compared 7 records of the source, 5 records of the target and 7 rows of the sink "
        "by key, value; NOT JUDGED: 12 offsets that a cluster no longer or not yet holds."
    )
    header, line = table.splitlines()
    words = "partition source target lost duplicated out of order unknown from, to"
    assert header.split() == words.split()
    assert line.split() == ["orders[0]", "7", "5", "3", "0", "0", "0", "source-sink"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, r"report\.json is missing: the Spark job did not finish"),
        ("{", "is not a reconciliation report"),
        ("[]", "is not a reconciliation report"),
        ('{"schema_version": 2}', "has version 2; only 1 is known"),
        ('{"schema_version": 1, "error": "no such path"}', "could not compare: no such path"),
    ],
)
def test_what_is_no_report_is_named(tmp_path: Path, text: str | None, message: str) -> None:
    """A job that failed, or left something else, is an error that says which."""
    if text is not None:
        (tmp_path / "report.json").write_text(text)
    with pytest.raises(ReconciliationError, match=message):
        read_report(UPath(tmp_path))


def test_a_report_is_read(tmp_path: Path) -> None:
    """What the job wrote is what is judged."""
    (tmp_path / "report.json").write_text(json.dumps(report()))
    assert read_report(UPath(tmp_path), 3) == Reconciliation(report=report(), allowed=3)
