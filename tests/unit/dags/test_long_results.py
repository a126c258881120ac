"""A failover whose plan and offsets are too long for XCom and for an argument: any size is one."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException
from upath import UPath

from airflow_mm2_offsets.core import FailoverPlan
from airflow_mm2_offsets.core.forecast import FailoverForecast
from airflow_mm2_offsets.errors import ConfigurationError, NotReadyError, PlanError
from airflow_mm2_offsets.planning.stored_plan import whole_plan
from airflow_mm2_offsets.spark.fence import FenceState
from airflow_mm2_offsets.spark.offsets import parse_offsets
from airflow_mm2_offsets.spark.offsets_file import read_offsets, write_offsets
from tests.unit.dags.dags_folder import STEPS
from tests.unit.dags.failovers import STARTING, Failover, tells_of_dags

OPTION = "AIRFLOW__MM2_OFFSETS__"


@pytest.fixture(autouse=True)
def one_byte(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"{OPTION}XCOM_MAX_BYTES", "1")
    monkeypatch.setenv(f"{OPTION}ARGUMENT_MAX_BYTES", "10")  # a topic has 6
    # Of four partitions two are shown.
    monkeypatch.setattr("airflow_mm2_offsets.core.brief.WORST", 2)


def _conf(run: Failover) -> dict[str, Any]:
    (conf,) = run.worker.triggered.values()
    assert isinstance(conf, dict)
    return conf


def test_a_failover_goes_by_files_where_xcom_has_a_brief(run: Failover) -> None:
    """From check to report: XCom has two of four partitions, and the job gets the file of all."""
    for task_id in STEPS:
        run.run(task_id)
    plan, forecast = (
        run.worker.xcoms[task_id, "return_value"] for task_id in ("translate", "forecast")
    )
    for each, kind in ((plan, FailoverPlan), (forecast, FailoverForecast)):
        assert (len(each["worst_partitions"]), each["partitions_left_out"]) == (2, 2)
        whole = kind.from_json(whole_plan(each))
        assert len(whole.partitions) == 4
    assert plan["location"] == f"{run.target}/plans/manual__1.json"
    offsets = _conf(run)["starting_offsets"]
    assert offsets.startswith(f"@{run.target}/plans/manual__1.offsets-")
    assert Path(offsets[1:]).read_text() == STARTING
    report = run.worker.xcoms["report", "return_value"]
    assert report["plan"] == plan
    assert report["numbers"]["plan"]["partitions"] == 4
    assert (
        f"| whole plan | {plan['location']} (digest {plan['digest']}) |"
        in run.worker.xcoms["report", "summary"]
    )


def test_the_texts_say_where_the_rest_is(run: Failover) -> None:
    """Summary and table have the verdict on all, the worst partitions, and the file's location."""
    run.run_until("approve")
    for task_id, location in (("translate", "manual__1.json"), ("forecast", "1.forecast.json")):
        summary, table = (run.worker.xcoms[task_id, key] for key in ("summary", "table"))
        assert "\n" not in summary
        for text in (summary, "\n".join(table)):
            assert f"2 partitions more: {run.target}/plans/" in text
            assert location in text
        assert sum(line.startswith("orders[") for line in table) == 4  # two, and their reasons
    assert run.worker.xcoms["translate", "summary"].startswith("READY: 4 partitions (")


@pytest.mark.parametrize("task_id", ["translate", "submit_target"])
def test_a_cleared_task_ends_in_the_same_files(run: Failover, task_id: str) -> None:
    """Whichever task is cleared with all after it: the same brief, file and bytes."""
    for each in STEPS:
        run.run(each)
    first, files = _xcoms(run), _plans(run)
    for each in STEPS[STEPS.index(task_id) :]:
        run.run(each)
    assert (_xcoms(run), _plans(run)) == (first, files)
    assert len(files) == 3  # plan, forecast, offsets


def _xcoms(run: Failover) -> dict[Any, Any]:
    return {key: value for key, value in run.worker.xcoms.items() if key[0] in STEPS[1:-1]}


def _plans(run: Failover) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (run.target / "plans").iterdir()}


@pytest.mark.parametrize(
    ("damage", "named"),
    [
        (lambda path: path.unlink(), "the file of the starting offsets is gone"),
        (lambda path: path.write_text(STARTING.replace("9", "8")), "was changed: its name says"),
        (lambda path: path.write_text(""), "was changed: its name says"),
    ],
)
def test_a_file_of_offsets_that_is_not_the_plans_starts_nothing(
    run: Failover,
    damage: Any,  # noqa: ANN401 - a function
    named: str,
) -> None:
    """The hand-over compares what the file holds: gone, changed or emptied, no job is started."""
    run.run_until("submit_target")
    damage(Path(run.worker.xcoms["translate", "starting_offsets"][1:]))
    with pytest.raises(PlanError, match=named):
        run.run("submit_target")
    assert not run.worker.triggered


def test_the_file_of_another_plans_offsets_starts_nothing(run: Failover) -> None:
    """A whole and sound file of other offsets is not the plan's."""
    run.run_until("submit_target")
    other = write_offsets(STARTING.replace("9", "8"), f"{run.target}/plans/other.json", UPath)
    run.worker.xcoms["translate", "starting_offsets"] = other
    with pytest.raises(PlanError, match=r"conf says starting_offsets '@.*other\.offsets-"):
        run.run("submit_target")


def test_a_task_that_needs_all_partitions_misses_no_file_in_silence(run: Failover) -> None:
    """Without the file it fails, and names file and next step; it never goes by the brief."""
    run.run_until("forecast")
    (run.target / "plans" / "manual__1.json").unlink()
    with pytest.raises(PlanError, match=r"manual__1\.json: the file is gone; XCom holds only"):
        run.run("forecast")


def test_a_dry_run_keeps_no_plan(
    run: Failover, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It writes to ``xcom_folder`` alone: a plan in the job's folder would be taken by a retry."""
    monkeypatch.setenv(f"{OPTION}XCOM_FOLDER", str(tmp_path / "xcom"))
    run.worker.conf = {**run.worker.conf, "dry_run": True}
    for each in ("read_positions", "wait_replicated", "translate", "forecast"):
        run.run(each)
    assert not run.target.exists()
    assert len(whole_plan(run.worker.xcoms["translate", "return_value"])["partitions"]) == 4


def test_a_size_that_is_none_is_named(run: Failover, monkeypatch: pytest.MonkeyPatch) -> None:
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
    named = rf"stopped nothing; .*\n  - .*\[mm2_offsets\] {option.lower()} is '64k'"
    with pytest.raises(ConfigurationError, match=named):
        run.run("check")
    assert run.fence_state() is None


@tells_of_dags
def test_a_restart_needs_nothing_of_the_targets_storage(run: Failover) -> None:
    """It may be why the failover is rolled back: here no folder of plans can be written there."""
    run.worker.conf = {**run.worker.conf, "on_failure": "restart"}
    run.run_until("submit_target")
    shutil.rmtree(run.target / "plans")
    (run.target / "plans").write_text("a bucket that refuses")
    run.run("roll_back")
    offsets = _conf(run)["starting_offsets"]
    assert Path(offsets[1:]).parent == run.source.folder
    assert read_offsets(offsets, UPath) == '{"orders":{"0":4,"1":0,"2":0,"3":0}}'


@tells_of_dags
def test_a_wrong_size_does_not_hold_a_restart_up(
    run: Failover, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Changed after the check, it fails the translation; the job runs again by the defaults."""
    run.worker.conf = {**run.worker.conf, "on_failure": "restart"}
    run.run_until("translate")
    for option in ("XCOM_MAX_BYTES", "ARGUMENT_MAX_BYTES"):
        monkeypatch.setenv(f"{OPTION}{option}", "64k")
    with pytest.raises(ConfigurationError):
        run.run("translate")
    run.run("roll_back")
    assert _conf(run)["starting_offsets"] == '{"orders":{"0":4,"1":0,"2":0,"3":0}}'
    assert "argument_max_bytes is '64k'" in caplog.text


@pytest.mark.parametrize(
    ("pattern", "refused"), [({}, True), ({"subscribe_pattern": "^orders$"}, False)]
)
@pytest.mark.parametrize("task_id", ["check", "submit_target"])
def test_a_list_of_topics_that_no_argument_takes_moves_no_job(
    run: Failover,
    monkeypatch: pytest.MonkeyPatch,
    task_id: str,
    pattern: dict[str, str],
    refused: bool,  # noqa: FBT001 - a case
) -> None:
    """Found by the check, or before the mark; a job that subscribes by a pattern needs no list."""
    run.worker.conf = {**run.worker.conf, **pattern}
    run.run_until(task_id)
    fence = run.fence_state()
    monkeypatch.setenv(f"{OPTION}ARGUMENT_MAX_BYTES", "5")
    if not refused:
        run.run(task_id)
        return
    named = r"the list of the 1 topics on the target has 6 bytes, .* 5 .*subscribePattern"
    with pytest.raises(NotReadyError, match=named):
        run.run(task_id)
    assert run.fence_state() is fence
    assert fence is not FenceState.MOVED
    assert not run.worker.triggered


def test_a_job_with_a_pattern_of_its_own_is_known_by_its_driver(
    run: Failover, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is given: the pattern stands in the control location, for check and hand-over."""
    driver = run.source.read("driver.json") or {}
    (query,) = driver["queries"]
    run.source.beat(1, queries=[{**query, "subscribe_patterns": ["^orders$"]}])
    monkeypatch.setenv(f"{OPTION}ARGUMENT_MAX_BYTES", "5")
    run.run_until("wait_started")
    assert run.fence_state() is FenceState.MOVED


def test_offsets_of_a_file_are_those_that_the_job_began_at(run: Failover) -> None:
    """``wait_started`` reads the file: a job that began elsewhere is noticed."""
    run.run_until("wait_started")
    assert parse_offsets(read_offsets(_conf(run)["starting_offsets"], UPath))["orders"][0] == 9
    assert json.loads(Path(_conf(run)["starting_offsets"][1:]).read_text())
    run.run("wait_started")
