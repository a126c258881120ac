"""The operators that hand a job over: by triggering its DAG, or for a task that submits it."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

from airflow.providers.common.compat.sdk import AirflowSkipException, BaseOperator, Context

from airflow_mm2_offsets.core import FailoverPlan
from airflow_mm2_offsets.errors import HandoverError, NotReadyError
from airflow_mm2_offsets.hooks.storage import storage_path
from airflow_mm2_offsets.moves.handover import confirm_stopped, stopped_positions
from airflow_mm2_offsets.moves.journal import Event
from airflow_mm2_offsets.moves.move import Move
from airflow_mm2_offsets.operators.dag_runs import start_job
from airflow_mm2_offsets.operators.failing import fails_at_once
from airflow_mm2_offsets.operators.handover_plan import read_checked_plan
from airflow_mm2_offsets.operators.links import page_links
from airflow_mm2_offsets.operators.long_results import LongResults
from airflow_mm2_offsets.operators.moving import (
    MoveArgument,
    mover_of,
    pair_of_move,
    skip_in_dry_run,
    to_template,
)
from airflow_mm2_offsets.operators.target_dag import find_dag_problems
from airflow_mm2_offsets.spark.offsets import format_offsets
from airflow_mm2_offsets.storage import list_directory

HANDED_OVER = ("starting_offsets", "topic", "folder", "token")
"""The XComs of ``HandOverOperator``, which the task that submits the job pulls."""


class HandOver(BaseOperator):
    """Mixin of the operators that hand a job over.

    It compares driver, checkpoint and plan with what they were when the job had stopped; cleared
    alone, it compares again. Then the journal says that the job is the target's: whatever fails
    from there on, no other run starts a second one.

    Args:
        move: What is moved, and how.
    """

    operator_extra_links = page_links("run")
    template_fields: Sequence[str] = ("move",)

    def __init__(self, *, move: MoveArgument, **kwargs: Any) -> None:
        """Keep the settings."""
        super().__init__(**kwargs)
        self.move = to_template(move)

    def hand_over(self, context: Context) -> tuple[Move, FailoverPlan]:
        """Compare, and record that the job is handed over; return the move and its plan.

        Raises:
            HandoverError: The job has run since it was stopped, or may; a topic was recreated; or
                the move was rejected.
            PlanError: The plan is damaged, edited, of other clusters, topics or positions, or
                contradicts what the clusters say now, as after a reset of MirrorMaker 2.
            NotReadyError: The job can't be started, or the target's folder is in use.
            AirflowSkipException: The target job has begun: it is not started twice.
        """
        mover = mover_of(self, context)
        move = mover.find()
        skip_in_dry_run(self, context, f"hand job {move.job.name} over to {move.there}")
        has_handed_over = move.entry(Event.HAND_OVER) is not None
        if has_handed_over:
            self._skip_if_begun(move)
        confirm_stopped(move, storage_path)
        plan = self._read_plan(move)
        problems = self.find_start_problems(context, move)
        if not has_handed_over and (names := _files_there(move)):
            problems.append(f"{_there(move).checkpoint} holds {', '.join(names)} already")
        if problems:
            raise NotReadyError(f"nothing was started by this try: {'; '.join(problems)}")
        targets = plan.target_positions()
        move = mover.record(
            move,
            Event.HAND_OVER,
            plan=move.noted("plan"),
            plan_digest=plan.to_json()["digest"],
            starting_offsets=format_offsets(targets),
            topics=",".join(sorted(targets)),
            cluster_id=plan.ids.target.cluster_id,
        )
        self.log.info("Handed %s over to %s", move.job.name, move.there)
        return move, plan

    @abstractmethod
    def find_start_problems(self, context: Context, move: Move) -> list[str]:
        """Return why the job can't be started, as sentences."""

    def _read_plan(self, move: Move) -> FailoverPlan:
        stopped = stopped_positions(move)
        if not (path := move.noted("plan")):
            raise HandoverError(
                f"job {move.job.name}: its journal names no plan of this move: clear the task that "
                f"translates, with all after it"
            )
        return read_checked_plan(
            storage_path(path),
            pair_of_move(move),
            stopped=stopped,
            approval=move.noted("approval"),
        )

    def _skip_if_begun(self, move: Move) -> None:
        """Skip the task if the job has begun at the target, even if its DAG run was deleted."""
        if move.has_begun_there or _files_there(move):
            raise AirflowSkipException(
                f"the job has begun at {move.there}, and is not started twice. If it does not run, "
                f"start it with its folder there"
            )


def _there(move: Move) -> Any:  # noqa: ANN401 - a Home
    if move.there is None:
        raise HandoverError(f"job {move.job.name} was only stopped: it goes nowhere")
    return move.there


def _files_there(move: Move) -> list[str]:
    checkpoint = storage_path(_there(move).checkpoint)
    return sorted(list_directory(checkpoint, HandoverError))


class TriggerTargetDagOperator(HandOver):
    """Checks that nothing has changed since the stop, hands the job over, and triggers its DAG.

    The DAG run's conf has ``kafka_conn_id``, ``folder`` (the job's home) and, where it is not in
    that folder, ``output``. The job asks ``StopControl`` where to begin. A retry starts nothing
    twice: the DAG run is named after the move.

    Args:
        move: What is moved, and how.
        conf: Further keys of the DAG run's conf.

    Returns:
        ``dag_id`` and ``run_id`` of the DAG run.

    Raises:
        HandoverError: See ``HandOver``, as for PlanError, NotReadyError and AirflowSkipException.
    """

    template_fields: Sequence[str] = (*HandOver.template_fields, "conf")

    def __init__(
        self, *, move: MoveArgument, conf: Mapping[str, Any] | None = None, **kwargs: Any
    ) -> None:
        """Keep the settings."""
        super().__init__(move=move, **kwargs)
        self.conf = dict(conf or {})

    @fails_at_once()
    def execute(self, context: Context) -> dict[str, Any]:
        """Hand the job over, and trigger its DAG."""
        move, _ = self.hand_over(context)
        run_id = move.job_run()
        is_new = start_job(context, move.job, _there(move), run_id, self.conf)
        verb = "Triggered" if is_new else "An earlier try has triggered"
        self.log.info("%s the run %s of DAG %s", verb, run_id, move.job.dag)
        return {"dag_id": move.job.dag, "run_id": run_id}

    def find_start_problems(self, context: Context, move: Move) -> list[str]:
        """Return why the DAG can't be triggered."""
        if move.job.dag is None:
            return [f"job {move.job.name} names no DAG that runs it"]
        return find_dag_problems(context, move.job.dag)


class HandOverOperator(HandOver):
    """Checks that nothing has changed since the stop, and hands the job over; starts nothing.

    The task after it starts the job, by any platform's operator; ``before_submit`` must be the
    ``pre_execute`` of that one, as ``failover_tasks(submit=...)`` does it.

    Args:
        move: What is moved, and how.

    Returns:
        ``starting_offsets`` (Spark's JSON text, or ``@`` and a file of it), ``topic`` (several:
        separated by commas), ``folder`` (the job's home) and ``token``: a name for the job on its
        platform, the same in each try of the move, of lower-case letters, digits and a hyphen (36
        characters). None if the job has begun already. Each is an XCom of its own, too.

    Raises:
        HandoverError: See ``HandOver``, as for PlanError, NotReadyError and AirflowSkipException.
    """

    @fails_at_once()
    def execute(self, context: Context) -> dict[str, str] | None:
        """Hand the job over, and say what the next task needs."""
        try:
            move, _ = self.hand_over(context)
        except AirflowSkipException as begun:
            self.log.info("%s", begun)
            return None
        handed = move.facts(Event.HAND_OVER)
        offsets = LongResults.of(context).offsets_argument(
            handed["starting_offsets"], beside=handed["plan"]
        )
        facts = {
            "starting_offsets": offsets,
            "topic": handed["topics"],
            "folder": _there(move).folder,
            "token": submit_token(f"{move.job.name} {move.request_id}"),
        }
        for name, value in facts.items():
            context["ti"].xcom_push(key=name, value=value)
        return facts

    def find_start_problems(self, context: Context, move: Move) -> list[str]:  # noqa: ARG002
        """Return nothing: a platform is asked by the user's own operator only."""
        return []


def submit_token(request_id: str) -> str:
    """Return a name for the job that a move submits, which every platform takes as it is.

    Ids of DAG runs have colons and capitals; names of Kubernetes don't, and have 63 characters.
    """
    return f"mm2-{sha256(request_id.encode()).hexdigest()[:32]}"
