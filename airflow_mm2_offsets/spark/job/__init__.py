"""What runs inside a user's Spark job: neither Airflow nor a Kafka client is needed there."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .mm2_stop_control import AnotherDriverError as AnotherDriverError
    from .mm2_stop_control import JobMovedError as JobMovedError
    from .mm2_stop_control import StopControl as StopControl

from airflow_mm2_offsets.spark.job.core_zip import core_zip

_FILES = (
    "mm2_stop_control.py",
    "mm2_stop_decision.py",
    "mm2_stop_gate.py",
    "mm2_stop_heartbeat.py",
    "mm2_stop_jvm.py",
    "mm2_stop_lease.py",
    "mm2_stop_note.py",
    "mm2_stop_query.py",
    "mm2_stop_requests.py",
    "mm2_stop_stream.py",
    "mm2_stop_streams.py",
    "mm2_offsets_sql.py",
    "mm2_offsets_decode.py",
    "mm2_offsets_logs.py",
    "mm2_offsets_lookup.py",
    "mm2_offsets_tables.py",
)


def py_files() -> str:
    """Return the files to give to ``spark-submit --py-files``, with a comma between them.

    The job then says ``from mm2_stop_control import StopControl``, or ``from mm2_offsets_sql import
    translate``. Where this package is installed on the driver, no file is needed:
    ``from airflow_mm2_offsets.spark.job import StopControl``.
    """
    files = [Path(__file__).with_name(name) for name in _FILES]
    return ",".join(map(str, [*files, core_zip()]))


def __getattr__(name: str) -> object:
    """Import PySpark when the stop control is asked for, not for ``py_files``."""
    if name in {"AnotherDriverError", "JobMovedError", "StopControl"}:
        return getattr(import_module(f"{__name__}.mm2_stop_control"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
