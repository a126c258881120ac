"""Delta tables: a write is skipped if the table has its ``txnVersion`` for its ``txnAppId``.

Delta's own sink does the same with the query's id and the batch (``DeltaSink.addBatch``). The log
is read by ``deltalake``, which knows what makes a checkpoint of it whole.
"""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from upath import UPath

from airflow_mm2_offsets.errors import CheckpointError, ConfigurationError
from airflow_mm2_offsets.locations import LOCAL
from airflow_mm2_offsets.spark.sinks.writer import SinkWriter
from airflow_mm2_offsets.storage import fetch_files, list_directory, read_text, storage_errors

LOG = "_delta_log"
_VERSION = re.compile(r"(\d{20})\..+")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\..+")
_STAGED = ("_staged_commits", "_commits")
"""Commits that a catalog may have accepted, and that are not published yet."""

LastVersion = Callable[[str], int | None]
"""Returns the newest ``txnVersion`` of an application."""


def find(output: UPath, writer: SinkWriter) -> Iterator[str]:
    """Yield what the job would lose, or why that is unknown."""
    if not list_directory(output / LOG, CheckpointError):
        return
    with _open(output) as table:
        yield from _compare(output, writer, _with_staged(output, table))


def _compare(output: UPath, writer: SinkWriter, last_version: LastVersion) -> Iterator[str]:
    for application in filter(None, (writer.query_id, writer.txn_app_id)):
        version = last_version(application)
        if version is not None and writer.loses(version):
            has = f"the Delta table has txnVersion {version} of txnAppId {application}"
            yield writer.problem(output, has=has, who="Delta", remedy="a txnAppId of its own")
    own = writer.query_id or writer.replaced_query_id
    if writer.txn_app_id is not None or (own is not None and last_version(own) is not None):
        return  # what Delta's own sink wrote has the query's id
    compared = "nothing could be compared"
    if own is not None:
        compared = f"compared was the query's id {own}, under which nothing was written"
    yield (
        f"{output}: a Delta table, and under which txnAppId the job writes to it is not known; "
        f"{compared}. A foreachBatch with a txnAppId would lose all batches up to its newest "
        f"txnVersion, in silence: give txn_app_id, empty if the job gives none"
    )


def _with_staged(output: UPath, table: Any) -> LastVersion:  # noqa: ANN401 - not typed here
    """Return a look-up in the table and in its unpublished commits, which may yet count."""
    staged = [
        action
        for folder in _STAGED
        for name in list_directory(output / LOG / folder, CheckpointError)
        if (match := _VERSION.fullmatch(name)) and int(match[1]) > table.version()
        for action in _transactions(output / LOG / folder / name)
    ]

    def last_version(application: str) -> int | None:
        versions = [txn["version"] for txn in staged if txn["appId"] == application]
        published = table.transaction_version(application)
        return max([*versions, *([] if published is None else [published])], default=None)

    return last_version


def _transactions(path: UPath) -> list[dict[str, Any]]:
    with storage_errors(path, CheckpointError):
        text = read_text(path, CheckpointError) or ""
        actions = [json.loads(line) for line in text.splitlines() if line]
        return [action["txn"] for action in actions if action.get("txn")]


@contextmanager
def _open(output: UPath) -> Iterator[Any]:
    """Yield the table as ``deltalake`` has it."""
    try:
        deltalake = import_module("deltalake")  # slow, and DAG files import this module
    except ImportError as error:
        raise ConfigurationError(
            f"{output} is a Delta table, which is read with deltalake alone ({error}); pip "
            f"install 'airflow-mm2-offsets[delta]'"
        ) from error
    if output.protocol in LOCAL:
        with storage_errors(output, CheckpointError):
            table = deltalake.DeltaTable(output.path)
        yield table
        return
    with TemporaryDirectory(prefix="delta-log-") as folder:
        yield _fetched(output, Path(folder), deltalake)


def _fetched(output: UPath, folder: Path, deltalake: Any) -> Any:  # noqa: ANN401 - not typed here
    """Return the table with a copy of its log, for credentials are fsspec's.

    Of the log's checkpoints the newest will do unless it is not whole: then one more is tried.
    """
    log = output / LOG
    names = {
        name: match[1]
        for name in list_directory(log, CheckpointError)
        if (match := _VERSION.fullmatch(name))
    }
    beginnings = sorted({names[name] for name in names if _CHECKPOINT.fullmatch(name)})
    sidecars = [f"_sidecars/{name}" for name in list_directory(log / "_sidecars", CheckpointError)]
    for first in ["", *beginnings][::-1]:
        needed = [name for name, version in names.items() if version >= first]
        fetch_files(log, folder / LOG, [*needed, *sidecars], CheckpointError)
        try:
            return deltalake.DeltaTable(str(folder))
        except deltalake.exceptions.DeltaError as error:
            failure = error
    with storage_errors(output, CheckpointError):
        raise failure
