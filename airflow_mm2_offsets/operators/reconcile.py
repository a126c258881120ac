"""The step that proves what a failover, or any stretch of time, has delivered."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.providers.common.compat.sdk import Context

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.core import FailoverPlan
from airflow_mm2_offsets.core.times import parse_zoned
from airflow_mm2_offsets.errors import ConfigurationError, ReconciliationError
from airflow_mm2_offsets.hooks.mm2 import Mm2OffsetHook
from airflow_mm2_offsets.hooks.storage import storage_path
from airflow_mm2_offsets.job import py_files
from airflow_mm2_offsets.kafka.client_properties import format_properties, to_java
from airflow_mm2_offsets.kafka.syncs import read_syncs
from airflow_mm2_offsets.operators.failing import fails_at_once
from airflow_mm2_offsets.reconcile import read_report
from airflow_mm2_offsets.reconcile.ranges import (
    Partitions,
    partitions_of_plan,
    partitions_of_ranges,
    partitions_of_topics,
)
from airflow_mm2_offsets.reconcile.request import JOB_FILE, Request, make_request
from airflow_mm2_offsets.spark.offsets import parse_offsets

SIDES = ("source", "target")


class ReconcileOperator(SparkSubmitOperator):
    """Compares what the source held, what the target holds and what a sink got, in a Spark job.

    Give one of ``plan``, ``ranges`` and ``topics``. All that ``SparkSubmitOperator`` takes can be
    given too (``conn_id``, ``conf``, ``deploy_mode``...); a task that was cleared submits again in
    cluster mode only with ``durable=False``. docs/reconcile.md has the definitions.

    Args:
        report: A folder of this run's own that Spark and Airflow both reach: ``report.json``, and
            ``differences``, a Parquet of every difference.
        mm2_conn_id: Id of a connection of type ``mm2``.
        read: Which clusters are read: ``source``, ``target`` or both; one needs ``sinks``.
        plan: A plan (``TranslateOffsetsOperator``), as a dict or as JSON: the region around its
            switch is compared, and as many records may be there twice as it announced.
        committed: With a plan: where the target job stands (``SparkStartedSensor``), as Spark's
            JSON text, if it still runs.
        records_before: With a plan: how many offsets to look back before the source positions.
        ranges: For ``source`` and ``target``: topic to partition to the first offset and the end.
        topics: Names of the source's topics, all of whose partitions are compared.
        start_time: From this time on, as ISO 8601 with a zone; by the records' timestamps.
        end_time: Until before this time.
        sinks: For each sink a dict of ``path`` and, where they differ, ``cluster``, ``format``,
            ``where`` and ``columns``; see ``reconcile.request``.
        kafka: SQL expressions of ``key``, ``value`` and ``headers`` of a Kafka record, where the
            sink does not keep them as they are.
        max_duplicates: Without a plan: how many records may be there twice.
        examples: How many differences of each kind the report shows.
        source_properties: A file of Kafka's Java client properties where the driver runs; None
            makes them of the connection.
        target_properties: Likewise.

    Returns:
        The report. Beside it the XComs ``summary`` (a table) and ``table`` (its lines).

    Raises:
        ReconciliationError: They differ by more than was announced; partitions and counts are
            named. The report is pushed all the same. Or the job could not compare.
    """

    template_fields: Sequence[str] = (
        *SparkSubmitOperator.template_fields,
        *("report", "mm2_conn_id", "plan", "committed", "ranges", "topics", "start_time"),
        *("end_time", "sinks", "kafka", "source_properties", "target_properties"),
    )

    def __init__(
        self,
        *,
        report: str,
        mm2_conn_id: str = Mm2OffsetHook.default_conn_name,
        read: Sequence[str] = SIDES,
        plan: Mapping[str, Any] | str | None = None,
        committed: str | None = None,
        records_before: int = 10_000,
        ranges: Mapping[str, Any] | None = None,
        topics: Sequence[str] | None = None,
        start_time: str | None = None,
        end_time: str | None = None,
        sinks: Sequence[Mapping[str, Any]] = (),
        kafka: Mapping[str, str | None] | None = None,
        max_duplicates: int = 0,
        examples: int = 10,
        source_properties: str | None = None,
        target_properties: str | None = None,
        **kwargs: Any,
    ) -> None:
        """Keep the settings."""
        super().__init__(**{"application": JOB_FILE, "name": "mm2-reconcile", **kwargs})
        self.report = report
        self.mm2_conn_id = mm2_conn_id
        self.read = read
        self.plan = plan
        self.committed = committed
        self.records_before = records_before
        self.ranges = ranges
        self.topics = topics
        self.start_time = start_time
        self.end_time = end_time
        self.sinks = sinks
        self.kafka = kafka
        self.max_duplicates = max_duplicates
        self.examples = examples
        self.source_properties = source_properties
        self.target_properties = target_properties

    @fails_at_once()
    def execute(self, context: Context) -> dict[str, Any]:  # type: ignore[override] # it has a result
        """Let Spark compare; judge what it found."""
        self._check()
        plan = self._plan()
        pair = Mm2OffsetHook(self.mm2_conn_id).get_conn()
        request = make_request(
            self._partitions(pair, plan),
            self.sinks,
            kafka=self.kafka,
            time=self._time(),
            examples=self.examples,
        )
        allowed = plan.max_reread if plan else self.max_duplicates
        with self._arguments(pair, request):
            self._submit(context)
        found = read_report(storage_path(self.report), allowed)
        summary = found.summary()
        self.log.info("%s", summary)
        context["ti"].xcom_push("summary", summary)
        context["ti"].xcom_push("table", summary.splitlines())
        context["ti"].xcom_push("return_value", found.to_json())
        found.check()
        return found.to_json()

    def _submit(self, context: Context) -> None:
        self.py_files = ",".join(filter(None, [py_files(), self.py_files]))
        try:
            super().execute(context)
        except Exception as error:
            # The job's own words say more than the exit code of spark-submit.
            path = storage_path(self.report) / "report.json"
            if path.exists():
                read_report(storage_path(self.report))
            raise ReconciliationError(
                f"the Spark job failed before it could say why; see this task's log: {error}"
            ) from error

    @contextmanager
    def _arguments(self, pair: ClusterPair, request: Request) -> Iterator[None]:
        """Hand the job its files: logins are never arguments, which all who list processes see."""
        with TemporaryDirectory(prefix="mm2-reconcile-") as folder:
            files = {"request": Path(folder, "mm2-reconcile-request.json")}
            files["request"].write_text(json.dumps(request, indent=1))
            arguments = ["--report", self.report, "--request", str(files["request"])]
            for side in self.read:
                if not (path := getattr(self, f"{side}_properties")):
                    cluster = getattr(pair, side)
                    path = str(Path(folder, f"mm2-reconcile-{side}.properties"))
                    text = format_properties(to_java(cluster.name, cluster.config))
                    Path(path).write_text(text)
                    files[side] = Path(path)
                arguments += [f"--{side}-properties", path]
            given = self.files
            self.files = ",".join([*filter(None, [given]), *map(str, files.values())])
            self.application_args = arguments
            yield
            self.files = given

    def _partitions(self, pair: ClusterPair, plan: FailoverPlan | None) -> Partitions:
        if plan is not None:
            index = None
            if {*self.read} == {*SIDES}:
                index = read_syncs(pair.syncs_cluster, pair.syncs_topic).index
            return partitions_of_plan(
                plan,
                index=index,
                committed=parse_offsets(self.committed) if self.committed else None,
                records_before=self.records_before,
            )
        if self.ranges is not None:
            source, target = (self.ranges.get(side) or {} for side in SIDES)
            return partitions_of_ranges(pair.naming, source, target)
        names = {
            topic: topic if "source" in self.read else pair.naming.target_topic(topic)
            for topic in self.topics or ()
        }
        cluster = pair.source if "source" in self.read else pair.target
        return partitions_of_topics(cluster, names, pair.naming)

    def _plan(self) -> FailoverPlan | None:
        if self.plan is None:
            return None
        try:
            given = json.loads(self.plan) if isinstance(self.plan, str) else self.plan
            return FailoverPlan.from_json(given)
        except (ValueError, KeyError, TypeError) as error:
            raise ConfigurationError(
                f"task {self.task_id}: plan is none that this release reads: {error!r}"
            ) from error

    def _time(self) -> tuple[int, int] | None:
        if not self.start_time and not self.end_time:
            return None
        times = []
        for field in ("start_time", "end_time"):
            time = parse_zoned(getattr(self, field) or "")
            if time is None:
                raise ConfigurationError(
                    f"task {self.task_id}: {field} is {getattr(self, field)!r}; give both times "
                    f"with their zone, such as 2026-11-21T09:10:00+00:00"
                )
            times.append(round(time.timestamp() * 1000))
        return times[0], times[1]

    def _check(self) -> None:
        given = [name for name in ("plan", "ranges", "topics") if getattr(self, name) is not None]
        if len(given) != 1:
            raise ConfigurationError(
                f"task {self.task_id}: give one of plan, ranges and topics; given: "
                f"{', '.join(given) or 'none'}"
            )
        if not self.read or not {*self.read} <= {*SIDES} or len(self.read) + bool(self.sinks) < 2:  # noqa: PLR2004 - two to compare
            raise ConfigurationError(
                f"task {self.task_id}: read is {list(self.read)!r} and there are "
                f"{len(self.sinks)} sinks; give source and target, or one of them and a sink"
            )
