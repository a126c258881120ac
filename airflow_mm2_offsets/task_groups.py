"""The tasks of a failover as one group: for users' own DAGs and the example ``mm2_failover``."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

from airflow.providers.common.compat.sdk import (
    AirflowSkipException,
    BaseOperator,
    Context,
    TaskGroup,
    XComArg,
    chain,
    task,
)

from airflow_mm2_offsets.errors import ConfigurationError
from airflow_mm2_offsets.hooks.mm2 import Mm2OffsetHook
from airflow_mm2_offsets.operators.check import CheckFailoverOperator
from airflow_mm2_offsets.operators.checkpoint import ReadSparkCheckpointOperator
from airflow_mm2_offsets.operators.failing import fails_at_once
from airflow_mm2_offsets.operators.handover import TriggerTargetDagOperator
from airflow_mm2_offsets.operators.polling import DeferrablePolling
from airflow_mm2_offsets.operators.reconcile import ReconcileOperator
from airflow_mm2_offsets.operators.stop import StopSparkStreamingOperator
from airflow_mm2_offsets.operators.translate import TranslateOffsetsOperator
from airflow_mm2_offsets.sensors.checkpoint import SparkStartedSensor
from airflow_mm2_offsets.sensors.replication import Mm2ReplicatedSensor

OPERATORS = (
    *("check", "stop_source", "read_positions", "wait_replicated", "translate"),
    *("submit_target", "wait_started", "verify"),
)
"""The tasks that take arguments, without the group's prefix."""
RETRIES: Mapping[str, Any] = {"retries": 2, "retry_delay": timedelta(seconds=30)}
"""For a lost worker, or a cluster that does not answer for a moment."""

OperatorT = TypeVar("OperatorT", bound=BaseOperator)


def failover_tasks(
    *,
    source_folder: str,
    target_folder: str,
    stream_dag_id: str,
    mm2_conn_id: str = Mm2OffsetHook.default_conn_name,
    target_kafka_conn_id: str = "kafka_target",
    changed_records: bool | str = False,
    verify: bool | str = False,
    deferrable: bool | None = True,
    arguments: Mapping[str, Mapping[str, Any]] | None = None,
    group_id: str = "failover",
    prefix_group_id: bool = True,
    default_args: Mapping[str, Any] | None = None,
) -> TaskGroup:
    """Add the tasks that move one Spark job to the target cluster, and return their group.

    Call it inside a DAG. It checks all that can be known before the stop, stops the job, reads its
    positions, waits for MirrorMaker 2, translates, triggers the job's DAG for the target, waits for
    the first batch there, and reports. Texts may be templates.

    Args:
        source_folder: The job's folder: it holds ``checkpoint`` and ``control``.
        target_folder: The job's folder on the target; the plan is kept there, too.
        stream_dag_id: The DAG that runs the job. It is triggered with the conf ``kafka_conn_id``,
            ``topic`` (several: separated by commas), ``folder`` and ``starting_offsets``.
        mm2_conn_id: Id of a connection of type ``mm2``.
        target_kafka_conn_id: Id of the target's Kafka connection, for that conf.
        changed_records: See ``TranslateOffsetsOperator``.
        verify: Compare both clusters and the outputs at the end. False adds no such task; a
            template that renders as ``False`` skips it.
        deferrable: Wait in the triggerer: no wait holds a worker's slot. False: in the worker, as
            without a triggerer; None: as ``[operators] default_deferrable`` says.
        arguments: Further arguments of the operators, by task id without prefix, such as
            ``{"stop_source": {"kill_after": 600}, "wait_started": {"timeout": 3600}}``.
            They count before those of this function.
        group_id: The group's id. Each group of a DAG moves another job.
        prefix_group_id: Begin the task ids with the group's, as Airflow does.
        default_args: Of the group's tasks; two retries by default.

    Raises:
        ConfigurationError: ``arguments`` names a task that the group does not have.
    """
    tasks_arguments = arguments or {}
    if unknown := ", ".join(sorted(set(tasks_arguments) - set(OPERATORS))):
        raise ConfigurationError(f"arguments names {unknown}; name one of {', '.join(OPERATORS)}")
    defaults: Any = {**RETRIES, **(default_args or {})}  # Airflow's annotation takes no dict
    with TaskGroup(group_id, prefix_group_id=prefix_group_id, default_args=defaults) as group:
        # Part of the stop's name, so that no group takes the fence of another for its own.
        names = ["{{ dag.dag_id }}", "{{ run_id }}", *([group.group_id] if prefix_group_id else [])]
        _FailoverTasks(
            shared={
                "checkpoint": f"{source_folder}/checkpoint",
                "control": f"{source_folder}/control",
                "request_id": ":".join(map(str, names)),
                "target_checkpoint": f"{target_folder}/checkpoint",
                "plan_path": f"{target_folder}/plans/{{{{ run_id }}}}.json",
                "moved_to": target_folder,
                "mm2_conn_id": mm2_conn_id,
                "changed_records": changed_records,
                "trigger_dag_id": stream_dag_id,
                "trigger_run_id": "__".join(map(str, names)),
            },
            source_folder=source_folder,
            target_folder=target_folder,
            target_kafka_conn_id=target_kafka_conn_id,
            verify=verify,
            deferrable=deferrable,
            arguments=tasks_arguments,
        ).add()
    return group


@dataclass(frozen=True, slots=True, kw_only=True)
class _FailoverTasks:
    """Adds the tasks of one group."""

    shared: Mapping[str, Any]
    """Arguments of several operators: each operator takes those that it has a template field of."""
    source_folder: str
    target_folder: str
    target_kafka_conn_id: str
    verify: bool | str
    deferrable: bool | None
    arguments: Mapping[str, Mapping[str, Any]]

    def add(self) -> None:
        check = self._add(
            CheckFailoverOperator, "check", target_control=f"{self.target_folder}/control"
        )
        stop = self._add(StopSparkStreamingOperator, "stop_source")
        read = self._add(ReadSparkCheckpointOperator, "read_positions")
        positions = {name: XComArg(read, name) for name in ("positions", "clusters")}
        wait = self._add(Mm2ReplicatedSensor, "wait_replicated", **positions)
        translate = self._add(
            TranslateOffsetsOperator, "translate", pending=XComArg(read, "pending"), **positions
        )
        started = self._add(
            SparkStartedSensor,
            "wait_started",
            checkpoint=self.shared["target_checkpoint"],
            starting_offsets=XComArg(translate, "starting_offsets"),
            trigger_rule="none_failed",
        )
        reported = report(XComArg(translate, "summary"), *map(XComArg, (stop, translate, started)))
        submit = self._add_submit(read, translate)
        chain(check, stop, read, wait, translate, submit, started, reported)
        if self.verify is not False:
            # verify reads wait_started's positions: cleared with it alone, it must still wait.
            chain([reported, started], self._add_verify(translate, started))

    def _add(self, operator: type[OperatorT], task_id: str, **settings: Any) -> OperatorT:
        fields = operator.template_fields
        shared = {name: value for name, value in self.shared.items() if name in fields}
        if issubclass(operator, DeferrablePolling):
            shared["deferrable"] = self.deferrable
        arguments = {**shared, **settings, **self.arguments.get(task_id, {})}
        return operator(task_id=task_id, **arguments)

    def _add_submit(self, read: BaseOperator, translate: BaseOperator) -> TriggerTargetDagOperator:
        return self._add(
            TriggerTargetDagOperator,
            "submit_target",
            read=XComArg(read),
            conf={
                "kafka_conn_id": self.target_kafka_conn_id,
                "topic": _pull(translate, "target_topics"),
                "folder": self.target_folder,
                "starting_offsets": _pull(translate, "starting_offsets"),
            },
            # A cleared task finds the run that it triggered. It is skipped, and the next goes on.
            skip_when_already_exists=True,
        )

    def _add_verify(self, translate: BaseOperator, started: BaseOperator) -> ReconcileOperator:
        # ``started`` waits until the target's job has committed a batch, and returns its positions.
        return self._add(
            ReconcileOperator,
            "verify",
            pre_execute=_skip_unless(str(self.verify)),
            plan=XComArg(translate),
            committed=f"{{{{ ti.xcom_pull(task_ids='{started.task_id}')['positions'] }}}}",
            sinks=[
                {"cluster": "source", "path": f"{self.source_folder}/output"},
                {"cluster": "target", "path": f"{self.target_folder}/output"},
            ],
            report=f"{self.target_folder}/verified",
            # A lost worker leaves its Spark driver behind, which may still write the report.
            retries=0,
        )


def _pull(task: BaseOperator, key: str) -> str:
    # An XComArg that is absent would fail before the operator can say what to do.
    return f"{{{{ ti.xcom_pull(task_ids='{task.task_id}', key='{key}') }}}}"


@task
def report(summary: object, stopped: object, plan: object, started: object) -> dict[str, object]:
    """Put what an auditor asks into one place."""
    print(summary)  # noqa: T201 - the task's log is where the person on call looks
    return {"stopped": stopped, "plan": plan, "started": started}


def _skip_unless(verify: str) -> Callable[[Context], None]:
    @fails_at_once()
    def skip(context: Context) -> None:
        answer = str(context["task"].render_template(verify, context))
        if answer == "False":
            raise AirflowSkipException("verify is False")
        if answer != "True":
            raise ConfigurationError(f"verify is {answer!r}; give True or False")

    return skip
