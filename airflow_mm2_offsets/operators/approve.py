"""The steps that ask a person, where moves cost more than was allowed in advance."""

import json
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any

from airflow.providers.common.compat.sdk import Context
from airflow.providers.standard.operators.hitl import HITLOperator

from airflow_mm2_offsets.core.approval import (
    Ask,
    Measure,
    body,
    measures_of,
    must_ask,
    reason,
    subject,
)
from airflow_mm2_offsets.errors import ApprovalError, ConfigurationError, HandoverError
from airflow_mm2_offsets.logins import without_login
from airflow_mm2_offsets.moves.journal import Event
from airflow_mm2_offsets.moves.move import Move
from airflow_mm2_offsets.moves.status import status_of
from airflow_mm2_offsets.operators.failing import fails_at_once
from airflow_mm2_offsets.operators.links import address_in_airflow, page_links, run_address
from airflow_mm2_offsets.operators.moving import (
    AnyContext,
    MoveArgument,
    mover_of,
    skip_in_dry_run,
    to_template,
)
from airflow_mm2_offsets.operators.rollback import KEEP, RESTART, WITHDRAW, parse_on_failure

APPROVE, REJECT = "Approve", "Reject"
_AFTER_REJECT: Mapping[str, str] = MappingProxyType(
    {
        WITHDRAW: "stays stopped until you start it at {here} again, or a new run moves it",
        RESTART: "is started again at {here}",
        KEEP: "stays stopped until this task is cleared, or a new run moves it",
    }
)
"""What becomes of the job, by what a failure undoes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What a person is asked."""

    subject: str
    """The headline."""
    measures: tuple[Measure, ...]
    """The numbers beside their thresholds."""
    consequence: str
    """What either answer leads to, as sentences."""
    summaries: Mapping[str, str | None]
    digest: str | None
    """Of the plan that the answer counts for."""
    deadline: datetime | None = None
    """When it must be answered."""


class AskOperator(HITLOperator):
    """Asks a person where a number is above its threshold; else nobody.

    The question is a required action of Airflow. Rejected, or unanswered at the deadline, the task
    fails without a retry.

    An answer counts for one try of the task. A cleared task asks again, because the plan may be
    another one; its log and its question say so. ``dag.test()`` waits for ever where it asks: give
    it ``ask="never"``, or ``mark_success_pattern``.

    Args:
        ask: ``above_thresholds`` (default), ``always`` or ``never``.
        response_timeout: The deadline in seconds, or a timedelta; None: it waits for ever.
        on_timeout: What the deadline means: ``reject`` (default) or ``approve``.
        assigned_users: Who may answer: ids as a text with commas, or Airflow's ``HITLUser`` dicts.
            None: whoever may edit the DAG's required actions.
    """

    template_fields: Sequence[str] = (
        *("subject", "body", "ask", "response_timeout", "on_timeout", "assigned_users"),
    )

    def __init__(
        self,
        *,
        ask: str = Ask.ABOVE_THRESHOLDS.value,
        response_timeout: timedelta | float | str | None = None,
        on_timeout: str = "reject",
        assigned_users: Sequence[Any] | Mapping[str, str] | str | None = None,
        **kwargs: Any,
    ) -> None:
        """Keep the settings."""
        super().__init__(subject="", options=[APPROVE, REJECT], **kwargs)
        self.ask = ask
        self.response_timeout: Any = response_timeout
        self.on_timeout = on_timeout
        self.assigned_users: Any = assigned_users

    def find_earlier_answer(self, context: AnyContext) -> Mapping[str, Any] | None:
        """Return the answer that has been acted on, where the task was cleared after that."""
        del context  # a step that is not followed by such a deed asks again
        return None

    @abstractmethod
    def find_question(self, context: AnyContext, deadline: datetime | None) -> Question:
        """Return what a person is asked; skip the task in a dry run."""

    @abstractmethod
    def note_question(self, context: AnyContext, question: Question) -> None:
        """Note that a person is asked."""

    @abstractmethod
    def note_answer(self, context: AnyContext, answer: Mapping[str, Any]) -> None:
        """Note the answer; nobody may have been asked."""

    @abstractmethod
    def why_outdated(self, context: AnyContext) -> str | None:
        """Return why an answer no longer counts; None if it does."""

    @fails_at_once()
    def execute(self, context: Context) -> dict[str, Any]:
        """Compare, and ask where a number is above its threshold."""
        ask, timeout = self.parse_settings(), self._deadline()
        deadline = datetime.now(UTC) + timeout if timeout else None
        if (earlier := self.find_earlier_answer(context)) is not None:
            self.log.info("What was asked has been done: nobody is asked again")
            return {**earlier}
        question = self.find_question(context, deadline)
        why = reason(ask, question.measures)
        self.log.info("%s %s", why, "; ".join(map(str, question.measures)))
        if not must_ask(ask, question.measures):
            return self._note(context, asked=False, approved=True, why=why)
        self.note_question(context, question)
        self._show(context, self.find_question(context, deadline), why, deadline)
        super().execute(context)
        raise AssertionError("Airflow waits for the answer")

    def parse_settings(self) -> Ask:
        """Return when a person is asked, and check the other settings.

        Raises:
            ConfigurationError: One is invalid.
        """
        self._approves_at_deadline()
        self._deadline()
        self._users()
        if str(self.ask) not in set(Ask):
            raise ConfigurationError(
                f"task {self.task_id}: ask is {self.ask!r}; give one of {', '.join(Ask)}"
            )
        return Ask(str(self.ask))

    @fails_at_once()
    def execute_complete(self, context: Context, event: dict[str, Any]) -> dict[str, Any]:
        """Return the answer, or fail."""
        if (why := self.why_outdated(context)) is not None:
            return self._fail(context, None, None, why)
        if event.get("error_type") == "timeout":
            return self._fail(context, None, None, f"nobody answered within {self._deadline()}")
        if "error" in event:
            return self._fail(context, None, None, f"the answer is invalid: {event['error']}")
        by, at = _user(event.get("responded_by_user")), str(event.get("responded_at"))
        decided = f"{by} has" if by else f"nobody answered within {self._deadline()}, which has"
        if APPROVE not in event["chosen_options"]:
            return self._fail(context, by, at, f"{decided} rejected it")
        why = f"{decided} approved it"
        self.log.info("%s", why)
        return self._note(context, asked=True, approved=True, by=by, at=at, why=why)

    def _show(
        self, context: Context, question: Question, why: str, deadline: datetime | None
    ) -> None:
        """Set what ``HITLOperator`` shows."""
        approves = self._approves_at_deadline()
        self.response_timeout = self._deadline()
        self.assigned_users = self._users()
        self.defaults = [APPROVE] if approves else None
        until = " It waits without a deadline."
        if deadline:
            decided = "approved" if approves else "rejected"
            until = f" Without an answer until {deadline:%Y-%m-%d %H:%M} UTC it is {decided}."
        self.subject = without_login(question.subject)
        tries = context["ti"].try_number
        again = f"\n\nTry {tries}: answers to earlier tries do not count." if tries > 1 else ""
        if again:
            self.log.warning("%s", again.strip())
        self.body = body(
            question.measures,
            why + again,
            consequence=question.consequence + until,
            summaries=question.summaries,
            more=address_in_airflow(run_address(context["ti"].dag_id, context["ti"].run_id)),
        )

    def _fail(self, context: Context, by: str | None, at: str | None, why: str) -> dict[str, Any]:
        # The report names who rejected it; what a failed task returns is lost.
        answer = self._note(context, asked=True, approved=False, by=by, at=at, why=why)
        context["ti"].xcom_push(key="return_value", value=answer)
        raise ApprovalError(
            f"{why}; nothing was started. To ask again, clear this task; after a roll-back, start "
            f"a new run"
        )

    def _note(
        self,
        context: AnyContext,
        *,
        asked: bool,
        approved: bool,
        why: str,
        by: str | None = None,
        at: str | None = None,
    ) -> dict[str, Any]:
        """Note the answer, and return it."""
        question = self.find_question(context, None)
        answer = {
            "schema_version": 1,
            "asked": asked,
            "approved": approved,
            "by": by,
            "at": at,
            "why": why,
            "plan_digest": question.digest,
            "thresholds": {
                each.name.replace(" ", "_"): {
                    "at_most": None if each.value is None else str(each.value),
                    "allowed": str(each.threshold),
                }
                for each in question.measures
            },
        }
        self.note_answer(context, answer)
        context["ti"].xcom_push(key="summary", value=why)
        return answer

    def _approves_at_deadline(self) -> bool:
        if str(self.on_timeout) not in {"reject", "approve"}:
            raise ConfigurationError(
                f"task {self.task_id}: on_timeout is {self.on_timeout!r}; give reject or approve"
            )
        return str(self.on_timeout) == "approve"

    def _deadline(self) -> timedelta | None:
        value = self.response_timeout
        if value in {None, "", "None"} or isinstance(value, timedelta):
            return value if isinstance(value, timedelta) else None
        try:
            seconds = float(value)
        except (TypeError, ValueError):
            seconds = 0.0
        if not 0 < seconds < float("inf"):
            raise ConfigurationError(
                f"task {self.task_id}: response_timeout is {value!r}; give seconds, or None"
            )
        return timedelta(seconds=seconds)

    def _users(self) -> list[dict[str, str]] | None:
        users = self.assigned_users
        if users in (None, "", "None"):
            return None
        if isinstance(users, Mapping):
            users = [users]
        if isinstance(users, str):
            users = [each.strip() for each in users.split(",") if each.strip()]
        if not isinstance(users, Sequence) or not all(isinstance(e, (str, Mapping)) for e in users):
            raise ConfigurationError(
                f"task {self.task_id}: assigned_users is {users!r}; give ids, or HITLUser dicts"
            )
        return [{"id": each, "name": each} if isinstance(each, str) else {**each} for each in users]


class ApproveFailoverOperator(AskOperator):
    """Asks a person to approve a move whose numbers are above the job's thresholds; else nobody.

    The question shows the move's status, its numbers beside their thresholds, and the summaries of
    forecast and plan. Rejected, or unanswered at the deadline, the move is rolled back.

    Args:
        move: What is moved, and how; the job has the thresholds.
        approved: What a person has approved before, by the job's name, as for a fleet: ``refused``,
            ``read_again_at_most`` and ``lost_at_most``. Such a number counts as the threshold
            where it is the higher one. A mapping, or JSON text.
        on_failure: What a rejection leads to: see ``RollbackFailoverOperator``.
        kwargs: See ``AskOperator``.

    Returns:
        ``asked``, ``approved``, ``by`` (None: nobody was asked, or the deadline decided), ``at``,
        ``why``, ``thresholds`` (each number with its threshold) and ``plan_digest``: the answer
        counts for this plan alone.

    Raises:
        ApprovalError: Somebody rejected it, or nobody answered in time.
        HandoverError: The move has no plan.
        ConfigurationError: An argument is not one of its words, or no number.
    """

    operator_extra_links = page_links("run", beside=HITLOperator)
    template_fields: Sequence[str] = (
        *AskOperator.template_fields,
        "move",
        "approved",
        "on_failure",
    )

    def __init__(
        self,
        *,
        move: MoveArgument,
        approved: Mapping[str, Mapping[str, int | None]] | str | None = None,
        on_failure: str = WITHDRAW,
        **kwargs: Any,
    ) -> None:
        """Keep the settings."""
        super().__init__(**kwargs)
        self.move = to_template(move)
        self.approved = approved
        self.on_failure = on_failure

    def find_earlier_answer(self, context: AnyContext) -> Mapping[str, Any] | None:
        """Return the answer that this run has handed the job over by."""
        move = mover_of(self, context).find()
        return (move.noted("approval") or {}) if move.is_handed_over else None

    def find_question(self, context: AnyContext, deadline: datetime | None) -> Question:
        """Return the question of the move as its journal has it."""
        move = mover_of(self, context).find()
        skip_in_dry_run(self, context, "ask a person where a number is above its threshold")
        status = status_of(move)
        measures = self._measures(move)
        after = _AFTER_REJECT[parse_on_failure(self.task_id, self.on_failure)]
        stopped = f"{status.stopped_at:%H:%M:%S} UTC" if status.stopped_at else "its stop"
        return Question(
            subject=subject(move.job.name, move.policy.name, measures),
            measures=measures,
            consequence=f"**{APPROVE}** starts the job at {status.there}: the point of no return. "
            f"**{REJECT}** gives the move up: {move.job.name} has been stopped since {stopped}, "
            f"and {after.format(here=status.here)}.",
            summaries={"Status": "\n".join(status.to_lines()), **(move.noted("summaries") or {})},
            digest=move.noted("plan_digest"),
            deadline=deadline,
        )

    def note_question(self, context: AnyContext, question: Question) -> None:
        """Note in the journal for which plan a person is asked, where, and until when."""
        mover, index = mover_of(self, context), context["ti"].map_index
        until = question.deadline and question.deadline.isoformat(timespec="seconds")
        mover.record(
            mover.find(),
            Event.NOTE,
            asked_of=question.digest,
            waits_for="a person's answer",
            asked_in=self.task_id if index in {None, -1} else f"{self.task_id}[{index}]",
            until=until,
        )

    def note_answer(self, context: AnyContext, answer: Mapping[str, Any]) -> None:
        """Note the answer in the journal."""
        mover = mover_of(self, context)
        mover.record(mover.find(), Event.NOTE, approval=answer)

    def why_outdated(self, context: AnyContext) -> str | None:
        """Return that the plan is another one."""
        move = mover_of(self, context).find()
        if move.noted("asked_of") == move.noted("plan_digest"):
            return None
        return "another plan was made since this was asked"

    def _measures(self, move: Move) -> tuple[Measure, ...]:
        """Return the move's numbers beside the job's thresholds.

        Raises:
            HandoverError: The move has no plan.
        """
        numbers = move.noted("numbers")
        if numbers is None:
            raise HandoverError(
                f"job {move.job.name}: its journal names no plan of this move: clear the task that "
                f"translates, with all after it"
            )
        of_fleet = json.loads(self.approved) if isinstance(self.approved, str) else self.approved
        approved = (of_fleet or {}).get(move.job.name) or {}
        return measures_of(
            numbers,
            max_refused=max(move.job.max_refused, approved.get("refused") or 0),
            max_read_again=max(move.job.max_read_again, approved.get("read_again_at_most") or 0),
            max_at_risk=max(move.job.max_at_risk, approved.get("lost_at_most") or 0),
        )


def _user(user: object) -> str | None:
    """Return the name of Airflow's user, which is a dict or a model."""
    values = user if isinstance(user, Mapping) else getattr(user, "__dict__", {})
    return values.get("name") or values.get("id")
