"""The tasks of a failover as one group: for users' own DAGs and the example ``mm2_failover``.

``task_groups.fleet`` expands the group over many jobs.
"""

from collections.abc import Callable, Collection, Mapping
from datetime import timedelta
from typing import Any

from airflow.providers.common.compat.sdk import Context, TaskGroup

from airflow_mm2_offsets.core.mode import FailoverMode
from airflow_mm2_offsets.errors import ConfigurationError
from airflow_mm2_offsets.hooks.mm2 import Mm2OffsetHook
from airflow_mm2_offsets.task_groups.failover import FailoverTasks
from airflow_mm2_offsets.task_groups.gated_tasks import GatedTasks, find_modes
from airflow_mm2_offsets.task_groups.job_steps import JobSteps, MovedJob
from airflow_mm2_offsets.task_groups.platforms import OperatorFactory, from_hand_over
from airflow_mm2_offsets.task_groups.steps import OF_STOP, OF_SUBMIT, OPERATORS

__all__ = ["OperatorFactory", "failover_tasks", "from_hand_over"]

RETRIES: Mapping[str, Any] = {"retries": 2, "retry_delay": timedelta(seconds=30)}
"""For a lost worker, or a cluster that does not answer for a moment."""


def failover_tasks(
    *,
    source_folder: str,
    target_folder: str,
    stream_dag_id: str | None = None,
    stop: OperatorFactory | None = None,
    submit: OperatorFactory | None = None,
    submit_is_idempotent: bool = False,
    mode: str = FailoverMode.PLANNED.value,
    mm2_conn_id: str = Mm2OffsetHook.default_conn_name,
    source_kafka_conn_id: str = "kafka_source",
    target_kafka_conn_id: str = "kafka_target",
    archive: str | None = None,
    source_is_gone: bool | str = False,
    exchanged: bool | str = False,
    changed_records: bool | str = False,
    verify: bool | str = False,
    dry_run: bool | str = False,
    reports_folder: str | None = None,
    source_output: str | None = None,
    target_output: str | None = None,
    job_name: str | None = None,
    left_out: str = "",
    held: str = "",
    guard: Callable[[Context], None] | None = None,
    modes: Collection[str] = tuple(FailoverMode),
    deferrable: bool | None = True,
    arguments: Mapping[str, Mapping[str, Any]] | None = None,
    group_id: str = "failover",
    prefix_group_id: bool = True,
    default_args: Mapping[str, Any] | None = None,
) -> TaskGroup:
    """Add the tasks that move one Spark job to the target cluster, and return their group.

    Call it inside a DAG. It checks all that can be known before the stop, stops the job, reads its
    positions, waits for MirrorMaker 2, translates, tells what may be lost and read again, asks for
    approval above thresholds, triggers the job's DAG for the target, waits for the first batch
    there, and reports. A failover that fails before the job is handed over is rolled back. Texts
    may be templates.

    Args:
        source_folder: The job's folder: it holds ``checkpoint`` and ``control``.
        target_folder: The job's folder on the target; the plan is kept there, too. In a drill the
            throw-away folder.
        stream_dag_id: The DAG that runs the job. It is triggered with the conf ``kafka_conn_id``,
            ``topic`` (several: separated by commas), ``folder`` and ``starting_offsets`` (Spark's
            JSON text, or ``@`` and the location of a file with it: docs/xcom.md), and with
            ``output`` where the output is elsewhere. Give it or ``submit``.
        stop: Makes the operator that cancels the job on its platform, for a job without a control
            location: an operator's class, or ``functools.partial`` of it. The group calls it with
            ``task_id`` (``cancel_source``), ``trigger_rule`` and hooks. ``stop_source`` then waits
            until the checkpoint stands still: see ``SparkStoppedSensor``, to which ``arguments``
            gives a ``quiet_period`` (60 s by default).
        submit: Makes, in the same way, the operator that submits the job to its platform, the task
            ``submit_target``; ``hand_over`` runs before it. Its templates take what they need by
            ``from_hand_over``. It must return when the job is submitted, and not wait for its end.
        submit_is_idempotent: Your word that the platform starts one job, however often ``submit``
            runs in this run of the DAG, because ``submit`` gives the platform a token or a name.
            Else a second try submits nothing while the first one's job has begun no checkpoint.
        mode: ``planned``, ``disaster``, ``drill`` or ``failback``. A template adds the tasks of all
            modes; each run skips those of the others.
        mm2_conn_id: Id of a connection of type ``mm2``.
        source_kafka_conn_id: Id of the Kafka connection of the cluster that the job leaves, to
            start the job there again.
        target_kafka_conn_id: Id of the Kafka connection of the cluster that the job moves to, for
            that conf.
        archive: See ``TranslateOffsetsOperator``. A disaster needs it where the syncs topic lies on
            the source.
        source_is_gone: See ``StopSparkStreamingOperator``.
        exchanged: See ``TranslateOffsetsOperator``.
        changed_records: See ``TranslateOffsetsOperator``.
        verify: Compare both clusters and the outputs at the end. False adds no such task; a
            template that renders as ``False`` skips it. A drill always compares.
        dry_run: Say what each step would do, and change nothing.
        reports_folder: Where the reports of all runs are kept; by default the folder beside
            ``target_folder`` with ``-reports`` at its end.
        source_output: Where the job writes on the source; by default ``output`` in
            ``source_folder``. It is compared, and the job gets it if it is started there again.
        target_output: Where the job is to write on the target; by default ``output`` in
            ``target_folder``. Leave it out of a drill, whose job writes in the drill's folder.
        job_name: What tells the job from the others of the run. A group that is expanded over
            several jobs (a mapped task group) needs it: a template then. It ends the ids of the
            stop and of the run that is triggered.
        left_out: A template that renders as the reason why no task of the group is to run, or as
            empty text.
        held: The same of why no step may run yet: they fail. ``roll_back`` and ``report`` run.
        guard: Is called before each of these steps, and raises where it may not run now.
        modes: Those that ``mode`` may render as, where it is a template: only their tasks are
            added.
        deferrable: Wait in the triggerer: no wait holds a worker's slot. False: in the worker, as
            without a triggerer; None: as ``[operators] default_deferrable`` says.
        arguments: Further arguments of the operators, by task id without prefix, such as
            ``{"stop_source": {"kill_after": 600}, "wait_started": {"timeout": 3600}}``.
            They count before those of this function.
        group_id: The group's id. Each group of a DAG moves another job.
        prefix_group_id: Begin the task ids with the group's, as Airflow does.
        default_args: Of the group's tasks; two retries by default.

    Raises:
        ConfigurationError: ``arguments`` names a task that the group does not have; not exactly one
            of ``stream_dag_id`` and ``submit`` is given; ``stop`` or ``submit`` makes no usable
            operator, or is given in a drill; or the group is expanded over several jobs, and
            ``job_name`` does not tell them apart.
    """
    tasks_arguments = arguments or {}
    known = (*OPERATORS, *([OF_STOP] if stop else []), *([OF_SUBMIT] if submit else []))
    if unknown := ", ".join(sorted(set(tasks_arguments) - set(known))):
        raise ConfigurationError(f"arguments names {unknown}; name one of {', '.join(known)}")
    _check_start(mode, stream_dag_id, stop, submit)
    defaults: Any = {**RETRIES, **(default_args or {})}  # Airflow's annotation takes no dict
    with TaskGroup(group_id, prefix_group_id=prefix_group_id, default_args=defaults) as group:
        if submit and getattr(group.dag, "render_template_as_native_obj", False):
            raise ConfigurationError(
                "the DAG has render_template_as_native_obj: the offsets that submit pulls would be "
                "a dict, and no text that Spark takes; leave it out of this DAG"
            )
        # Part of the stop's name, so that no group takes the fence of another for its own.
        names = ["{{ dag.dag_id }}", "{{ run_id }}", *([group.group_id] if prefix_group_id else [])]
        names += [job_name] if job_name else []
        is_mapped = next(iter(group.iter_mapped_task_groups()), None) is not None
        if is_mapped and not job_name:
            raise ConfigurationError(
                f"task group {group.group_id} is expanded over several jobs, and one run id would "
                f"be that of all: give job_name, a template of what tells them apart"
            )
        tasks = GatedTasks(
            mode=mode,
            modes=find_modes(
                mode,
                frozenset(map(FailoverMode, modes)),
                has_own_operators=stop is not None or submit is not None,
            ),
            dry_run=dry_run,
            shared={
                "mode": mode,
                "is_dry_run": dry_run,
                "checkpoint": f"{source_folder}/checkpoint",
                # A job that its platform cancels answers nothing.
                "control": None if stop else f"{source_folder}/control",
                "request_id": ":".join(map(str, names)),
                "target_checkpoint": f"{target_folder}/checkpoint",
                "plan_path": f"{target_folder}/plans/{{{{ run_id }}}}.json",
                "forecast_path": f"{target_folder}/plans/{{{{ run_id }}}}.forecast.json",
                "moved_to": target_folder,
                "reports": reports_folder or f"{target_folder}-reports",
                "mm2_conn_id": mm2_conn_id,
                "archive": archive,
                "source_is_gone": source_is_gone,
                "exchanged": exchanged,
                "changed_records": changed_records,
                "trigger_dag_id": stream_dag_id,
                "trigger_run_id": "__".join(map(str, names)),
            },
            deferrable=deferrable,
            arguments=tasks_arguments,
            left_out=left_out,
            held=held,
            guard=guard,
        )
        job = MovedJob(
            source_folder=source_folder,
            target_folder=target_folder,
            source_output=source_output or f"{source_folder}/output",
            target_output=target_output or f"{target_folder}/output",
            source_kafka_conn_id=source_kafka_conn_id,
            target_kafka_conn_id=target_kafka_conn_id,
        )
        job_steps = JobSteps(
            tasks=tasks,
            job=job,
            stop=stop,
            submit=submit,
            submit_is_idempotent=submit_is_idempotent,
        )
        FailoverTasks(
            tasks=tasks, job=job, job_steps=job_steps, verify=verify, is_mapped=is_mapped
        ).add()
    return group


def _check_start(
    mode: str,
    stream_dag_id: str | None,
    stop: OperatorFactory | None,
    submit: OperatorFactory | None,
) -> None:
    """Raise unless the job is started in one way, which the mode allows."""
    if (stream_dag_id is None) == (submit is None):
        both = "both are given" if submit else "neither is given"
        raise ConfigurationError(
            f"stream_dag_id or submit: {both}; give one of them, the DAG that runs the job, or "
            f"what submits it to its platform"
        )
    if mode == FailoverMode.DRILL and (stop or submit):
        raise ConfigurationError(
            "mode is drill, and stop or submit is given: a drill starts the job's DAG "
            "(stream_dag_id) and ends it through its control location; leave both out"
        )
