"""Keeps every offset sync ever seen of one pair of clusters, on storage that outlives both.

Importing it loads neither pyarrow nor numpy: a DAG file may.

A name is imported on its first use: the command line answers ``--help`` without it.
"""

from typing import TYPE_CHECKING

from airflow_mm2_offsets.core.lazy_exports import import_on_first_use

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
    __getattr__ = import_on_first_use(__name__, _MODULES)
