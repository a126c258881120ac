"""The step that asks a person, where a failover costs more than was allowed in advance."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from airflow.providers.common.compat.sdk import Context
from airflow.providers.standard.operators.hitl import HITLOperator

from airflow_mm2_offsets.core.approval import Ask, Measure, body, measure, must_ask, reason, subject
from airflow_mm2_offsets.core.brief import BRIEF_ROWS, WHOLE_ROWS, rest_of
from airflow_mm2_offsets.core.mode import FailoverMode
from airflow_mm2_offsets.errors import ApprovalError, ConfigurationError
from airflow_mm2_offsets.logins import without_login
from airflow_mm2_offsets.operators.failing import fails_at_once
from airflow_mm2_offsets.operators.links import page_links
from airflow_mm2_offsets.operators.settings import whole_number

APPROVE, REJECT = "Approve", "Reject"


class ApproveFailoverOperator(HITLOperator):
    """Asks a person to approve a failover whose numbers are above the thresholds; else nobody.

    The question is a required action of Airflow, with the numbers in its subject and the summaries
    of plan and forecast in its body. Rejected, or unanswered at the deadline, the task fails
    without a retry, so that ``roll_back`` runs.

    An answer counts for one try of the task. A cleared task asks again, because the plan may be
    another one; its log and its question say so. ``dag.test()`` waits for ever where it asks: give
    it ``ask="never"``, or ``mark_success_pattern``.

    Args:
        plan: What ``TranslateOffsetsOperator`` returned.
        forecast: What the forecast returned. Without one the records at risk are unknown, which is
            above every threshold.
        job: What the subject calls the job; its folder, for example.
        mode: The failover's.
        ask: ``above_thresholds`` (default), ``always`` or ``never``.
        max_refused: Partitions without a proved answer that need no approval.
        max_read_again: Records read again that need none.
        max_at_risk: Records at risk that need none.
        response_timeout: The deadline in seconds, or a timedelta; None: it waits for ever.
        on_timeout: What the deadline means: ``reject`` (default) or ``approve``.
        assigned_users: Who may answer: ids as a text with commas, or Airflow's ``HITLUser`` dicts.
            None: whoever may edit the DAG's required actions.

    Returns:
        ``asked``, ``approved``, ``by`` (None: nobody was asked, or the deadline decided), ``at``,
        ``why``, ``thresholds`` (each number with its threshold) and ``plan_digest``: the answer
        counts for this plan alone.

    Raises:
        ApprovalError: Somebody rejected it, or nobody answered in time.
        ConfigurationError: An argument is not one of its words, or no number.
    """

    operator_extra_links = page_links("run", beside=HITLOperator)
    template_fields: Sequence[str] = (
        *("subject", "body", "plan", "forecast", "job", "mode", "ask"),
        *("max_refused", "max_read_again", "max_at_risk"),
        *("response_timeout", "on_timeout", "assigned_users"),
    )

    def __init__(
        self,
        *,
        plan: Mapping[str, Any],
        forecast: Mapping[str, Any] | None = None,
        job: str = "{{ dag.dag_id }}",
        mode: str = FailoverMode.PLANNED.value,
        ask: str = Ask.ABOVE_THRESHOLDS.value,
        max_refused: int | str = 0,
        max_read_again: int | str = 0,
        max_at_risk: int | str = 0,
        response_timeout: timedelta | float | str | None = None,
        on_timeout: str = "reject",
        assigned_users: Sequence[Any] | Mapping[str, str] | str | None = None,
        **kwargs: Any,
    ) -> None:
        """Keep the settings."""
        super().__init__(subject="", options=[APPROVE, REJECT], **kwargs)
        self.plan = plan
        self.forecast = forecast
        self.job = job
        self.mode = mode
        self.ask = ask
        self.max_refused = max_refused
        self.max_read_again = max_read_again
        self.max_at_risk = max_at_risk
        self.response_timeout: Any = response_timeout
        self.on_timeout = on_timeout
        self.assigned_users: Any = assigned_users

    @fails_at_once()
    def execute(self, context: Context) -> dict[str, Any]:
        """Compare, and ask where a number is above its threshold."""
        ask, measures = self.parse_settings(), self._measures()
        why = reason(ask, measures)
        self.log.info("%s %s", why, "; ".join(map(str, measures)))
        if not must_ask(ask, measures):
            return self._answer(context, asked=False, approved=True, why=why)
        self._set_question(context, measures, why)
        super().execute(context)
        raise AssertionError("Airflow waits for the answer")

    def parse_settings(self) -> Ask:
        """Return when a person is asked, and check the other settings.

        Raises:
            ConfigurationError: One is invalid.
        """
        self._thresholds()
        self._approves_at_deadline()
        self._deadline()
        self._users()
        return self._ask()

    @fails_at_once()
    def execute_complete(self, context: Context, event: dict[str, Any]) -> dict[str, Any]:
        """Return the answer, or fail."""
        if event.get("error_type") == "timeout":
            why = f"nobody answered within {self._deadline()}"
            return self._fail(context, None, None, why)
        if "error" in event:
            return self._fail(context, None, None, f"the answer is invalid: {event['error']}")
        by, at = _user(event.get("responded_by_user")), str(event.get("responded_at"))
        decided = f"{by} has" if by else f"nobody answered within {self._deadline()}, which has"
        if APPROVE not in event["chosen_options"]:
            return self._fail(context, by, at, f"{decided} rejected it")
        why = f"{decided} approved it"
        self.log.info("%s", why)
        return self._answer(context, asked=True, approved=True, by=by, at=at, why=why)

    def _set_question(self, context: Context, measures: Sequence[Measure], why: str) -> None:
        """Set what ``HITLOperator`` shows."""
        approves = self._approves_at_deadline()
        self.response_timeout = self._deadline()
        self.assigned_users = self._users()
        self.defaults = [APPROVE] if approves else None
        self.subject = without_login(subject(str(self.job), str(self.mode), measures))
        tries = context["ti"].try_number
        again = f"\n\nTry {tries}: answers to earlier tries do not count." if tries > 1 else ""
        if again:
            self.log.warning("%s", again.strip())
        until = f" in {self.response_timeout}" if self.response_timeout else ""
        at_deadline = f" Without an answer{until} it is {'approved' if approves else 'rejected'}."
        self.body = body(
            measures,
            why + again,
            consequence=f"**{APPROVE}** starts the job on the target: the point of no return. "
            f"**{REJECT}** ends the failover, and rolls it back."
            + (at_deadline if self.response_timeout else " It waits without a deadline."),
            summaries={"Forecast": _summary(self.forecast), "Plan": _plan_text(self.plan)},
        )

    def _fail(self, context: Context, by: str | None, at: str | None, why: str) -> dict[str, Any]:
        # The report names who rejected it; what a failed task returns is lost.
        answer = self._answer(context, asked=True, approved=False, by=by, at=at, why=why)
        context["ti"].xcom_push(key="return_value", value=answer)
        raise ApprovalError(
            f"failover ({self.mode}) of {self.job}: {why}; nothing was started on the target. "
            f"To ask again, clear this task; after a roll-back, stop_source with all after it"
        )

    def _answer(
        self,
        context: Context,
        *,
        asked: bool,
        approved: bool,
        why: str,
        by: str | None = None,
        at: str | None = None,
    ) -> dict[str, Any]:
        context["ti"].xcom_push(key="summary", value=why)
        return {
            "schema_version": 1,
            "asked": asked,
            "approved": approved,
            "by": by,
            "at": at,
            "why": why,
            "plan_digest": self.plan.get("digest"),
            "thresholds": {
                each.name.replace(" ", "_"): {
                    "at_most": None if each.value is None else str(each.value),
                    "allowed": str(each.threshold),
                }
                for each in self._measures()
            },
        }

    def _measures(self) -> tuple[Measure, ...]:
        try:
            return measure(
                self.plan,
                self.forecast,
                **self._thresholds(),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise ConfigurationError(
                f"task {self.task_id}: plan or forecast can't be compared: "
                f"{type(error).__name__}: {error}"
            ) from error

    def _thresholds(self) -> dict[str, int]:
        names = ("max_refused", "max_read_again", "max_at_risk")
        return {name: whole_number(self, name) for name in names}

    def _ask(self) -> Ask:
        if str(self.ask) not in set(Ask):
            raise ConfigurationError(
                f"task {self.task_id}: ask is {self.ask!r}; give one of {', '.join(Ask)}"
            )
        return Ask(str(self.ask))

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


def _user(user: object) -> str | None:
    """Return the name of Airflow's user, which is a dict or a model."""
    values = user if isinstance(user, Mapping) else getattr(user, "__dict__", {})
    return values.get("name") or values.get("id")


def _summary(values: Mapping[str, Any] | None) -> str | None:
    return str(values["summary"]) if values and values.get("summary") else None


def _plan_text(plan: Mapping[str, Any]) -> str:
    """Return a plan's summary, or its partitions that are not exact, one a line.

    Of a brief those of its worst partitions.
    """
    rest = rest_of(plan)
    lines = [
        f"{each['topic']}[{each['partition']}] at {each['position']}: {each['status']}, "
        f"{each['reason']}"
        for each in plan.get(BRIEF_ROWS if rest else WHOLE_ROWS, ())
        if each["status"] != "exact"
    ]
    if rest:
        counts = plan["totals"]
        lines = [f"{counts['exact']} of {counts['partitions']} are exact.", *lines, rest]
    return _summary(plan) or "\n".join(lines) or "Every partition is exact."
