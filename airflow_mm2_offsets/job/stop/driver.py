"""Describes a driver and its queries for ``driver.json``; the heartbeat calls it."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]

from airflow_mm2_offsets.job.liveness import start_of
from airflow_mm2_offsets.job.stop.fences import SCHEMA_VERSION
from airflow_mm2_offsets.job.stop.query import checkpoint_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


def describe_driver(spark: SparkSession) -> dict[str, Any]:
    """Return the driver's application, host and processes."""
    jvm: Any = spark._jvm  # noqa: SLF001
    runtime = jvm.java.lang.management.ManagementFactory.getRuntimeMXBean()
    pids = (os.getpid(), int(runtime.getName().partition("@")[0]))
    started = {str(pid): _started(pid) for pid in pids}
    return {
        "schema_version": SCHEMA_VERSION,
        "application_id": spark.sparkContext.applicationId,
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "processes": {pid: start for pid, start in started.items() if start is not None},
        "kubernetes_driver": _kubernetes_driver(spark),
    }


def describe_queries(queries: Sequence[StreamingQuery]) -> dict[str, Any]:
    """Return a driver's queries, and what they read."""
    described, servers = [], set()
    for query in queries:
        patterns = set()
        for options in _kafka_options(query):
            lists = (options.get("kafka.bootstrap.servers") or "").split(",")
            servers |= {server.strip() for server in lists if server}
            patterns |= {options.get("subscribePattern")} - {None, ""}
        described.append(
            {
                "query_id": str(query.id),
                "run_id": str(query.runId),
                "checkpoint": checkpoint_of(query),
                "subscribe_patterns": sorted(patterns),
            }
        )
    first = {name: described[0][name] for name in ("query_id", "run_id")}
    return {**first, "queries": described, "bootstrap_servers": sorted(servers)}


def _started(pid: int) -> int | None:
    """Return when a process was started; None if unknown."""
    try:
        return start_of(pid)
    except OSError:  # such as /proc mounted with hidepid; the job must run on
        return None


def _kubernetes_driver(spark: SparkSession) -> str | None:
    """Return the driver's ``namespace:pod``; None in client mode, where the pod is another's."""
    conf = spark.sparkContext.getConf()
    pod = conf.get("spark.kubernetes.driver.pod.name")
    if pod is None or conf.get("spark.submit.deployMode") != "cluster":
        return None
    return f"{conf.get('spark.kubernetes.namespace', 'default')}:{pod}"


def _kafka_options(query: StreamingQuery) -> list[Any]:
    """Return the options of the query's sources; none where this Spark keeps them otherwise."""
    try:
        leaves = query._jsq.streamingQuery().analyzedPlan().collectLeaves()  # noqa: SLF001
        return [
            leaf.extraOptions()  # a map that takes names in any case
            for leaf in map(leaves.apply, range(leaves.size()))
            if leaf.getClass().getSimpleName() == "StreamingRelationV2"
        ]
    except Py4JError:
        return []
