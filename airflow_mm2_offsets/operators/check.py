"""The step before anything is touched."""

from collections.abc import Sequence
from typing import Any

from airflow.providers.common.compat.sdk import BaseOperator, Context

from airflow_mm2_offsets.errors import (
    CheckpointError,
    ConfigurationError,
    Mm2OffsetsError,
    NotReadyError,
)
from airflow_mm2_offsets.hooks.mm2 import Mm2OffsetHook
from airflow_mm2_offsets.hooks.storage import storage_path
from airflow_mm2_offsets.operators.failing import fails_at_once
from airflow_mm2_offsets.service.checking import find_problems
from airflow_mm2_offsets.service.sinks import find_sink_problems
from airflow_mm2_offsets.spark.checkpoint import Checkpoint, read_checkpoint
from airflow_mm2_offsets.spark.control import read_driver
from airflow_mm2_offsets.storage import list_directory, open_location, read_text


class CheckFailoverOperator(BaseOperator):
    """Finds what would make a failover fail, while the source job still runs.

    It asks both clusters and Kafka Connect, reads the job's checkpoint and control location, sees
    that the job does not read the target, compares partitions on both sides, translates the
    positions of this moment, and sees that the target's checkpoint location is free and that the
    sink would not drop a fresh checkpoint's batches. It changes nothing.

    Args:
        mm2_conn_id: Id of a connection of type ``mm2``.
        checkpoint: The source job's checkpoint location.
        control: Its control location; None where it has none.
        target_checkpoint: Where the target job is to keep its checkpoint.
        plan_path: The file that ``TranslateOffsetsOperator`` keeps the plan in. A plan there
            means that this failover is under way, past the point where checking helps.
        sink: Where the target job is to write files or a Delta table, if it does.

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
    )

    def __init__(
        self,
        *,
        checkpoint: str,
        target_checkpoint: str,
        control: str | None = None,
        plan_path: str | None = None,
        sink: str | None = None,
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

    @fails_at_once()
    def execute(self, context: Context) -> None:  # noqa: ARG002 - Airflow's signature
        """Raise if anything stands in the way of the failover."""
        problems = self._problems()
        if problems is None:
            self.log.info("%s exists: this failover is under way", self.plan_path)
        elif problems:
            listed = "\n".join(f"  - {problem}" for problem in problems)
            raise NotReadyError(
                f"the failover can't begin, and nothing was stopped; {len(problems)} to mend:\n"
                f"{listed}"
            )
        else:
            self.log.info("Clusters, connectors, checkpoints and translations are as they must be")

    def _problems(self) -> list[str] | None:
        """Return all that is wrong; None where the failover is past checking."""
        problems: list[str] = []
        checkpoint = None
        try:
            if self.plan_path:
                plan = read_text(storage_path(self.plan_path), ConfigurationError)
                if plan is not None:
                    return None
        except Mm2OffsetsError as error:
            problems.append(str(error))
        try:
            checkpoint = read_checkpoint(storage_path(self.checkpoint))
        except Mm2OffsetsError as error:
            problems.append(str(error))
        for find in (
            self._job_problems,
            self._target_problems,
            self._sink_problems,
            self._cluster_problems,
        ):
            try:
                problems += find(checkpoint)
            except Mm2OffsetsError as error:
                problems.append(str(error))
        return problems

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
        if checkpoint is None or driver.query_id == checkpoint.query_id:
            return []
        problem = (
            f"{self.control} is of the query {driver.query_id} and {self.checkpoint} of the query "
            f"{checkpoint.query_id}, so another job would be stopped; give both of one job"
        )
        return [problem]

    def _target_problems(self, _checkpoint: Checkpoint | None) -> list[str]:
        place = open_location(storage_path(self.target_checkpoint), CheckpointError)
        # Not its batches alone: sources/0/0 is enough for Spark to begin where that says.
        taken = sorted(list_directory(place, CheckpointError))
        if not taken:
            return []
        problem = (
            f"{self.target_checkpoint} holds {', '.join(taken)} already, and Spark takes "
            f"startingOffsets with a new checkpoint only: give another target checkpoint location"
        )
        return [problem]

    def _sink_problems(self, _checkpoint: Checkpoint | None) -> list[str]:
        return find_sink_problems(storage_path(self.sink)) if self.sink else []

    def _cluster_problems(self, checkpoint: Checkpoint | None) -> list[str]:
        hook = Mm2OffsetHook(self.mm2_conn_id)
        if checkpoint is not None:
            servers = self._servers_of_the_job()
            return find_problems(hook.get_conn(), checkpoint.positions, reads_from=servers)
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
