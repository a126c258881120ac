"""The step before anything is touched."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any

from airflow.providers.common.compat.sdk import BaseOperator, Context

from airflow_mm2_offsets.core import FailoverPlan
from airflow_mm2_offsets.errors import (
    CheckpointError,
    ClusterUnreachableError,
    Mm2OffsetsError,
    NotReadyError,
)
from airflow_mm2_offsets.hooks.mm2 import Mm2OffsetHook
from airflow_mm2_offsets.hooks.storage import storage_path
from airflow_mm2_offsets.operators.failing import fails_at_once
from airflow_mm2_offsets.operators.target_dag import find_dag_problems
from airflow_mm2_offsets.service.checking import find_problems
from airflow_mm2_offsets.service.handover import read_claim
from airflow_mm2_offsets.service.ids import read_known_ids
from airflow_mm2_offsets.service.plan_file import check_plan, read_plan
from airflow_mm2_offsets.service.plan_options import PlanOptions
from airflow_mm2_offsets.service.position_ids import check_ids, note_ids
from airflow_mm2_offsets.service.sinks import SinkWriter, find_sink_problems
from airflow_mm2_offsets.spark.checkpoint import Checkpoint, read_checkpoint
from airflow_mm2_offsets.spark.control import read_acknowledgement, read_driver
from airflow_mm2_offsets.spark.fence import FenceState, read_fence
from airflow_mm2_offsets.storage import list_directory, open_location

_Finder = Callable[[Checkpoint | None], list[str]]

_HEADS = {
    False: "the failover can't begin, and nothing was stopped; {} to mend:",
    True: "the failover can't go on; {} to mend:",
}
"""What is said above the problems, by whether the job's stop was asked."""

_WELL = {
    False: "Clusters, connectors, checkpoints and translations are as they must be",
    True: "The run's fence stands: this failover is under way",
}


class CheckFailoverOperator(BaseOperator):
    """Finds what would make a failover fail, while the source job still runs.

    It asks both clusters and Kafka Connect, reads the job's checkpoint and control location, sees
    that no other run moves the job or has moved it and that the job does not read the target,
    compares partitions on both sides, translates the positions of this moment, and sees that the
    target's checkpoint location is free, that the sink would not drop a fresh checkpoint's batches,
    and that the DAG which is to run the job is there and not paused. It changes nothing
    but a note beside the checkpoint, ``<checkpoint>.clusters.json``: the ids of clusters and
    topics, which every later step compares.

    Once the run's fence stands the failover is under way: then only what is still to come is
    looked at, the DAG and the kept plan.

    Args:
        mm2_conn_id: Id of a connection of type ``mm2``.
        checkpoint: The source job's checkpoint location.
        control: Its control location; None where it has none.
        target_checkpoint: Where the target job is to keep its checkpoint.
        plan_path: The file that ``TranslateOffsetsOperator`` keeps the plan in. Of a job without
            control location, a plan there means that this failover is under way.
        sink: Where the target job is to write files or a Delta table, if it does.
        changed_records: A transform changes records on the way: see ``TranslateOffsetsOperator``.
            May be a templated string.
        txn_app_id: What the job gives Delta as ``txnAppId``, or Hudi as its identifier; empty for
            none, None if unknown.
        trigger_dag_id: The DAG that is to be triggered for the target, if one is.
        request_id: The stop, as ``StopSparkStreamingOperator`` has it.

    Raises:
        NotReadyError: Each problem is named.
    """

    template_fields: Sequence[str] = (
        "mm2_conn_id",
        "checkpoint",
        "control",
        "target_checkpoint",
        "plan_path",
        "sink",
        "txn_app_id",
        "changed_records",
        "trigger_dag_id",
        "request_id",
    )

    def __init__(
        self,
        *,
        checkpoint: str,
        target_checkpoint: str,
        control: str | None = None,
        plan_path: str | None = None,
        sink: str | None = None,
        txn_app_id: str | None = None,
        changed_records: bool | str = False,
        trigger_dag_id: str | None = None,
        request_id: str = "{{ dag.dag_id }}:{{ run_id }}",
        mm2_conn_id: str = Mm2OffsetHook.default_conn_name,
        **kwargs: Any,
    ) -> None:
        """Keep the settings."""
        super().__init__(**kwargs)
        self.mm2_conn_id = mm2_conn_id
        self.checkpoint = checkpoint
        self.control = control
        self.target_checkpoint = target_checkpoint
        self.plan_path = plan_path
        self.sink = sink
        self.txn_app_id = txn_app_id
        self.changed_records = changed_records
        self.trigger_dag_id = trigger_dag_id
        self.request_id = request_id

    @fails_at_once()
    def execute(self, context: Context) -> None:
        """Raise if anything stands in the way of the failover."""
        is_under_way = self._is_under_way()
        finders = (self._plan_problems, self._id_problems) if is_under_way else self._finders()
        problems = self._all(finders)
        if self.trigger_dag_id:
            problems += find_dag_problems(context, self.trigger_dag_id)
        if problems:
            listed = "\n".join(f"  - {problem}" for problem in problems)
            raise NotReadyError(f"{_HEADS[is_under_way].format(len(problems))}\n{listed}")
        self.log.info("%s", _WELL[is_under_way])

    def _is_under_way(self) -> bool:
        try:
            if not self.control:
                return self._kept_plan() is not None
            fence = read_fence(storage_path(self.control))
        except Mm2OffsetsError:  # told with the other problems
            return False
        return fence is not None and fence.request_id == self.request_id

    def _finders(self) -> tuple[_Finder, ...]:
        return (
            self._plan_problems,
            self._id_problems,
            self._fence_problems,
            self._job_problems,
            self._target_problems,
            self._sink_problems,
            self._cluster_problems,
        )

    def _all(self, finders: Iterable[_Finder]) -> list[str]:
        problems: list[str] = []
        checkpoint = None
        try:
            checkpoint = read_checkpoint(storage_path(self.checkpoint))
        except Mm2OffsetsError as error:
            problems.append(str(error))
        for find in finders:
            try:
                problems += find(checkpoint)
            except Mm2OffsetsError as error:
                problems.append(str(error))
        return list(dict.fromkeys(problems))

    def _kept_plan(self) -> FailoverPlan | None:
        return read_plan(storage_path(self.plan_path)) if self.plan_path else None

    def _plan_problems(self, checkpoint: Checkpoint | None) -> list[str]:
        """Tell why the plan that is kept, if one is, could not be gone by."""
        plan = self._kept_plan()
        if plan is None or checkpoint is None:
            return []
        path = storage_path(str(self.plan_path))
        ids = read_known_ids(Mm2OffsetHook(self.mm2_conn_id).get_conn(), checkpoint.positions)
        check_plan(plan, path, checkpoint.positions, checkpoint.pending, ids)
        return []

    def _id_problems(self, checkpoint: Checkpoint | None) -> list[str]:
        """Note which topics the job reads now, and tell where they were recreated since."""
        if checkpoint is None:
            return []
        pair = Mm2OffsetHook(self.mm2_conn_id).get_conn()
        with suppress(ClusterUnreachableError):  # told with the clusters' problems
            now = read_known_ids(pair, checkpoint.positions)
            path = storage_path(self.checkpoint)
            check_ids(note_ids(path, checkpoint, self.request_id, now), now)
        return []

    def _fence_problems(self, _checkpoint: Checkpoint | None) -> list[str]:
        """Tell who else moves the job; a stop that was answered and not followed is no problem."""
        fence = read_fence(storage_path(self.control)) if self.control else None
        if fence is None:
            return []
        if fence.state is FenceState.STOPPING and self.control:
            answer = read_acknowledgement(storage_path(self.control), fence.request_id)
            if answer is not None:
                return []
        problem = (
            f"{self.control}: {fence}, and a job is moved once: see that run; "
            f"`airflow-mm2-offsets fence lift` lets the job run and be moved again"
        )
        return [problem]

    def _job_problems(self, checkpoint: Checkpoint | None) -> list[str]:
        if not self.control:
            return []
        driver = read_driver(storage_path(self.control))
        if driver is None:
            problem = (
                f"no job has run with the control location {self.control}; give the one that the "
                "job hands to StopControl"
            )
            return [problem]
        if not driver.lease:
            problem = (
                f"the job in {self.control} runs under a stop control that obeys no fence, so it "
                f"could run on beside the target job: start it with this release's files"
            )
            return [problem]
        queries = {driver.query_id, *driver.runs}
        if checkpoint is None or checkpoint.query_id in queries:
            return []
        problem = (
            f"{self.control} is of the query {' and '.join(sorted(queries))} and "
            f"{self.checkpoint} of the query {checkpoint.query_id}, so another job would be "
            f"stopped; give both of one job"
        )
        return [problem]

    def _target_problems(self, _checkpoint: Checkpoint | None) -> list[str]:
        place = open_location(storage_path(self.target_checkpoint), CheckpointError)
        claimed = read_claim(place)
        if claimed not in {None, self.request_id}:
            problem = (
                f"{self.target_checkpoint} is the target of the run {claimed!r} already: give "
                f"another target checkpoint location"
            )
            return [problem]
        # Not its batches alone: sources/0/0 is enough for Spark to begin where that says.
        taken = sorted(list_directory(place, CheckpointError))
        if not taken:
            return []
        problem = (
            f"{self.target_checkpoint} holds {', '.join(taken)} already, and Spark takes "
            f"startingOffsets with a new checkpoint only: give another target checkpoint location"
        )
        return [problem]

    def _sink_problems(self, checkpoint: Checkpoint | None) -> list[str]:
        if not self.sink:
            return []
        replaced = checkpoint.query_id if checkpoint else None
        application = None if self.txn_app_id in {None, "None"} else self.txn_app_id
        writer = SinkWriter(replaced_query_id=replaced, txn_app_id=application)
        return find_sink_problems(storage_path(self.sink), writer)

    def _cluster_problems(self, checkpoint: Checkpoint | None) -> list[str]:
        hook = Mm2OffsetHook(self.mm2_conn_id)
        if checkpoint is not None:
            servers = self._servers_of_the_job()
            options = PlanOptions(changed_records=str(self.changed_records) == "True")
            return find_problems(
                hook.get_conn(), checkpoint.positions, reads_from=servers, options=options
            )
        is_reachable, found = hook.test_connection()
        return [] if is_reachable else [found]

    def _servers_of_the_job(self) -> frozenset[str]:
        if not self.control:
            return frozenset()
        try:
            driver = read_driver(storage_path(self.control))
        except Mm2OffsetsError:  # told with the job's problems
            return frozenset()
        return driver.bootstrap_servers if driver else frozenset()
