"""The numbers of XComs, as metrics."""

import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from airflow_mm2_offsets.core import FailoverPlan
from airflow_mm2_offsets.core.group_offsets import GroupRules
from airflow_mm2_offsets.core.result import Strategy
from airflow_mm2_offsets.groups.report import GroupsReport
from airflow_mm2_offsets.observability import (
    emit_archive,
    emit_forecast,
    emit_groups,
    emit_plan,
    emit_readiness,
    emit_report,
    run_step,
)
from tests.unit.observability.conftest import Exporter, only
from tests.unit.observability.test_metrics import STEP


def _plan(**totals: object) -> dict[str, Any]:
    known = {"partitions": 6, "exact": 3, "bounded": 2, "refused": 1, "max_reread": 12}
    return {"totals": known | totals}


def test_a_plan(exporter: Exporter, spans: InMemorySpanExporter) -> None:
    """Partitions by status, and the records that can be read again; the span has the counts."""
    with run_step(STEP):
        emit_plan(_plan())
    statuses = [tags["status"] for tags in exporter.tags("positions") if tags]
    assert statuses == ["exact", "bounded", "refused"]
    assert [value for name, value, _ in exporter.sent if name.endswith("positions")] == [3, 2, 1]
    assert exporter.values()["read_again_records"] == 12
    attributes = only(spans).attributes or {}
    assert attributes["mm2_offsets.partitions"] == 6
    assert attributes["mm2_offsets.refused"] == 1


def test_the_names_are_those_of_a_real_plan(exporter: Exporter) -> None:
    """A plan's own JSON has all of them."""
    plan = FailoverPlan(
        created_at="", strategy=Strategy.SAFE, syncs_read=0, syncs_skipped=0, partitions=()
    )
    emit_plan(plan.to_json())
    assert len(exporter.tags("positions")) == 3
    assert exporter.values()["read_again_records"] == 0


def test_groups(exporter: Exporter) -> None:
    """Offsets by status, and the records read again; the names are those of a real report."""
    report = GroupsReport(offsets_from="translation", rules=GroupRules(), decisions=()).to_json()
    report["totals"] |= {"committed": 3, "kept": 1}
    emit_groups(report)
    sent = {
        tags["status"]: value for name, value, tags in exporter.sent if tags and "status" in tags
    }
    assert sent == {"committed": 3, "unchanged": 0, "kept": 1, "refused": 0, "failed": 0}
    assert exporter.values()["group_read_again_records"] == 0


def test_a_dry_run_of_groups_sends_nothing(exporter: Exporter) -> None:
    """Its numbers would pass for those of the schedule."""
    emit_groups(
        GroupsReport(
            offsets_from="translation", rules=GroupRules(dry_run=True), decisions=()
        ).to_json()
    )
    assert exporter.sent == []


@pytest.mark.parametrize(("at_most", "sent"), [("12", 12), (None, -1), ("0", 0)])
def test_a_forecast(exporter: Exporter, at_most: str | None, sent: int) -> None:
    """The most that can be lost and repeated; what is not known is -1, never an older number."""
    bounds = {"at_least": "0", "at_most": at_most}
    emit_forecast({"totals": {"at_risk": bounds, "read_again": bounds}})
    assert exporter.values() == {"at_risk_records": sent, "read_again_records": sent}


def test_the_bound_of_a_plan_that_is_not_known(exporter: Exporter) -> None:
    """-1 too."""
    emit_plan(_plan(max_reread=None))
    assert exporter.values()["read_again_records"] == -1


@pytest.mark.parametrize(
    ("verdict", "ready"), [("ready", 1), ("ready_with_warnings", 1), ("not_ready", 0)]
)
def test_readiness(exporter: Exporter, verdict: str, ready: int) -> None:
    """The verdict, and of each check the greatest value: no partition has a series."""
    emit_readiness(
        {
            "verdict": verdict,
            "checks": [
                {"name": "replication_lag", "value": "7", "status": "ok"},
                {"name": "replication_lag", "value": 900, "status": "failed"},
                {"name": "sync_age", "value": "90 s", "number": 1.5, "status": "ok"},
                {"name": "lag_seconds", "value": "3 seconds behind", "status": "ok"},
                {"name": "archive_age", "value": None, "status": "unknown"},
                {"name": "connector_running", "value": "RUNNING", "status": "ok"},
            ],
        }
    )
    assert exporter.values() == {
        "ready": ready,
        "replication_lag_records": 900,
        "sync_age_seconds": 1.5,
    }


def test_a_drill(exporter: Exporter) -> None:
    """A drill that succeeded sets the time that the alert looks at."""
    emit_report({"policy": "drill", "outcome": "drilled", "steps": [{"seconds": 42}]})
    values = exporter.values()
    assert (values["failovers"], values["drill_seconds"]) == (1, 42)
    assert abs(values["drilled_at_seconds"] - time.time()) < 60


@pytest.mark.parametrize(("policy", "outcome"), [("drill", "drill failed"), ("planned", "drilled")])
def test_only_a_drill_that_succeeded_counts(exporter: Exporter, policy: str, outcome: str) -> None:
    """A failed one, or another policy, leaves the time of the last one."""
    emit_report({"policy": policy, "outcome": outcome})
    assert exporter.values() == {"failovers": 1}


def test_an_archive(exporter: Exporter) -> None:
    """When it was written, its age and what is new."""
    as_of = datetime.now(UTC) - timedelta(seconds=90)
    emit_archive({"new_syncs": 5, "as_of": as_of.isoformat()})
    values = exporter.values()
    assert values["archived_syncs"] == 5
    assert values["archived_at_seconds"] == pytest.approx(as_of.timestamp())
    assert 90 <= values["archive_age_seconds"] < 150


def test_a_drill_takes_as_long_as_its_steps(exporter: Exporter) -> None:
    """They run one after the other; the report names the connection."""
    steps = [{"seconds": 2.5}, {"seconds": None}, {"seconds": 40}]
    emit_report({"policy": "drill", "outcome": "drilled", "steps": steps, "mm2_conn_id": "mm2_eu"})
    assert exporter.values()["drill_seconds"] == 42.5
    tags = {"dag_id": "none", "conn_id": "mm2_eu"}
    assert exporter.tags("drilled_at_seconds") == exporter.tags("drill_seconds") == [tags]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["totals", "exact", "at_risk", "at_most", "checks", "name", "value"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)
DOCUMENTS = st.dictionaries(
    st.sampled_from(
        ["totals", "checks", "verdict", "mode", "outcome", "seconds", "steps", "as_of"]
    ),
    JSON,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(document=DOCUMENTS)
def test_no_document_fails_a_task(exporter: Exporter, document: dict[str, Any]) -> None:
    """Whatever an XCom of another release holds, numbers are sent or left out."""
    for emit_numbers in (emit_plan, emit_forecast, emit_readiness, emit_report, emit_archive):
        emit_numbers(document)
    assert all(isinstance(value, int | float) for _, value, _ in exporter.sent)
