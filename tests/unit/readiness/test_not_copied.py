"""Copies that keep offsets: a position that is not copied yet is judged by the lag."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from upath import UPath

from airflow_mm2_offsets.core.policy import DISASTER, DRILL, PLANNED, Policy
from airflow_mm2_offsets.core.readiness import ReadinessReport
from airflow_mm2_offsets.core.readiness_names import CheckName
from airflow_mm2_offsets.planning.options import PlanOptions
from airflow_mm2_offsets.planning.plan import plan_failover
from airflow_mm2_offsets.readiness import ReadinessRequest, Thresholds, check_readiness
from airflow_mm2_offsets.testing import in_memory_clients
from tests.support.copies import TOPIC, Copies, entries_of, numbered
from tests.unit.readiness.ready_world import statuses, values
from tests.unit.spark import checkpoints

RECORDS = entries_of([numbered(number) for number in range(20)])


@pytest.fixture(autouse=True)
def _clients() -> Iterator[None]:
    with in_memory_clients():
        yield


def _report(copies: Copies, folder: Path, position: int, **settings: Any) -> ReadinessReport:
    line = checkpoints.orders(position)
    files = {"offsets/0": checkpoints.batch(line), "commits/0": checkpoints.commit()}
    checkpoints.write(folder, {"sources/0/0": checkpoints.start(checkpoints.orders(0)), **files})
    request = ReadinessRequest(
        find_pair=lambda: copies.pair, open=UPath, checkpoint=str(folder), **settings
    )
    return check_readiness(request)


@pytest.mark.parametrize("policy", [PLANNED, DRILL])
def test_what_the_failover_waits_for_is_no_failure(tmp_path: Path, policy: Policy) -> None:
    """The copy lags a little: the check says so; the translation itself still refuses it."""
    copies = Copies().fill(RECORDS, RECORDS[:15])
    report = _report(copies, tmp_path, 18, policy=policy)
    assert report.problems == []
    (waiting,) = values(report, CheckName.TRANSLATION)
    assert "orders[0] at 18: 3 offsets before it are not copied" in waiting
    assert "the failover waits for them before it translates" in waiting
    (retention,) = values(report, CheckName.TARGET_RETENTION)
    assert retention == "no record at a start is on the target yet"
    assert plan_failover(copies.pair, {TOPIC: {0: 18}}).refused


@pytest.mark.parametrize(("limit", "status"), [(3, "ok"), (2, "failed")])
def test_the_lag_decides(tmp_path: Path, limit: int, status: str) -> None:
    """The wait for more than ``max_lag_records`` might not end in time."""
    copies = Copies().fill(RECORDS, RECORDS[:15])
    report = _report(copies, tmp_path, 18, thresholds=Thresholds(max_lag_records=limit))
    assert statuses(report)[CheckName.TRANSLATION] == status


def test_a_disaster_waits_for_nothing(tmp_path: Path) -> None:
    """Nothing is copied any more: the refusal says what to set, and it helps."""
    copies = Copies().fill(RECORDS, RECORDS[:15])
    report = _report(copies, tmp_path, 18, policy=DISASTER)
    (refused,) = values(report, CheckName.TRANSLATION)
    assert "above the target's end 15" in refused
    assert "set read_source=False" in refused
    assert statuses(report)[CheckName.TRANSLATION] == "failed"
    by_word = PlanOptions(read_source=False, sole_writer=True)
    report = _report(copies, tmp_path, 18, policy=DISASTER, plan_options=by_word)
    assert statuses(report)[CheckName.TRANSLATION] == "ok"


def test_a_way_home_waits_for_nothing(tmp_path: Path) -> None:
    """The cluster that the job leaves ends after home: what lies there is not copied back."""
    copies = Copies().fill(RECORDS[:15], RECORDS)
    home = copies.pair.exchanged()
    report = _report(copies, tmp_path, 18)
    assert statuses(report)[CheckName.TRANSLATION] == "failed"
    request = ReadinessRequest(find_pair=lambda: home, open=UPath, checkpoint=str(tmp_path))
    report = check_readiness(request)
    assert statuses(report)[CheckName.TRANSLATION] == "failed"
    assert "is not copied back" in values(report, CheckName.TRANSLATION)[0]


def test_other_refusals_stay_failures_beside_it(tmp_path: Path) -> None:
    """A copy that differs is refused, however far it has come."""
    wrong = entries_of([numbered(number + 1) for number in range(15)])
    report = _report(Copies().fill(RECORDS, wrong), tmp_path, 18)
    (refused,) = values(report, CheckName.TRANSLATION)
    assert "not identical copies" in refused
    assert statuses(report)[CheckName.TRANSLATION] == "failed"


def test_a_transaction_whose_end_is_not_copied_is_waited_for(tmp_path: Path) -> None:
    """Its marker lies among what is still to be copied."""
    copies = Copies().fill(RECORDS, RECORDS[:19])
    copies.log(copies.target).open_from = 8
    report = _report(copies, tmp_path, 18)
    assert report.problems == []
    assert "orders[0] at 18: 0 offsets" in values(report, CheckName.TRANSLATION)[0]


def test_a_transaction_that_hangs_is_a_failure(tmp_path: Path) -> None:
    """All is copied and it is still open: the wait would end in vain, with the job stopped."""
    copies = Copies().fill(RECORDS, RECORDS)
    copies.log(copies.target).open_from = 8
    report = _report(copies, tmp_path, 18)
    assert statuses(report)[CheckName.TRANSLATION] == "failed"
    (hangs,) = values(report, CheckName.TRANSLATION)
    assert "open on the target from 8 on" in hangs
    assert "find-hanging" in hangs
