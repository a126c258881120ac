"""Finds out where a sink would drop, in silence, what a job with a fresh checkpoint writes.

Such a job begins again at batch 0. Sinks that write each batch once remember the numbers they
have: ``FileStreamSink.addBatch`` by ``_spark_metadata``, Delta tables by the transaction
(``txnAppId``, ``txnVersion``) that a ``foreachBatch`` gives. Delta's own streaming sink goes by the
query's id, which a fresh checkpoint makes anew.
"""

import json
import re
from collections.abc import Iterable, Iterator
from importlib import import_module
from io import BytesIO
from typing import Any
from uuid import UUID

from upath import UPath

from airflow_mm2_offsets.errors import CheckpointError, ConfigurationError
from airflow_mm2_offsets.storage import list_directory, open_location, read_bytes, read_text

_BATCH = re.compile(r"(\d+)(\.compact)?")
_COMMIT = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint(\..+)?\.(parquet|json)")
"""Of the table's log: whole, in parts, or (v2) with an id of its own, whose file may be JSON."""
_STEP = (
    "migrate the checkpoint (MigrateSparkCheckpointOperator), which goes on counting, or give the "
    "job on the target"
)


def find_sink_problems(output: UPath) -> list[str]:
    """Return what a job with a fresh checkpoint would lose in a sink, each as one sentence.

    Args:
        output: Where the job on the target is to write: a folder of files, or a Delta table.

    Raises:
        CheckpointError: The storage can't be read.
        ConfigurationError: It is a Delta table with a checkpoint, and pyarrow is not installed.
    """
    open_location(output, CheckpointError)
    return [*_file_sink(output), *_delta(output)]


def _file_sink(output: UPath) -> Iterator[str]:
    log = list_directory(output / "_spark_metadata", CheckpointError)
    batches = [int(found[1]) for name in log if (found := _BATCH.fullmatch(name))]
    if batches:
        yield (
            f"{output}: its _spark_metadata has batches up to {max(batches)}; a job with a fresh "
            f"checkpoint begins at 0, and Spark would drop all up to that one in silence: {_STEP} "
            f"an output of its own"
        )


def _delta(output: UPath) -> Iterator[str]:
    for application, version in sorted(_transactions(output / "_delta_log").items()):
        if not _is_query_id(application):
            yield (
                f"{output}: the Delta table has txnVersion {version} of txnAppId {application}; if "
                f"it's this job that writes it, a fresh checkpoint begins at batch 0, and Delta "
                f"would drop all up to that one in silence: {_STEP} a txnAppId of its own"
            )


def _transactions(log: UPath) -> dict[str, int]:
    """Return the newest version of each application that wrote to a Delta table."""
    names = list_directory(log, CheckpointError)
    checkpoint = max(
        (found[1] for name in names if (found := _CHECKPOINT.fullmatch(name))), default=""
    )
    newest: dict[str, int] = {}
    for name in sorted(names):
        if (found := _CHECKPOINT.fullmatch(name)) and found[1] == checkpoint:
            actions = (_checkpointed if found[3] == "parquet" else _committed)(log / name)
        elif (found := _COMMIT.fullmatch(name)) and found[1] > checkpoint:
            actions = _committed(log / name)
        else:
            continue
        for action in actions:
            application, version = action["appId"], int(action["version"])
            newest[application] = max(version, newest.get(application, version))
    return newest


def _committed(path: UPath) -> Iterable[dict[str, Any]]:
    text = read_text(path, CheckpointError) or ""
    actions = [json.loads(line) for line in text.splitlines() if line]
    return [action["txn"] for action in actions if action.get("txn")]


def _checkpointed(path: UPath) -> Iterable[dict[str, Any]]:
    try:
        parquet = import_module("pyarrow.parquet")  # slow, and DAG files import this module
    except ImportError as error:
        raise ConfigurationError(
            f"{path} can be read with pyarrow alone ({error}); install airflow-mm2-offsets[archive]"
        ) from error
    data = read_bytes(path, CheckpointError) or b""
    column = parquet.read_table(BytesIO(data), columns=["txn"]).column("txn")
    return [txn for txn in column.to_pylist() if txn and txn["appId"]]


def _is_query_id(application: str) -> bool:
    try:
        UUID(application)
    except ValueError:
        return False
    return True
