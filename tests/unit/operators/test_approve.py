"""ApproveFailoverOperator: whom it asks, and what comes of the answer."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_mm2_offsets.errors import ApprovalError, ConfigurationError, HandoverError
from airflow_mm2_offsets.moves.journal import Event
from airflow_mm2_offsets.operators.approve import ApproveFailoverOperator
from airflow_mm2_offsets.operators.handover import TriggerTargetDagOperator
from airflow_mm2_offsets.operators.translate import TranslateOffsetsOperator
from tests.unit.operators.mover import Mover

ASKS = {"AwaitInputTask", "DeferTask"}
"""How Airflow from 3.3 on, and before, waits for an answer."""
NO_ANSWER = {"error": "The timeout has passed", "error_type": "timeout"}
APPROVE = ApproveFailoverOperator.__name__


@pytest.fixture
def mover(mover: Mover) -> Mover:
    """A job that was stopped, and whose plan and forecast are exact."""
    mover.stop(mover.source.folder)
    mover.run(TranslateOffsetsOperator)
    return mover


def _costs(mover: Mover, **numbers: int | None) -> None:
    """Let the forecast be a worse one."""
    exact = {"refused": 0, "read_again_at_most": 0, "lost_at_most": 0}
    mover.steps.record(mover.steps.find(), Event.NOTE, numbers=exact | numbers)


def _answer(option: str, user: str | None = "ann") -> dict[str, Any]:
    return {
        "chosen_options": [option],
        "params_input": {},
        "responded_at": datetime(2026, 11, 22, 3, 15, tzinfo=UTC),
        "responded_by_user": {"id": "7", "name": user} if user else None,
    }


def _asked(mover: Mover, **settings: Any) -> tuple[ApproveFailoverOperator, Any]:
    _costs(mover, lost_at_most=12)
    task = mover.task(ApproveFailoverOperator, **settings)
    assert isinstance(task, ApproveFailoverOperator)
    parked = mover.worker.run(task)
    assert parked.type in ASKS
    return task, parked


@pytest.mark.parametrize(
    ("numbers", "of_job", "settings"),
    [
        ({}, {}, {}),
        ({"lost_at_most": 12}, {"max_at_risk": 12}, {}),
        ({"lost_at_most": 12}, {}, {"approved": '{"orders": {"lost_at_most": 12}}'}),
        ({"lost_at_most": None}, {}, {"ask": "{{ dag_run.conf.ask }}"}),
    ],
)
def test_nobody_is_asked(
    mover: Mover, numbers: dict[str, Any], of_job: dict[str, Any], settings: dict[str, Any]
) -> None:
    """Within the thresholds of the job or a fleet's approval, or told so: the XCom says why."""
    mover.more, mover.worker.conf = of_job, {"ask": "never"}
    _costs(mover, **numbers)
    answer = mover.run(ApproveFailoverOperator, **settings)
    assert (answer["asked"], answer["approved"], answer["by"]) == (False, True, None)
    assert answer["why"] == mover.worker.xcoms[APPROVE, "summary"]
    assert mover.entries()[-1].facts == {"approval": answer}


def test_the_question(mover: Mover) -> None:
    """It says who may answer, and what the deadline means."""
    _, parked = _asked(mover, response_timeout="90", assigned_users="ann, bob")
    (question,) = mover.worker.questions
    assert "12 records at risk" in question.subject
    assert "UTC it is rejected." in question.body
    assert (question.options, question.defaults) == (["Approve", "Reject"], None)
    assert [user.id for user in question.assigned_users] == ["ann", "bob"]
    assert parked.next_method == "execute_complete"


def test_approved(mover: Mover) -> None:
    """By whom and when, and for which plan alone; the job is handed over by it."""
    task, parked = _asked(mover)
    assert mover.worker.run(task, after=parked, event=_answer("Approve")).type == "SucceedTask"
    answer = mover.worker.xcoms[APPROVE, "return_value"]
    assert (answer["asked"], answer["approved"], answer["by"]) == (True, True, "ann")
    assert answer["at"].startswith("2026-11-22")
    assert answer["thresholds"]["records_at_risk"] == {"at_most": "12", "allowed": "0"}
    assert answer["plan_digest"] == mover.steps.find().noted("plan_digest")
    mover.run(TriggerTargetDagOperator)
    assert len(mover.worker.triggered) == 1


@pytest.mark.parametrize(
    ("event", "by", "why"),
    [
        (_answer("Reject"), "ann", "ann has rejected it"),
        (NO_ANSWER, None, "nobody answered within 0:00:05"),
        ({"error": "bad", "error_type": "validation"}, None, "the answer is invalid: bad"),
    ],
)
def test_not_approved(mover: Mover, event: dict[str, Any], by: str | None, why: str) -> None:
    """The task fails for good, its XCom says who it was, and nobody starts the job by hand."""
    task, parked = _asked(mover, response_timeout=5)
    with pytest.raises(ApprovalError, match=why) as caught:
        mover.worker.run(task, after=parked, event=event)
    assert isinstance(caught.value, AirflowFailException)
    answer = mover.worker.xcoms[APPROVE, "return_value"]
    assert (answer["asked"], answer["approved"], answer["by"]) == (True, False, by)
    with pytest.raises(HandoverError, match="the failover was rejected"):
        mover.run(TriggerTargetDagOperator)  # somebody has marked the task as success
    assert mover.worker.triggered == {}


def test_an_answer_to_another_plan_does_not_count(mover: Mover) -> None:
    """The plan was made again while the person thought."""
    task, parked = _asked(mover)
    mover.steps.record(mover.steps.find(), Event.NOTE, plan_digest="another")
    with pytest.raises(ApprovalError, match="another plan was made since this was asked"):
        mover.worker.run(task, after=parked, event=_answer("Approve"))


def test_the_deadline_may_approve(mover: Mover) -> None:
    """Then Airflow answers with the default, by nobody."""
    task, parked = _asked(mover, on_timeout="approve", response_timeout=timedelta(minutes=5))
    assert mover.worker.questions[0].defaults == ["Approve"]
    mover.worker.run(task, after=parked, event=_answer("Approve", user=None))
    answer = mover.worker.xcoms[APPROVE, "return_value"]
    assert (answer["approved"], answer["by"]) == (True, None)
    assert answer["why"] == "nobody answered within 0:05:00, which has approved it"


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"ask": "sometimes"}, "ask is 'sometimes'; give one of above_thresholds, always, never"),
        ({"on_timeout": "wait"}, "on_timeout is 'wait'; give reject or approve"),
        ({"response_timeout": "-1"}, "response_timeout is '-1'; give seconds"),
        ({"assigned_users": 7}, "assigned_users is 7; give ids"),
    ],
)
def test_arguments(mover: Mover, settings: dict[str, Any], problem: str) -> None:
    """What can't be meant is named, and nobody is asked."""
    with pytest.raises(ConfigurationError, match=problem):
        mover.run(ApproveFailoverOperator, **settings)


def test_without_a_plan_nothing_is_approved(mover: Mover) -> None:
    """The stop was proved again, and the plan is of the positions before."""
    proof = mover.steps.find().facts(Event.PROVE)
    mover.steps.record(mover.steps.find(), Event.PROVE, **{**proof, "heartbeat": 99})
    with pytest.raises(HandoverError, match="names no plan of this move"):
        mover.run(ApproveFailoverOperator)
