"""The step that compares both clusters and the sinks, after a failover or for any time range."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.providers.common.compat.sdk import AirflowSkipException, Context

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.core import FailoverPlan
from airflow_mm2_offsets.core.summary import fold
from airflow_mm2_offsets.core.times import parse_zoned
from airflow_mm2_offsets.errors import (
    ConfigurationError,
    PlanError,
    ReconciliationError,
    did_you_mean,
)
from airflow_mm2_offsets.hooks.mm2 import Mm2OffsetHook
from airflow_mm2_offsets.hooks.storage import storage_path
from airflow_mm2_offsets.job import py_files
from airflow_mm2_offsets.kafka.client_properties import TOKEN_URL, format_properties, to_java
from airflow_mm2_offsets.kafka.cluster import KafkaCluster
from airflow_mm2_offsets.moves.journal import Event
from airflow_mm2_offsets.moves.overview import moves_in
from airflow_mm2_offsets.operators.failing import fails_at_once
from airflow_mm2_offsets.operators.links import page_links
from airflow_mm2_offsets.operators.moving import (
    MoveArgument,
    mirror_of,
    mover_of,
    skip_in_dry_run,
    to_template,
)
from airflow_mm2_offsets.operators.plan_settings import read_named_plan
from airflow_mm2_offsets.operators.reconcile_partitions import SIDES, find_partitions
from airflow_mm2_offsets.operators.settings import check_location, given, is_true, whole_number
from airflow_mm2_offsets.operators.spark_conf import is_cluster_mode, with_allowed_url
from airflow_mm2_offsets.planning.stored_plan import whole_plan
from airflow_mm2_offsets.reconcile import read_report
from airflow_mm2_offsets.reconcile.request import JOB_FILE, Request, make_request


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What is compared; see ``ReconcileOperator``."""

    read: Sequence[str] = SIDES
    committed: str | None = None
    records_before: int = 10_000
    ranges: Mapping[str, Any] | None = None
    topics: Sequence[str] | None = None
    start_time: str | None = None
    end_time: str | None = None


class ReconcileOperator(SparkSubmitOperator):
    """Compares the records of the source, of the target and of sinks, in a Spark job.

    Give ``move``, ``plan``, or a ``scope`` of ``ranges`` or ``topics``. It takes all arguments of
    ``SparkSubmitOperator``, too (``conn_id``, ``conf``, ``deploy_mode``...). In cluster mode a
    cleared task submits again only with ``durable=False``. docs/reconcile.md has the definitions.

    Args:
        move: Compare what a move has moved: its journal says which records, and which outputs.
        report: A folder for this run alone that Spark and Airflow both reach. The job writes
            ``report.json`` there, and ``differences``, a Parquet of every difference.
        mm2_conn_id: Id of a connection of type ``mm2``.
        plan: A plan (``TranslateOffsetsOperator``), as a dict or as JSON: the region around its
            switch is compared, and as many duplicates are allowed as it announced.
        scope: What is compared, as a mapping of some of

            - ``read``: which clusters are read: ``source``, ``target`` or both (default); one
              needs ``sinks``;
            - ``committed``: with a plan, where the target job stands (``SparkStartedSensor``), as
              Spark's JSON text, if it still runs;
            - ``records_before``: with a plan, how many offsets to look back before the source
              positions (10,000 by default);
            - ``ranges``: for ``source`` and ``target``, topic to partition to the first offset and
              the end;
            - ``topics``: names of the source's topics, all of whose partitions are compared;
            - ``start_time``, ``end_time``: from this time on, and until before that one, as ISO
              8601 with a zone; by the records' timestamps.
        sinks: For each sink a dict of ``path`` and, where they differ, ``cluster``, ``format``,
            ``where`` and ``columns``; see ``reconcile.request``.
        kafka: SQL expressions of ``key``, ``value`` and ``headers`` of a Kafka record, where the
            sink does not keep them as they are.
        max_duplicates: Without a plan: how many duplicates are allowed.
        examples: How many differences of each kind the report shows.
        to: See ``TranslateOffsetsOperator``.
        properties: For ``source`` and ``target`` a file of Kafka's Java client properties where the
            driver runs; without one they are made of the connection.
        show_keys: Whether the XCom shows the keys of example records; the report's folder has them
            in any case.

    Returns:
        The report. Beside it the XComs ``summary`` (one paragraph) and ``table`` (a list of lines).

    Raises:
        ReconciliationError: They differ by more than was announced; partitions and counts are
            named, and the report is pushed. Or the job could not compare.
    """

    operator_extra_links = page_links("run")
    template_fields: Sequence[str] = (
        *SparkSubmitOperator.template_fields,
        *("move", "report", "mm2_conn_id", "plan", "scope", "sinks", "kafka", "properties"),
        *("to", "show_keys"),
    )

    def __init__(
        self,
        *,
        move: MoveArgument | None = None,
        report: str = "",
        mm2_conn_id: str = Mm2OffsetHook.default_conn_name,
        plan: Mapping[str, Any] | str | None = None,
        scope: Mapping[str, Any] | None = None,
        sinks: Sequence[Mapping[str, Any]] = (),
        kafka: Mapping[str, str | None] | None = None,
        max_duplicates: int = 0,
        examples: int = 10,
        to: str | None = None,
        properties: Mapping[str, str] | None = None,
        show_keys: bool | str = False,
        **kwargs: Any,
    ) -> None:
        """Keep the settings."""
        super().__init__(**{"application": JOB_FILE, "name": "mm2-reconcile", **kwargs})
        self.move = to_template(move)
        self.report = report
        self.mm2_conn_id = mm2_conn_id
        self.plan = plan
        self.scope = scope
        self.sinks = sinks
        self.kafka = kafka
        self.max_duplicates = max_duplicates
        self.examples = examples
        self.to = to
        self.properties = properties
        self.show_keys = show_keys

    @fails_at_once()
    def execute(self, context: Context) -> dict[str, Any]:  # type: ignore[override] # it has a result
        """Let Spark compare; fail if the report has more differences than were announced."""
        if self.move is not None:
            self._take(context)
        scope = self.parse_settings()
        plan = self._parse_plan()
        pair = Mm2OffsetHook(self.mm2_conn_id, to=given(self.to)).get_conn()
        with self._job_arguments(pair, self._request(pair, plan, scope), scope.read):
            self._submit(context)
        max_duplicates = plan.max_reread if plan else self.max_duplicates
        report = read_report(storage_path(self.report), max_duplicates)
        summary = report.summary()
        self.log.info("%s", summary)
        push = context["ti"].xcom_push
        push("summary", fold(summary))
        push("table", summary.splitlines())
        result = report.to_json(with_keys=is_true(self, "show_keys"))
        push("return_value", result)
        report.check()
        return result

    def _take(self, context: Context) -> None:
        """Take what is to be compared from a move's journal."""
        skip_in_dry_run(self, context, "compare both clusters and the outputs")
        move = mover_of(self, context).find()
        if not move.number:
            arrived_moves = [
                each for each in moves_in(move.job, move.entries) if each.has_begun_there
            ]
            move = arrived_moves[-1] if arrived_moves else move
        arrived = move.facts(Event.ARRIVE)
        if move.there is None or not arrived:
            raise AirflowSkipException(f"job {move.job.name} has not arrived: nothing is compared")
        if move.policy.source_may_be_lost:
            raise AirflowSkipException("the source may be lost: nothing is compared")
        self.mm2_conn_id, self.to = mirror_of(move), move.there.cluster
        self.plan = read_named_plan(str(move.noted("plan"))).to_json()
        self.scope = {"committed": arrived["positions"], **(self.scope or {})}
        self.sinks = self.sinks or [
            {"cluster": "source", "path": move.here.spark_sink},
            {"cluster": "target", "path": move.there.spark_sink},
        ]
        self.report = self.report or f"{move.there.folder}/verified"

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
    def _job_arguments(
        self, pair: ClusterPair, request: Request, read: Sequence[str]
    ) -> Iterator[None]:
        """Give the job its arguments and files; logins are in files, for arguments are public."""
        users_files, users_conf = self.files, self.conf
        with TemporaryDirectory(prefix="mm2-reconcile-") as folder:
            file = Path(folder, "mm2-reconcile-request.json")
            file.write_text(json.dumps(request, indent=1))
            files, arguments = [file], ["--report", self.report, "--request", str(file)]
            for side in read:
                path: Path | str | None = (self.properties or {}).get(side)
                if not path:
                    path = self._write_properties(getattr(pair, side), side, folder)
                    files.append(path)
                arguments += [f"--{side}-properties", str(path)]
            # A driver on this machine reads the logins here: no executor keeps a copy.
            sent = files if is_cluster_mode(self) else [file]
            self.files = ",".join(filter(None, [users_files, *map(str, sent)]))
            self.application_args = arguments
            yield
            self.files, self.conf = users_files, users_conf

    def _write_properties(self, cluster: KafkaCluster, side: str, folder: str) -> Path:
        properties = to_java(cluster.name, cluster.config)
        if url := properties.get(TOKEN_URL):
            self.conf = with_allowed_url(self.conf or {}, url)
        path = Path(folder, f"mm2-reconcile-{side}.properties")
        path.write_text(format_properties(properties))
        return path

    def _request(self, pair: ClusterPair, plan: FailoverPlan | None, scope: Scope) -> Request:
        return make_request(
            find_partitions(
                pair,
                read=scope.read,
                plan=plan,
                committed=scope.committed,
                records_before=scope.records_before,
                ranges=scope.ranges,
                topics=scope.topics or (),
            ),
            self.sinks,
            kafka=self.kafka,
            time=self._time_range(scope),
            examples=self.examples,
        )

    def _parse_plan(self) -> FailoverPlan | None:
        if self.plan is None:
            return None
        try:
            values = json.loads(self.plan) if isinstance(self.plan, str) else self.plan
            return FailoverPlan.from_json(whole_plan(values, storage_path))
        except PlanError:
            raise
        except (ValueError, KeyError, TypeError) as error:
            raise ConfigurationError(
                f"task {self.task_id}: this release can't read plan: {error!r}"
            ) from error

    def parse_settings(self) -> Scope:
        """Return what is compared.

        Raises:
            ConfigurationError: A key of ``scope`` or ``properties`` is unknown; a time, a number or
                a sink is invalid; or there is nothing to compare, or too much.
        """
        for field in ("max_duplicates", "examples"):
            whole_number(self, field)
        check_location(self, "report")
        for name, known in (
            ("properties", SIDES),
            ("scope", [each.name for each in fields(Scope)]),
        ):
            for key in getattr(self, name) or {}:
                if key not in known:
                    hint = did_you_mean(str(key), known, otherwise=f"give {', '.join(known)}")
                    raise ConfigurationError(f"task {self.task_id}: {name} has {key!r}; {hint}")
        scope = Scope(**(self.scope or {}))
        if not isinstance(scope.records_before, int) or scope.records_before < 0:
            raise ConfigurationError(
                f"task {self.task_id}: records_before is {scope.records_before!r}; give a whole "
                f"number, from 0"
            )
        self._time_range(scope)
        self._check_scope(scope)
        try:
            make_request([], self.sinks)
        except ConfigurationError as error:
            raise ConfigurationError(
                f"task {self.task_id}: sinks is {self.sinks!r}: {error}"
            ) from error
        return scope

    def _time_range(self, scope: Scope) -> tuple[int, int] | None:
        if not scope.start_time and not scope.end_time:
            return None
        times = []
        for text in (scope.start_time, scope.end_time):
            time = parse_zoned(text or "")
            if time is None:
                raise ConfigurationError(
                    f"task {self.task_id}: start_time is {scope.start_time!r}, and end_time is "
                    f"{scope.end_time!r}; give both times with their zone, such as "
                    f"2026-11-21T09:10:00+00:00"
                )
            times.append(round(time.timestamp() * 1000))
        return times[0], times[1]

    def _check_scope(self, scope: Scope) -> None:
        given = {"plan": self.plan, "ranges": scope.ranges, "topics": scope.topics}
        scopes = [name for name, value in given.items() if value is not None]
        if len(scopes) != 1:
            raise ConfigurationError(
                f"task {self.task_id}: give one of plan, ranges and topics; given: "
                f"{', '.join(scopes) or 'none'}"
            )
        is_known = bool(scope.read) and {*scope.read} <= {*SIDES}
        if not is_known or (len(scope.read) == 1 and not self.sinks):
            raise ConfigurationError(
                f"task {self.task_id}: read is {list(scope.read)!r} and there are "
                f"{len(self.sinks)} sinks; give source and target, or one of them and a sink"
            )
