"""The steps that hand the job over to the target cluster: one triggers its DAG, one does not."""

import json
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

from airflow.providers.common.compat.sdk import AirflowSkipException, Context
from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator

from airflow_mm2_offsets.core import FailoverPlan
from airflow_mm2_offsets.errors import ConfigurationError, HandoverError
from airflow_mm2_offsets.hooks.storage import storage_path
from airflow_mm2_offsets.operators.failing import fails_at_once
from airflow_mm2_offsets.operators.handover_checks import HandOver
from airflow_mm2_offsets.operators.links import page_links
from airflow_mm2_offsets.operators.long_results import LongResults
from airflow_mm2_offsets.operators.platform import HANDED_OVER
from airflow_mm2_offsets.operators.target_dag import find_dag_problems, has_dag_run, with_output
from airflow_mm2_offsets.spark.handover import describe_start
from airflow_mm2_offsets.spark.offsets import format_offsets
from airflow_mm2_offsets.spark.submission import submission_file, submitted_by


class TriggerTargetDagOperator(HandOver, TriggerDagRunOperator):
    """Checks that nothing has changed since the stop, marks the job as moved, triggers its DAG.

    It takes all arguments of ``HandOver`` and ``TriggerDagRunOperator``. If its ``conf`` holds
    ``starting_offsets``, they must be the plan's. Give a ``trigger_run_id`` that derives from this
    run's, and ``skip_when_already_exists``: a retry then starts nothing twice.

    Args:
        job_output: Where the target job is to write. The ``conf`` then has it as ``output``, unless
            it is ``output`` in the conf's ``folder``.
        kwargs: All other arguments.

    Raises:
        HandoverError: No stop of this run is proved, the job has run since, or may, or a topic was
            recreated, or the DAG run exists though no earlier try can have triggered it. The
            message says whether an earlier try of this task may have triggered the target job.
        PlanError: The kept plan is damaged, edited, of other clusters, topics or positions, or
            contradicts what the clusters say now, as after a reset of MirrorMaker 2.
        AirflowSkipException: The target job has begun: it is not started twice.
        NotReadyError: The DAG does not exist or is paused, or the target's checkpoint is in use.
    """

    operator_extra_links = page_links("run", beside=TriggerDagRunOperator)
    template_fields: Sequence[str] = (
        *TriggerDagRunOperator.template_fields,
        *HandOver.template_fields,
        "job_output",
    )

    def __init__(self, *, job_output: str | None = None, **kwargs: Any) -> None:
        """Keep the settings."""
        super().__init__(**kwargs)
        self.job_output = job_output

    @fails_at_once()
    def execute(self, context: Context) -> None:
        """Hand the job over, and trigger its DAG."""
        self.conf = self.hand_over(context)
        super().execute(context)

    def make_arguments(self, context: Context, plan: FailoverPlan) -> Any:  # noqa: ANN401, ARG002 - the mixin's
        """Return the conf of the DAG run.

        Raises:
            ConfigurationError: It is no JSON: Airflow would say so after the hand-over only.
        """
        conf = with_output(self.conf, self.job_output)
        try:
            conf = json.loads(conf) if conf and isinstance(conf, str) else conf
            json.dumps(conf)
        except (TypeError, ValueError) as error:
            raise ConfigurationError(
                f"task {self.task_id}: conf can't be given to a DAG run, which takes JSON: {error}"
            ) from error
        return conf

    def topics_argument(self, plan: FailoverPlan) -> str | None:  # noqa: ARG002 - the mixin's
        """Return the conf's topics, if it has some."""
        topics = self.conf.get("topic") if isinstance(self.conf, Mapping) else None
        return None if topics is None else str(topics)

    def name_start(self) -> str:
        """Return the DAG run."""
        return f"the run {self.trigger_run_id or 'of this task'!r} of DAG {self.trigger_dag_id}"

    def how_to_start(self) -> str:
        """Return how a user triggers the DAG."""
        return f"trigger {self.trigger_dag_id} yourself with the same conf"

    def find_start_problems(self, context: Context) -> list[str]:
        """Return why the DAG can't be triggered."""
        return find_dag_problems(context, self.trigger_dag_id)

    def planned_offsets(self) -> object:
        """Return the conf's offsets, if it has some."""
        if not isinstance(self.conf, Mapping) or "starting_offsets" not in self.conf:
            return None
        return str(self.conf["starting_offsets"])

    def check_not_started(self, context: Context) -> None:
        """Raise where the DAG run exists that no try of this hand-over can have triggered.

        ``skip_when_already_exists`` would take it for this hand-over's, and start no job.
        """
        run_id = self.trigger_run_id
        if run_id and has_dag_run(context, self.trigger_dag_id, run_id):
            raise HandoverError(
                f"{describe_start(None)}: DAG {self.trigger_dag_id} has the run {run_id!r} "
                f"already, from before the job was stopped this time, with offsets of then. See "
                f"that its job does not run, delete that DAG run and clear this task; or start a "
                f"new run of the failover"
            )


class HandOverOperator(HandOver):
    """Checks that nothing has changed since the stop, and marks the job as moved; starts nothing.

    The task after it starts the job, by any platform's operator; ``before_submit`` must be the
    ``pre_execute`` of that one, as ``failover_tasks(submit=...)`` does it. It takes all arguments
    of ``HandOver``.

    Returns:
        ``starting_offsets`` (Spark's JSON text of the plan that was checked; where it is too long
        for an argument, ``@`` and the location of a file with it), ``topic`` (several: separated by
        commas) and ``token``: a name for the job on its platform, the same in each
        try of this run, of lower-case letters, digits and a hyphen (36 characters). None if the
        job has begun already. Each of the three is an XCom of its own, too.

    Raises:
        HandoverError: As ``TriggerTargetDagOperator``; or this run has submitted a job before the
            job was stopped this time.
        PlanError: As ``TriggerTargetDagOperator``.
        NotReadyError: The target's checkpoint is in use.
    """

    template_fields: Sequence[str] = HandOver.template_fields

    @fails_at_once()
    def execute(self, context: Context) -> dict[str, str] | None:
        """Hand the job over, and say what the next task needs."""
        try:
            facts: dict[str, str] = self.hand_over(context)
        except AirflowSkipException as begun:
            self.log.info("%s", begun)
            return None
        for name, value in facts.items():
            context["ti"].xcom_push(key=name, value=value)
        return facts

    def make_arguments(self, context: Context, plan: FailoverPlan) -> dict[str, str]:
        """Return what the next task needs; long offsets are written to their file.

        Raises:
            ConfigurationError: An option of long results is invalid.
            PlanError: The file can't be written.
        """
        text = format_offsets(plan.target_positions())
        offsets = LongResults.of(context).offsets_argument(text, beside=self.plan_path)
        topics = self.topics_argument(plan)
        return dict(zip(HANDED_OVER, (offsets, topics, submit_token(self.request_id)), strict=True))

    def topics_argument(self, plan: FailoverPlan) -> str:
        """Return the topics that the next task gets."""
        return ",".join(sorted(plan.target_positions()))

    def name_start(self) -> str:
        """Return what the task after this one starts."""
        return f"the job {submit_token(self.request_id)!r} by the task after {self.task_id}"

    def how_to_start(self) -> str:
        """Return how a user starts the job."""
        return f"start it on its platform with the checkpoint {self.target_checkpoint}"

    def find_start_problems(self, context: Context) -> list[str]:  # noqa: ARG002 - the mixin's
        """Return nothing: a platform is asked by the user's own operator only."""
        return []

    def check_not_started(self, context: Context) -> None:  # noqa: ARG002 - the mixin's
        """Raise where this run has submitted a job that was moved away from again."""
        target = storage_path(self.target_checkpoint)
        if submitted_by(target, self.request_id) is not None:
            raise HandoverError(
                f"{describe_start(None)}: this run has submitted a job before the job was stopped "
                f"this time, with offsets of then, and its platform may take a second one of the "
                f"same name for the first. Start a new run of the failover; or see that the job "
                f"does not run, delete it on its platform and "
                f"{submission_file(target, self.request_id)}, and clear this task"
            )


def submit_token(request_id: str) -> str:
    """Return a name for the job that a run submits, which every platform takes as it is.

    Ids of DAG runs have colons and capitals; names of Kubernetes don't, and have 63 characters.
    """
    return f"mm2-{sha256(request_id.encode()).hexdigest()[:32]}"
