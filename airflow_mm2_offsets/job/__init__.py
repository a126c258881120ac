"""What runs inside a user's Spark job; the job imports all of it from here.

It needs PySpark and Python 3.9, and comes with the package, or as the zip of ``py_files``. Only
``segments`` calls core, and needs Python 3.11. PySpark is imported on first use, so that a DAG file
may call ``py_files``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from airflow_mm2_offsets.job.packing import py_files

if TYPE_CHECKING:
    from airflow_mm2_offsets.job.client_properties import kafka_options
    from airflow_mm2_offsets.job.stop.control import AnotherDriverError, JobMovedError, StopControl
    from airflow_mm2_offsets.job.translation.columns import decode_syncs, segments, translate

__all__ = [
    "AnotherDriverError",
    "JobMovedError",
    "StopControl",
    "decode_syncs",
    "kafka_options",
    "py_files",
    "segments",
    "translate",
]

_MODULES = {
    **dict.fromkeys(("AnotherDriverError", "JobMovedError", "StopControl"), "stop.control"),
    "kafka_options": "client_properties",
}


def __getattr__(name: str) -> object:
    """Import what needs PySpark."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = _MODULES.get(name, "translation.columns")
    return getattr(import_module(f"{__name__}.{module}"), name)
