"""The last step: it writes down what a failover did, and fails where the failover failed."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from airflow.providers.common.compat.sdk import AirflowFailException, BaseOperator, Context

from airflow_mm2_offsets.core.mode import FailoverMode
from airflow_mm2_offsets.core.report import FailoverReport, Step, outcome
from airflow_mm2_offsets.errors import ConfigurationError, StopError
from airflow_mm2_offsets.hooks.storage import storage_path
from airflow_mm2_offsets.logins import without_login, without_logins
from airflow_mm2_offsets.observability import emit_report
from airflow_mm2_offsets.operators.failing import fails_at_once
from airflow_mm2_offsets.operators.links import page_links
from airflow_mm2_offsets.operators.locking import is_locked, places_of
from airflow_mm2_offsets.operators.run_facts import (
    as_mapping,
    attempt,
    run_facts,
    sentences,
    steps_of,
    write_report,
)
from airflow_mm2_offsets.operators.settings import check_location, given, is_true
from airflow_mm2_offsets.spark.fence import FenceState
from airflow_mm2_offsets.spark.lock import new_lock, release_lock
from airflow_mm2_offsets.spark.lock_moved import mark_lock_moved
from airflow_mm2_offsets.spark.rollback import FailoverRun, handed_over

RESULTS = (
    *("stopped", "plan", "forecast", "approval", "started", "verified", "drill", "rollback"),
)
"""The arguments that hold what other tasks returned; the report has each under its name."""
NOT_WRITTEN = "This report was not written to a file: it is only here, in XCom."
"""The remark of a dry run."""


class ReportFailoverOperator(BaseOperator):
    """Writes one report of a failover to storage and XCom, and fails if a task of it failed.

    Give it the trigger rule ``all_done``. It reports what is there: a task that was skipped or has
    failed leaves its part empty, and a storage that does not answer is a remark. It then fails
    without a retry, with the names of the failed tasks, so that the DAG run is red. At the end of a
    run it also releases the run's lock, unless the job has stopped and is neither moved nor rolled
    back.

    Args:
        mode: The failover's.
        source_folder: The job's folder on the source.
        target_folder: Its folder on the target.
        checkpoint: The source job's checkpoint location; None: no lock is released.
        target_checkpoint: The target job's checkpoint location.
        control: The source job's control location; None where it has none.
        request_id: The stop, as ``StopSparkStreamingOperator`` has it.
        reports: The folder of reports; None: only XCom has it. The files are named after the run.
        locks: The folder of locks, where the failover has one.
        stopped: What the tasks returned; None where they did not succeed. ``approval`` is of
            ``ApproveFailoverOperator``, ``verified`` of ``ReconcileOperator``, ``rollback`` of
            ``RollbackFailoverOperator``.
        plan: The same.
        forecast: The same.
        approval: The same.
        started: The same.
        verified: The same.
        drill: The same.
        rollback: The same.
        mm2_conn_id: Id of the connection, for the metrics.
        intents: Of a dry run, what each step would have done, as sentences.
        is_dry_run: Write no file and release no lock: the report is in XCom only. May be a
            templated string.

    Returns:
        The report. The XCom ``summary`` has it in Markdown.

    Raises:
        AirflowFailException: A task of the failover failed.
    """

    operator_extra_links = page_links("report")
    template_fields: Sequence[str] = (
        *("mode", "source_folder", "target_folder", "checkpoint", "target_checkpoint", "control"),
        *("request_id", "reports", "locks", "intents", "mm2_conn_id", "is_dry_run", *RESULTS),
    )

    def __init__(
        self,
        *,
        mode: str = FailoverMode.PLANNED.value,
        source_folder: str | None = None,
        target_folder: str | None = None,
        checkpoint: str | None = None,
        target_checkpoint: str | None = None,
        control: str | None = None,
        request_id: str = "{{ dag.dag_id }}:{{ run_id }}",
        reports: str | None = None,
        locks: str | None = None,
        stopped: Mapping[str, Any] | None = None,
        plan: Mapping[str, Any] | None = None,
        forecast: Mapping[str, Any] | None = None,
        approval: Mapping[str, Any] | None = None,
        started: Mapping[str, Any] | None = None,
        verified: Mapping[str, Any] | None = None,
        drill: Mapping[str, Any] | None = None,
        rollback: Mapping[str, Any] | None = None,
        intents: Sequence[Any] | None = None,
        mm2_conn_id: str | None = None,
        is_dry_run: bool | str = False,
        **kwargs: Any,
    ) -> None:
        """Keep the settings."""
        super().__init__(**{"trigger_rule": "all_done", **kwargs})
        self.mode = mode
        self.source_folder = source_folder
        self.target_folder = target_folder
        self.checkpoint = checkpoint
        self.target_checkpoint = target_checkpoint
        self.control = control
        self.request_id = request_id
        self.reports = reports
        self.locks = locks
        self.stopped = stopped
        self.plan = plan
        self.forecast = forecast
        self.approval = approval
        self.started = started
        self.verified = verified
        self.drill = drill
        self.rollback = rollback
        self.intents = intents
        self.mm2_conn_id = mm2_conn_id
        self.is_dry_run = is_dry_run

    @fails_at_once()
    def execute(self, context: Context) -> dict[str, Any]:
        """Collect, write and release; then fail where the failover failed."""
        remarks: list[str] = []
        report = self._report(context, remarks)
        remarks += self._release_lock(report)
        document: dict[str, Any] = without_logins(report.to_json() | {"remarks": remarks})
        summary = without_login(report.to_markdown())
        document["files"] = self._write(context, document, summary, remarks)
        document["remarks"] = without_logins(remarks)
        self.log.info("%s", summary)
        emit_report(document | {"mm2_conn_id": self.mm2_conn_id})
        context["ti"].xcom_push(key="summary", value=summary)
        if report.failed:
            # What a failed task returns is lost.
            context["ti"].xcom_push(key="return_value", value=document)
            raise AirflowFailException(
                f"the failover failed in {', '.join(report.failed)} ({report.outcome.value}): "
                f"{' '.join(document['next'])} See the report in this task's XCom summary"
            )
        return document

    def parse_settings(self) -> None:
        """Raise ConfigurationError where a folder can't be opened from here.

        The report itself is made in any case.
        """
        check_location(self, "reports")
        check_location(self, "locks")

    def _report(self, context: Context, remarks: list[str]) -> FailoverReport:
        none: tuple[Step, ...] = ()
        steps = attempt(lambda: steps_of(context), none, "the states of the tasks", remarks)
        is_handed_over = attempt(
            self._is_handed_over, otherwise=None, what="the fence or claim", remarks=remarks
        )
        is_fenced = attempt(self._is_fenced, otherwise=False, what="the fence", remarks=remarks)
        remarks += [NOT_WRITTEN] if self._is_dry_run() else []
        mode, intents = str(self.mode), tuple(sentences(self.intents))
        return FailoverReport(
            mode=mode,
            outcome=outcome(
                mode,
                steps,
                is_handed_over=is_handed_over,
                is_fenced=is_fenced,
                is_dry_run=self._is_dry_run() or bool(intents),
                rollback=as_mapping(self.rollback),
            ),
            run=attempt(lambda: run_facts(context), {}, "the DAG run", remarks),
            folders={"source": given(self.source_folder), "target": given(self.target_folder)},
            steps=steps,
            results={name: as_mapping(getattr(self, name)) for name in RESULTS},
            intents=intents,
            remarks=tuple(remarks),
        )

    def _is_dry_run(self) -> bool:
        with suppress(ConfigurationError):  # the first task refuses it, and a report is made
            return is_true(self, "is_dry_run")
        return False

    def _is_handed_over(self) -> bool | None:
        if (run := self._failover()) is None:
            return False
        try:
            return handed_over(run) is not None
        except StopError:  # the storage of the source may be what is lost
            return handed_over(replace(run, control=None)) is not None

    def _is_fenced(self) -> bool:
        run = self._failover()
        return run is not None and run.fence() is not None

    def _is_fenced_as_moved(self) -> bool:
        """Tell whether a fence keeps the job from being moved again; its storage may be lost."""
        run = self._failover()
        try:
            fence = run.fence() if run is not None else None
        except StopError:
            return False
        return fence is not None and fence.state is FenceState.MOVED

    def _failover(self) -> FailoverRun | None:
        """Return the run that may have stopped and moved the job; None for a drill."""
        target, control = given(self.target_checkpoint), given(self.control)
        if target is None or str(self.mode) == FailoverMode.DRILL:
            return None
        return FailoverRun(
            request_id=self.request_id,
            control=storage_path(control) if control else None,
            target_checkpoint=storage_path(target),
        )

    def _release_lock(self, report: FailoverReport) -> list[str]:
        """Release the run's lock, and return why it stays, as sentences."""
        if (checkpoint := given(self.checkpoint)) is None or self._is_dry_run():
            return []
        if report.outcome == "failed_before_handover":
            return ["The run keeps its lock on the job, because its job has stopped."]
        remarks: list[str] = []

        def release() -> None:
            target = self.target_checkpoint
            places = places_of(checkpoint=checkpoint, target_checkpoint=target, locks=self.locks)
            is_moved = report.outcome in {"moved", "failed_after_handover"}
            if is_moved and is_locked(self.control, self.locks) and not self._is_fenced_as_moved():
                lock = new_lock(self.request_id, str(self.mode))
                moved_to = given(self.target_folder) or str(target)
                remarks.extend(mark_lock_moved(places, lock, moved_to, source_may_be_gone=True))
            else:
                release_lock(places, self.request_id, source_may_be_gone=True)

        attempt(release, None, "the lock", remarks)
        return remarks

    def _write(
        self, context: Context, document: Mapping[str, Any], summary: str, remarks: list[str]
    ) -> list[str]:
        """Write both files, and return where they are."""
        if (folder := given(self.reports)) is None or self._is_dry_run():
            return []

        def write() -> list[str]:
            return write_report(folder, context, document, summary, distinct=self.request_id)

        none: list[str] = []
        return attempt(write, none, f"the report is only in XCom: {folder}", remarks)
