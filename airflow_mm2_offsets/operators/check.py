"""The first task of a failover, and a scheduled check: can a failover begin?"""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from airflow.providers.common.compat.sdk import BaseOperator, Context

from airflow_mm2_offsets.core import Positions
from airflow_mm2_offsets.core.mode import FailoverMode
from airflow_mm2_offsets.core.readiness import CheckStatus, ReadinessCheck, ReadinessReport
from airflow_mm2_offsets.core.readiness_names import CheckName
from airflow_mm2_offsets.core.summary import fold
from airflow_mm2_offsets.errors import ConfigurationError, NotReadyError
from airflow_mm2_offsets.hooks.mm2 import Mm2OffsetHook
from airflow_mm2_offsets.hooks.storage import storage_path
from airflow_mm2_offsets.observability import emit_readiness
from airflow_mm2_offsets.operators.checkpoint import parse_positions
from airflow_mm2_offsets.operators.drill import find_folder_problems
from airflow_mm2_offsets.operators.failing import fails_at_once
from airflow_mm2_offsets.operators.links import page_links
from airflow_mm2_offsets.operators.long_result_options import LongResultOptions
from airflow_mm2_offsets.operators.pairs import pair_of
from airflow_mm2_offsets.operators.plan_settings import parse_trial_settings, with_first_plan
from airflow_mm2_offsets.operators.run_conf import check_run_conf
from airflow_mm2_offsets.operators.settings import given, is_true, parse_mode, parse_truth
from airflow_mm2_offsets.operators.target_dag import find_dag_problems, tells_of_dags
from airflow_mm2_offsets.readiness import ReadinessRequest, check_readiness
from airflow_mm2_offsets.readiness.answers import failed, of_sentences
from airflow_mm2_offsets.readiness.request import MoreChecks
from airflow_mm2_offsets.readiness.thresholds import DEFAULT_THRESHOLDS, THRESHOLDS, Thresholds
from airflow_mm2_offsets.spark.drill_checks import open_drill_folders

_FAILURES = {
    False: "the failover can't begin, and nothing was stopped; {} to mend:",
    True: "the failover can't go on; {} to mend:",
}
"""The line above the problems, by whether the failover is under way."""
_NOTED = frozenset({FailoverMode.PLANNED, FailoverMode.FAILBACK})
"""The modes whose later steps compare the noted ids."""


class CheckFailoverOperator(BaseOperator):
    """Reports whether a failover can begin, while the source job still runs.

    It asks both clusters, Kafka Connect, the archive and the job's folders, all that the mode
    needs, and returns every finding as a named check; docs/readiness.md lists them. On a schedule
    it tells what is wrong before the night on which it is needed.

    It changes nothing but a note beside the checkpoint, ``<checkpoint>.clusters.json``: the ids of
    clusters and topics, which every later step compares. ``note_ids=False`` leaves that out.

    Once the run's fence stands the failover is under way: then only what is still to come is
    looked at, the DAG and the kept plan.

    Args:
        mm2_conn_id: Id of a connection of type ``mm2``.
        mode: ``planned``, ``disaster``, ``drill`` or ``failback``. In a disaster, what is lost
            with the source is unknown or a warning, and never a failure.
        checkpoint: The source job's checkpoint location.
        control: Its control location; None where it has none.
        target_checkpoint: Where the target job is to keep its checkpoint. None on a schedule,
            where it is not known yet.
        target_control: The target job's control location: a fence there would end it at once.
        spark_control: The control location as Spark names it. Give it only where Airflow reaches
            the same folder by another name, such as a mount, and the job can't answer any more.
        spark_checkpoint: The same of the checkpoint location.
        from_folder: In a failback: the folder that the job comes from.
        exchanged: See ``TranslateOffsetsOperator``. May be a templated string.
        is_dry_run: Write no note. May be a templated string.
        source_is_gone: In a disaster: see ``StopSparkStreamingOperator``.
        saved_positions: In a disaster: see ``ReadSparkCheckpointOperator``, as for ``positions``.
        positions: See there.
        subscribe_pattern: The ``subscribePattern`` of the job on the target. By default that of the
            job in ``control``; empty text: it subscribes by name.
        plan_path: The file that ``TranslateOffsetsOperator`` keeps the plan in. Of a job without
            control location, a plan there means that this failover is under way.
        archive: The archive that ``ArchiveSyncsOperator`` keeps.
        sink: Where the target job is to write files or a Delta table, if it does.
        txn_app_id: What the target job gives its sink as ``txnAppId``, if it does.
        changed_records: See ``TranslateOffsetsOperator``. May be a templated string.
        plan_options: How the positions are to be translated: a mapping, or JSON text, of the
            arguments of ``TranslateOffsetsOperator`` that decide it (``PLAN_SETTINGS``), such as
            ``{"sole_writer": True}``. None: by their defaults. In ``failover_tasks`` those of the
            task ``translate``.
        trigger_dag_id: The DAG that is to run the job on the target.
        drill: In a drill: the arguments of ``StartDrillOperator`` that name folders, ``folder``,
            ``job_folders``, ``other_folders``, ``sinks`` and ``honours_drill``.
        request_id: The stop, as ``StopSparkStreamingOperator`` has it.
        note_ids: Write the note of ids, in the modes planned and failback. False on a schedule.
        probe_folder: A folder where a file may be written and removed: only that shows whether an
            object store lets us write.
        timeout: Seconds until a broker or a Connect worker must have answered; 30 by default.
        max_lag_records: See ``readiness.Thresholds``, as for all that follow.
        max_lag_seconds: Age of the newest heartbeat.
        max_sync_age: Age of the newest offset sync while records wait for one.
        max_archive_age: Seconds since the archive's last run.
        min_retention_left: Seconds until the target deletes the record at a start.
        max_offset_lag: The connector's ``offset.lag.max``.
        max_clock_drift: Seconds that a time may lie in the future.

    Returns:
        The report (``core.readiness``). Beside it the XComs ``summary`` (one paragraph) and
        ``table`` (a list of lines).

    Raises:
        ConfigurationError: The conf of the run has a key that no param of the DAG has.
        NotReadyError: Checks have failed; each is named. The report is pushed.
    """

    operator_extra_links = page_links("readiness")
    template_fields: Sequence[str] = (
        *("mm2_conn_id", "mode", "checkpoint", "control", "target_checkpoint", "target_control"),
        *("spark_control", "spark_checkpoint", "subscribe_pattern", "plan_path", "archive"),
        *("sink", "txn_app_id", "changed_records", "trigger_dag_id", "request_id", "note_ids"),
        *("probe_folder", "from_folder", "exchanged", "is_dry_run", "drill", *THRESHOLDS),
        *("source_is_gone", "saved_positions", "positions", "plan_options"),
    )

    def __init__(
        self,
        *,
        checkpoint: str,
        target_checkpoint: str | None = None,
        mode: str = FailoverMode.PLANNED.value,
        control: str | None = None,
        target_control: str | None = None,
        from_folder: str | None = None,
        exchanged: bool | str = False,
        is_dry_run: bool | str = False,
        source_is_gone: bool | str = False,
        saved_positions: str | None = None,
        positions: Mapping[str, Any] | str | None = None,
        spark_control: str | None = None,
        spark_checkpoint: str | None = None,
        subscribe_pattern: str | None = None,
        plan_path: str | None = None,
        archive: str | None = None,
        sink: str | None = None,
        txn_app_id: str | None = None,
        changed_records: bool | str = False,
        plan_options: Mapping[str, Any] | str | None = None,
        trigger_dag_id: str | None = None,
        drill: Mapping[str, Any] | None = None,
        request_id: str = "{{ dag.dag_id }}:{{ run_id }}",
        note_ids: bool | str = True,
        probe_folder: str | None = None,
        timeout: float | None = None,
        max_lag_records: float | str = DEFAULT_THRESHOLDS.max_lag_records,
        max_lag_seconds: float | str = DEFAULT_THRESHOLDS.max_lag_seconds,
        max_sync_age: float | str = DEFAULT_THRESHOLDS.max_sync_age,
        max_archive_age: float | str = DEFAULT_THRESHOLDS.max_archive_age,
        min_retention_left: float | str = DEFAULT_THRESHOLDS.min_retention_left,
        max_offset_lag: float | str = DEFAULT_THRESHOLDS.max_offset_lag,
        max_clock_drift: float | str = DEFAULT_THRESHOLDS.max_clock_drift,
        mm2_conn_id: str = Mm2OffsetHook.default_conn_name,
        **kwargs: Any,
    ) -> None:
        """Keep the settings."""
        super().__init__(**kwargs)
        self.mm2_conn_id = mm2_conn_id
        self.mode = mode
        self.checkpoint = checkpoint
        self.control = control
        self.target_checkpoint = target_checkpoint
        self.target_control = target_control
        self.from_folder = from_folder
        self.exchanged = exchanged
        self.is_dry_run = is_dry_run
        self.source_is_gone = source_is_gone
        self.saved_positions = saved_positions
        self.positions = positions
        self.spark_control = spark_control
        self.spark_checkpoint = spark_checkpoint
        self.subscribe_pattern = subscribe_pattern
        self.plan_path = plan_path
        self.archive = archive
        self.sink = sink
        self.txn_app_id = txn_app_id
        self.changed_records = changed_records
        self.plan_options = plan_options
        self.trigger_dag_id = trigger_dag_id
        self.drill = drill
        self.request_id = request_id
        self.note_ids = note_ids
        self.probe_folder = probe_folder
        self.timeout = timeout
        self.max_lag_records = max_lag_records
        self.max_lag_seconds = max_lag_seconds
        self.max_sync_age = max_sync_age
        self.max_archive_age = max_archive_age
        self.min_retention_left = min_retention_left
        self.max_offset_lag = max_offset_lag
        self.max_clock_drift = max_clock_drift

    @fails_at_once()
    def execute(self, context: Context) -> dict[str, Any]:
        """Make the report; raise if a check has failed."""
        check_run_conf(context)
        report = check_readiness(self._request(context))
        push = context["ti"].xcom_push
        summary = report.summary()
        push(key="summary", value=fold(summary))
        # Airflow's page shows a text as one paragraph, and a list line by line.
        push(key="table", value=summary.splitlines())
        emit_readiness(report.to_json())
        self.log.info("%s", summary)
        if report.failed:
            # A task that fails returns nothing, and its user needs the report all the more.
            push(key="return_value", value=report.to_json())
            raise NotReadyError(_listed(report))
        return report.to_json()

    def parse_settings(self) -> tuple[Thresholds, Positions | None]:
        """Return thresholds and given positions, and check the other settings.

        The options of long results, too: the tasks that use them come after the stop.

        Raises:
            Mm2OffsetsError: A setting is invalid.
        """
        LongResultOptions.parse()
        is_number = isinstance(self.timeout, (int, float))
        if self.timeout is not None and not (is_number and 0 < self.timeout < float("inf")):
            raise ConfigurationError(
                f"task {self.task_id}: timeout is {self.timeout!r}; give seconds, or None"
            )
        return Thresholds.parse(vars(self)), parse_positions(self, "positions")

    def _request(self, context: Context) -> ReadinessRequest:
        mode = parse_mode(self.task_id, self.mode)
        thresholds, positions = self.parse_settings()
        trial = parse_trial_settings(
            self, self.plan_options, changed_records=is_true(self, "changed_records")
        )
        options, unread = with_first_plan(self, trial, given(self.target_control))
        return ReadinessRequest(
            find_pair=partial(pair_of, self, timeout=self.timeout),
            open=storage_path,
            mode=mode,
            thresholds=thresholds,
            note_ids=mode in _NOTED
            and is_true(self, "note_ids")
            and not is_true(self, "is_dry_run"),
            plan_options=options,
            skip_damaged=trial.skip_damaged,
            source_is_gone=is_true(self, "source_is_gone"),
            saved_positions=given(self.saved_positions),
            positions=positions,
            more={**self._more_checks(context), **_of_first_plan(unread)},
            request_id=self.request_id,
            checkpoint=given(self.checkpoint),
            control=given(self.control),
            target_checkpoint=given(self.target_checkpoint),
            target_control=given(self.target_control),
            from_folder=given(self.from_folder),
            spark_control=given(self.spark_control),
            spark_checkpoint=given(self.spark_checkpoint),
            plan_path=given(self.plan_path),
            archive=given(self.archive),
            sink=given(self.sink),
            txn_app_id=given(self.txn_app_id),
            probe_folder=given(self.probe_folder),
            argument_max_bytes=LongResultOptions.parse().argument_max_bytes,
            # Empty text has a meaning of its own here.
            subscribe_pattern=None if self.subscribe_pattern == "None" else self.subscribe_pattern,
        )

    def _more_checks(self, context: Context) -> Mapping[CheckName, MoreChecks]:
        """Return the checks that need Airflow; a subclass may add to them."""
        checks: dict[CheckName, MoreChecks] = {}
        if self.trigger_dag_id:
            dag_id = str(self.trigger_dag_id)
            checks[CheckName.TARGET_DAG] = lambda: _check_dag(context, dag_id)
        if self.mode == FailoverMode.DRILL and self.drill and given(self.drill["folder"]):
            checks[CheckName.DRILL_FOLDERS] = self._check_drill
        return checks

    def _check_drill(self) -> Iterable[ReadinessCheck]:
        drill = {"other_folders": {}, "sinks": (), "honours_drill": False, **(self.drill or {})}
        drill["honours_drill"] = parse_truth(self.task_id, "honours_drill", drill["honours_drill"])
        folders = open_drill_folders(storage_path, control=given(self.control), **drill)
        problems = find_folder_problems(folders, self.request_id)
        return of_sentences(CheckName.DRILL_FOLDERS, problems, otherwise=f"{folders.drill} is free")


def _of_first_plan(unread: str | None) -> Mapping[CheckName, MoreChecks]:
    """Return the check that fails where the translation would, for want of the first plan."""
    if unread is None:
        return {}
    return {CheckName.TRANSLATION: lambda: [failed(CheckName.TRANSLATION, unread)]}


def _check_dag(context: Context, dag_id: str) -> Iterable[ReadinessCheck]:
    problems = find_dag_problems(context, dag_id)
    status, value = CheckStatus.OK, f"DAG {dag_id} exists and is not paused"
    if not tells_of_dags(context):
        status, value = CheckStatus.UNKNOWN, f"Airflow before 3.2 does not tell of DAG {dag_id}"
    if not problems:
        yield ReadinessCheck(name=CheckName.TARGET_DAG, status=status, value=value)
    for problem in problems:
        yield ReadinessCheck(name=CheckName.TARGET_DAG, status=CheckStatus.FAILED, value=problem)


def _listed(report: ReadinessReport) -> str:
    problems = "\n".join(f"  - {problem}" for problem in report.problems)
    return f"{_FAILURES[report.is_under_way].format(len(report.problems))}\n{problems}"
