"""Makes the request that the Spark job of a reconciliation reads; ``ReconcileOperator`` calls it.

``job/reconcile/main.py`` describes the request.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from airflow_mm2_offsets.errors import ConfigurationError
from airflow_mm2_offsets.reconcile.ranges import Partitions

Request: TypeAlias = dict[str, Any]

SCHEMA_VERSION = 1
COLUMNS: Mapping[str, str | None] = {
    "key": "key",
    "value": "value",
    "headers": None,
    "topic": "topic",
    "partition": "partition",
    "offset": "offset",
    "timestamp": None,
    "arrival": None,
}
"""The default names of a sink's columns; None: the sink has no such column."""
LINEAGE = ("topic", "partition", "offset")
SINK_FIELDS = frozenset({"cluster", "path", "format", "where", "columns"})

JOB_FILE = str(Path(__file__).parents[1] / "job" / "reconcile" / "main.py")
"""The Spark job; it needs the zip of ``job.py_files`` by ``--py-files``."""


def make_request(
    partitions: Partitions,
    sinks: Iterable[Mapping[str, Any]] = (),
    *,
    kafka: Mapping[str, str | None] | None = None,
    time: tuple[int, int] | None = None,
    examples: int = 10,
) -> Request:
    """Return a request.

    Args:
        partitions: The result of a function of ``reconcile.ranges``.
        sinks: For each sink ``path`` and, if not the default, ``cluster`` (``source`` or
            ``target``: whose offsets its lineage columns hold), ``format``, ``where`` and
            ``columns``.
        kafka: SQL expressions of the parts of a Kafka record to compare; by default, key, value
            and headers, if all sinks have a column for them.
        time: From the first to before the second, in milliseconds since 1970; None: any time.
        examples: How many differences of each kind the report shows.

    Raises:
        ConfigurationError: A sink has an unknown field, or only some sinks have lineage.
    """
    checked = [_sink(sink) for sink in sinks]
    _check_lineage(checked)
    compared = [
        name
        for name in ("key", "value", "headers")
        if all(sink["columns"][name] for sink in checked)
    ]
    return {
        "schema_version": SCHEMA_VERSION,
        "partitions": partitions,
        "time": time,
        "kafka": dict(kafka) if kafka else {name: name for name in compared},
        "sinks": [sink | {"columns": _without(sink["columns"], compared)} for sink in checked],
        "examples": examples,
    }


def _sink(settings: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(settings, Mapping):
        raise ConfigurationError(f"a sink is a dict that has a path; got {settings!r}")
    columns, cluster = settings.get("columns") or {}, settings.get("cluster", "source")
    is_known = settings.keys() <= SINK_FIELDS and columns.keys() <= COLUMNS.keys()
    if not is_known or not settings.get("path") or cluster not in {"source", "target"}:
        raise ConfigurationError(
            f"a sink has a path, and may have a cluster (source or target), a format, where, and "
            f"columns ({', '.join(COLUMNS)}); got {dict(settings)!r}"
        )
    return {
        "cluster": cluster,
        "path": settings["path"],
        "format": settings.get("format", "parquet"),
        "where": settings.get("where"),
        "columns": {**COLUMNS, **columns},
    }


def _check_lineage(sinks: Sequence[Mapping[str, Any]]) -> None:
    for sink in sinks:
        has = {name for name in LINEAGE if sink["columns"][name]}
        if has and has != set(LINEAGE):
            raise ConfigurationError(
                f"{sink['path']}: lineage is topic, partition and offset; it has only "
                f"{', '.join(sorted(has))}: name all three columns, or set each to null"
            )
    if len({bool(sink["columns"]["offset"]) for sink in sinks}) > 1:
        raise ConfigurationError(
            "some sinks have lineage columns and others have not; reconcile them one by one"
        )


def _without(columns: Mapping[str, str | None], compared: Iterable[str]) -> dict[str, str | None]:
    kept = {*COLUMNS} - {"key", "value", "headers"} | {*compared}
    return {name: column if name in kept else None for name, column in columns.items()}
