"""Keeps every offset sync ever seen of one pair of clusters, on storage that outlives both.

Importing it loads neither pyarrow nor numpy: a DAG file may.

A name is imported on its first use: the command line answers ``--help`` without it.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from airflow_mm2_offsets.archive.store import SyncArchive
    from airflow_mm2_offsets.archive.values import (
        COMPACT_OVER,
        Header,
        PairIdentity,
        Run,
        TopicIncarnation,
    )

__all__ = ["COMPACT_OVER", "Header", "PairIdentity", "Run", "SyncArchive", "TopicIncarnation"]

_MODULES = {
    "COMPACT_OVER": "values",
    "Header": "values",
    "PairIdentity": "values",
    "Run": "values",
    "SyncArchive": "store",
    "TopicIncarnation": "values",
}

if not TYPE_CHECKING:  # mypy is to find a name that is not above

    def __getattr__(name: str) -> object:
        """Import the module of a name on its first use."""
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
        globals()[name] = value
        return value
