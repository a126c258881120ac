"""The first step of a failover: it finds problems before the job is stopped."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any

from airflow.providers.common.compat.sdk import BaseOperator, Context

from airflow_mm2_offsets.core import FailoverPlan
from airflow_mm2_offsets.errors import ClusterUnreachableError, Mm2OffsetsError, NotReadyError
from airflow_mm2_offsets.hooks.mm2 import Mm2OffsetHook
from airflow_mm2_offsets.hooks.storage import storage_path
from airflow_mm2_offsets.operators.failing import fails_at_once
from airflow_mm2_offsets.operators.target_dag import find_dag_problems
from airflow_mm2_offsets.planning.checks import find_problems
from airflow_mm2_offsets.planning.ids import read_known_ids
from airflow_mm2_offsets.planning.options import PlanOptions
from airflow_mm2_offsets.planning.plan_file import check_plan, read_plan
from airflow_mm2_offsets.planning.subscribe_pattern import JobPatterns
from airflow_mm2_offsets.spark.checkpoint import Checkpoint, read_checkpoint
from airflow_mm2_offsets.spark.control import Driver, read_driver
from airflow_mm2_offsets.spark.fence import read_fence
from airflow_mm2_offsets.spark.job_checks import (
    find_fence_problems,
    find_job_problems,
    find_target_problems,
)
from airflow_mm2_offsets.spark.position_ids import check_ids, note_ids
from airflow_mm2_offsets.spark.sinks import SinkWriter, find_sink_problems
from airflow_mm2_offsets.triggers.stop import job_locations

_Check = Callable[[Checkpoint | None], list[str]]
"""Returns problems as sentences."""
_FAILURES = {
    False: "the failover can't begin, and nothing was stopped; {} to mend:",
    True: "the failover can't go on; {} to mend:",
}
"""The line above the problems, by whether the failover is under way."""
_SUCCESSES = {
    False: "Clusters, connectors, checkpoints and translations are as they must be",
    True: "The run's fence stands: this failover is under way",
}


class CheckFailoverOperator(BaseOperator):
    """Finds what would make a failover fail, while the source job still runs.

    It asks both clusters and Kafka Connect, and reads the job's checkpoint and control location.
    These must be the job's own and no copies, no other run may move the job or have moved it, and
    the job must not read the target. It compares partitions on both sides and translates the
    positions of this moment. The target's checkpoint location must be free, no fence may stand in
    its control location, and the sink must not drop a fresh checkpoint's batches. The DAG that is
    to run the job must exist and not be paused.

    It changes nothing but a note beside the checkpoint, ``<checkpoint>.clusters.json``: the ids of
    clusters and topics, which every later step compares.

    Once the run's fence stands the failover is under way: then only what is still to come is
    looked at, the DAG and the kept plan.

    Args:
        mm2_conn_id: Id of a connection of type ``mm2``.
        checkpoint: The source job's checkpoint location.
        control: Its control location; None where it has none.
        target_checkpoint: Where the target job is to keep its checkpoint.
        target_control: The target job's control location: a fence there would end it at once.
        spark_control: The control location as Spark names it. Give it only where Airflow reaches
            the same folder by another name, such as a mount, and the job can't answer any more.
        spark_checkpoint: The same of the checkpoint location.
        subscribe_pattern: The ``subscribePattern`` of the job on the target. By default that of the
            job in ``control``; empty text: it subscribes by name.
        plan_path: The file that ``TranslateOffsetsOperator`` keeps the plan in. Of a job without
            control location, a plan there means that this failover is under way.
        sink: Where the target job is to write files or a Delta table, if it does.
        changed_records: See ``TranslateOffsetsOperator``. May be a templated string.
        txn_app_id: What the job gives Delta as ``txnAppId``, or Hudi as its identifier; empty for
            none, None if unknown.
        trigger_dag_id: The DAG that is to be triggered for the target, if one is.
        request_id: The stop, as ``StopSparkStreamingOperator`` has it.

    Raises:
        NotReadyError: Each problem is named.
    """

    template_fields: Sequence[str] = (
        *("mm2_conn_id", "checkpoint", "control", "target_checkpoint", "target_control"),
        *("spark_control", "spark_checkpoint", "subscribe_pattern", "plan_path", "sink"),
        *("txn_app_id", "changed_records", "trigger_dag_id", "request_id"),
    )

    def __init__(
        self,
        *,
        checkpoint: str,
        target_checkpoint: str,
        control: str | None = None,
        target_control: str | None = None,
        spark_control: str | None = None,
        spark_checkpoint: str | None = None,
        subscribe_pattern: str | None = None,
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
        self.target_control = target_control
        self.spark_control = spark_control
        self.spark_checkpoint = spark_checkpoint
        self.subscribe_pattern = subscribe_pattern
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
        checks: list[_Check] = [self._check_plan, self._check_ids]
        if not is_under_way:
            checks += [self._check_fence, self._check_job, self._check_target, self._check_sink]
            checks += [self._check_clusters]
        problems = self._run(checks)
        if self.trigger_dag_id:
            problems += find_dag_problems(context, self.trigger_dag_id)
        if problems:
            listed = "\n".join(f"  - {problem}" for problem in problems)
            raise NotReadyError(f"{_FAILURES[is_under_way].format(len(problems))}\n{listed}")
        self.log.info("%s", _SUCCESSES[is_under_way])

    def _is_under_way(self) -> bool:
        try:
            if not self.control:
                return self._kept_plan() is not None
            fence = read_fence(storage_path(self.control))
        except Mm2OffsetsError:  # a check reports it
            return False
        return fence is not None and fence.request_id == self.request_id

    def _run(self, checks: Iterable[_Check]) -> list[str]:
        """Run checks; return the problems that they return or raise, each once."""
        problems: list[str] = []
        checkpoint = None
        try:
            checkpoint = read_checkpoint(storage_path(self.checkpoint))
        except Mm2OffsetsError as error:
            problems.append(str(error))
        for check in checks:
            try:
                problems += check(checkpoint)
            except Mm2OffsetsError as error:
                problems.append(str(error))
        return list(dict.fromkeys(problems))

    def _kept_plan(self) -> FailoverPlan | None:
        return read_plan(storage_path(self.plan_path)) if self.plan_path else None

    def _check_plan(self, checkpoint: Checkpoint | None) -> list[str]:
        """Raise if the kept plan is unusable."""
        plan = self._kept_plan()
        if plan is None or checkpoint is None:
            return []
        path = storage_path(str(self.plan_path))
        ids = read_known_ids(Mm2OffsetHook(self.mm2_conn_id).get_conn(), checkpoint.positions)
        check_plan(plan, path, checkpoint.positions, checkpoint.pending, ids)
        return []

    def _check_ids(self, checkpoint: Checkpoint | None) -> list[str]:
        """Note the ids of clusters and topics; raise if one has changed since the last note."""
        if checkpoint is None:
            return []
        pair = Mm2OffsetHook(self.mm2_conn_id).get_conn()
        with suppress(ClusterUnreachableError):  # _check_clusters reports it
            now = read_known_ids(pair, checkpoint.positions)
            path = storage_path(self.checkpoint)
            check_ids(note_ids(path, checkpoint, self.request_id, now), now)
        return []

    def _check_fence(self, _checkpoint: Checkpoint | None) -> list[str]:
        return find_fence_problems(storage_path(self.control)) if self.control else []

    def _check_job(self, checkpoint: Checkpoint | None) -> list[str]:
        if not self.control:
            return []
        return find_job_problems(job_locations(self), checkpoint)

    def _check_target(self, _checkpoint: Checkpoint | None) -> list[str]:
        control = storage_path(self.target_control) if self.target_control else None
        return find_target_problems(storage_path(self.target_checkpoint), control, self.request_id)

    def _check_sink(self, checkpoint: Checkpoint | None) -> list[str]:
        if not self.sink:
            return []
        replaced = checkpoint.query_id if checkpoint else None
        application = None if self.txn_app_id in {None, "None"} else self.txn_app_id
        writer = SinkWriter(replaced_query_id=replaced, txn_app_id=application)
        return find_sink_problems(storage_path(self.sink), writer)

    def _check_clusters(self, checkpoint: Checkpoint | None) -> list[str]:
        hook = Mm2OffsetHook(self.mm2_conn_id)
        if checkpoint is None:
            is_reachable, message = hook.test_connection()
            return [] if is_reachable else [message]
        driver, pair = self._driver(), hook.get_conn()
        requested = None if self.subscribe_pattern == "None" else self.subscribe_pattern
        source = driver.subscribe_patterns.get(checkpoint.query_id, ()) if driver else ()
        options = PlanOptions(changed_records=str(self.changed_records) == "True")
        return find_problems(
            pair,
            checkpoint.positions,
            reads_from=driver.bootstrap_servers if driver else (),
            patterns=JobPatterns(requested=requested, source=source),
            options=options,
        )

    def _driver(self) -> Driver | None:
        try:
            return read_driver(storage_path(self.control)) if self.control else None
        except Mm2OffsetsError:  # _check_job reports it
            return None
