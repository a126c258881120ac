"""ApproveFailoverOperator: whom it asks, and what comes of the answer."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import DAG, AirflowFailException

from airflow_mm2_offsets.errors import ApprovalError, ConfigurationError
from airflow_mm2_offsets.operators.approve import ApproveFailoverOperator
from tests.unit.core.test_approval import forecast, plan
from tests.unit.operators.worker import Worker

ASKS = {"AwaitInputTask", "DeferTask"}
"""How Airflow from 3.3 on, and before, waits for an answer."""
NO_ANSWER = {"error": "The timeout has passed", "error_type": "timeout"}


def _task(**settings: Any) -> ApproveFailoverOperator:
    with DAG("failover", schedule=None):
        return ApproveFailoverOperator(
            task_id="approve", **{"plan": plan(), "forecast": forecast(), "job": "o", **settings}
        )


def _answer(option: str, user: str | None = "ann") -> dict[str, Any]:
    return {
        "chosen_options": [option],
        "params_input": {},
        "responded_at": datetime(2026, 11, 22, 3, 15, tzinfo=UTC),
        "responded_by_user": {"id": "7", "name": user} if user else None,
    }


def _asked(worker: Worker, **settings: Any) -> tuple[ApproveFailoverOperator, Any]:
    task = _task(forecast=forecast(risk=12), **settings)
    parked = worker.run(task)
    assert parked.type in ASKS
    return task, parked


def test_a_question_shows_no_login(worker: Worker) -> None:
    """The subject names the job's folder, and everybody in the UI reads it."""
    _asked(worker, job="sftp://etl:hunter2@host/orders")
    (question,) = worker.questions
    assert "sftp://etl:***@host/orders" in question.subject
    assert "hunter2" not in str(question)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"forecast": forecast(risk=12), "max_at_risk": "{{ dag_run.conf.at_risk }}"},
        {"forecast": forecast(risk=None), "ask": "never"},
    ],
)
def test_nobody_is_asked(worker: Worker, settings: dict[str, Any]) -> None:
    """An exact plan of healthy clusters, within the thresholds, or told so: the XCom says why."""
    worker.conf = {"at_risk": 12}
    assert worker.run(_task(**settings)).type == "SucceedTask"
    answer = worker.xcoms["approve", "return_value"]
    assert (answer["asked"], answer["approved"], answer["by"]) == (False, True, None)
    assert answer["why"] == worker.xcoms["approve", "summary"]
    assert set(answer["thresholds"]) == {
        *("refused_partitions", "records_read_again", "records_at_risk"),
    }


@pytest.mark.parametrize(
    "settings",
    [
        {"ask": "always"},
        {"forecast": None},
        {"forecast": forecast(risk=None)},
        {"forecast": forecast(again=1)},
        {"plan": plan(refused=1)},
    ],
)
def test_a_person_is_asked(worker: Worker, settings: dict[str, Any]) -> None:
    """Also for what is unknown."""
    assert worker.run(_task(**settings)).type in ASKS


def test_the_question(worker: Worker) -> None:
    """It has the deadline, those who may answer, and what the deadline means."""
    _, parked = _asked(worker, response_timeout="90", assigned_users="ann, bob", mode="disaster")
    (question,) = worker.questions
    assert question.subject.startswith("Failover (disaster) of o: 0 refused partitions, ")
    assert "Without an answer in 0:01:30 it is rejected." in question.body
    assert (question.options, question.defaults) == (["Approve", "Reject"], None)
    assert [user.id for user in question.assigned_users] == ["ann", "bob"]
    assert parked.next_method == "execute_complete"


def test_approved(worker: Worker) -> None:
    """By whom and when."""
    task, parked = _asked(worker)
    assert worker.run(task, after=parked, event=_answer("Approve")).type == "SucceedTask"
    answer = worker.xcoms["approve", "return_value"]
    assert (answer["asked"], answer["approved"], answer["by"]) == (True, True, "ann")
    assert answer["at"].startswith("2026-11-22")
    assert answer["thresholds"]["records_at_risk"] == {"at_most": "12", "allowed": "0"}


@pytest.mark.parametrize(
    ("event", "by", "why"),
    [
        (_answer("Reject"), "ann", "ann has rejected it"),
        (NO_ANSWER, None, "nobody answered within 0:00:05"),
        ({"error": "bad", "error_type": "validation"}, None, "the answer is invalid: bad"),
    ],
)
def test_not_approved(worker: Worker, event: dict[str, Any], by: str | None, why: str) -> None:
    """The task fails for good, so that roll_back runs, and its XCom says who it was."""
    task, parked = _asked(worker, response_timeout=5)
    with pytest.raises(ApprovalError, match=why) as caught:
        worker.run(task, after=parked, event=event)
    assert isinstance(caught.value, AirflowFailException)
    answer = worker.xcoms["approve", "return_value"]
    assert (answer["asked"], answer["approved"], answer["by"]) == (True, False, by)


def test_the_deadline_may_approve(worker: Worker) -> None:
    """Then Airflow answers with the default, by nobody."""
    task, parked = _asked(worker, on_timeout="approve", response_timeout=timedelta(minutes=5))
    assert worker.questions[0].defaults == ["Approve"]
    worker.run(task, after=parked, event=_answer("Approve", user=None))
    answer = worker.xcoms["approve", "return_value"]
    assert (answer["approved"], answer["by"]) == (True, None)
    assert answer["why"] == "nobody answered within 0:05:00, which has approved it"


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"ask": "sometimes"}, "ask is 'sometimes'; give one of above_thresholds, always, never"),
        ({"max_at_risk": "many"}, "max_at_risk is 'many'"),
        ({"plan": None}, "can't be compared"),
        ({"forecast": {"totals": {}}}, "can't be compared: KeyError: 'read_again'"),
        ({"ask": "always", "on_timeout": "wait"}, "on_timeout is 'wait'; give reject or approve"),
        ({"ask": "always", "response_timeout": "-1"}, "response_timeout is '-1'; give seconds"),
    ],
)
def test_arguments(worker: Worker, settings: dict[str, Any], problem: str) -> None:
    """What can't be meant is named, and nobody is asked."""
    with pytest.raises(ConfigurationError, match=problem):
        worker.run(_task(**settings))
