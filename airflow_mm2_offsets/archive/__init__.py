"""Keeps every offset sync ever seen of one pair of clusters, on storage that outlives both.

Importing it loads neither pyarrow nor numpy: a DAG file may.
"""

from airflow_mm2_offsets.archive.store import COMPACT_OVER, SyncArchive
from airflow_mm2_offsets.archive.values import Header, PairIdentity, Run, TopicIncarnation

__all__ = ["COMPACT_OVER", "Header", "PairIdentity", "Run", "SyncArchive", "TopicIncarnation"]
