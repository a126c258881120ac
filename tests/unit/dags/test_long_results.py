"""A failover whose plan is too long for XCom: any size is."""

from typing import Any

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_mm2_offsets.core import FailoverPlan
from airflow_mm2_offsets.core.forecast import FailoverForecast
from airflow_mm2_offsets.errors import ConfigurationError, PlanError
from airflow_mm2_offsets.planning.stored_plan import whole_plan
from airflow_mm2_offsets.task_groups import STEPS
from tests.unit.dags.failovers import STARTING, Failover

OPTION = "AIRFLOW__MM2_OFFSETS__"


@pytest.fixture(autouse=True)
def one_byte(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"{OPTION}XCOM_MAX_BYTES", "1")
    # Of four partitions two are shown.
    monkeypatch.setattr("airflow_mm2_offsets.core.brief.WORST", 2)


def test_a_failover_goes_by_the_plans_file(run: Failover) -> None:
    """From check to report: XCom has two of four partitions, and the job gets all offsets."""
    run.run_all()
    plan, forecast = (run.worker.xcoms["translate", key] for key in ("return_value", "forecast"))
    for each, kind in ((plan, FailoverPlan), (forecast, FailoverForecast)):
        assert (len(each["worst_partitions"]), each["partitions_left_out"]) == (2, 2)
        whole = kind.from_json(whole_plan(each))
        assert len(whole.partitions) == 4
    assert plan["location"] == str(run.plan_path())
    assert run.starting_offsets() == [STARTING]
    assert run.worker.xcoms["report", "return_value"]["outcome"] == "moved"


def test_the_texts_say_where_the_rest_is(run: Failover) -> None:
    """Summary and table have the verdict on all, the worst partitions, and the file's location."""
    run.run_until("approve")
    summary, table = (run.worker.xcoms["translate", key] for key in ("summary", "table"))
    assert "\n" not in summary
    for text in (summary, "\n".join(table)):
        assert f"2 partitions more: {run.plan_path()}" in text
    assert sum(line.startswith("orders[") for line in table) == 4  # two, and their reasons
    assert summary.startswith("READY: 4 partitions (")


def test_a_cleared_task_ends_in_the_same_files(run: Failover) -> None:
    """The same brief, file and bytes."""
    run.run_until("start_target")
    first, files = _xcoms(run), _plans(run)
    run.run("translate")
    assert (_xcoms(run), _plans(run)) == (first, files)


def _xcoms(run: Failover) -> dict[Any, Any]:
    return {key: value for key, value in run.worker.xcoms.items() if key[0] in STEPS}


def _plans(run: Failover) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in run.plan_path().parent.iterdir()}


def test_a_plan_that_is_gone_starts_nothing(run: Failover) -> None:
    """Nothing goes by the brief."""
    run.run_until("start_target")
    run.plan_path().unlink()
    with pytest.raises(PlanError, match=run.plan_path().name):
        run.run("start_target")
    assert not run.worker.triggered


def test_a_size_that_is_no_number_is_named(run: Failover, monkeypatch: pytest.MonkeyPatch) -> None:
    """Section, option and value are in the error, which no retry mends."""
    run.run_until("translate")
    monkeypatch.setenv(f"{OPTION}XCOM_MAX_BYTES", "64k")
    with pytest.raises(AirflowFailException, match=r"\[mm2_offsets\] xcom_max_bytes is '64k'"):
        run.run("translate")
    monkeypatch.setenv(f"{OPTION}XCOM_MAX_BYTES", "0")
    with pytest.raises(ConfigurationError, match="give a whole number of bytes, from 1"):
        run.run("translate")


@pytest.mark.parametrize("option", ["XCOM_MAX_BYTES", "ARGUMENT_MAX_BYTES"])
def test_a_wrong_size_is_found_before_anything_is_stopped(
    run: Failover, monkeypatch: pytest.MonkeyPatch, option: str
) -> None:
    """The check names it: the tasks that use it come after the stop."""
    monkeypatch.setenv(f"{OPTION}{option}", "64k")
    with pytest.raises(ConfigurationError, match=rf"\[mm2_offsets\] {option.lower()} is '64k'"):
        run.run("check")
    assert run.source.fence() is None
