"""Wire formats, index, translation and plan: bytes and numbers in, values out, no I/O.

A name is imported on its first use: the command line answers ``--help`` without it.
"""

from typing import TYPE_CHECKING

from airflow_mm2_offsets.core.lazy_exports import import_on_first_use

if TYPE_CHECKING:
    from airflow_mm2_offsets.core.evidence import (
        Evidence,
        Extras,
        SourceWindow,
        TargetWindow,
        Watermarks,
    )
    from airflow_mm2_offsets.core.index import SyncIndex
    from airflow_mm2_offsets.core.naming import Direction, Naming, ReplicationPolicy, SyncsLocation
    from airflow_mm2_offsets.core.offset_mapping import OffsetMapping
    from airflow_mm2_offsets.core.partition_plan import (
        Fallback,
        OnUnmapped,
        PartitionPlan,
        plan_partitions,
    )
    from airflow_mm2_offsets.core.plan import FailoverPlan, Verdict
    from airflow_mm2_offsets.core.positions import Positions, TopicPartition, check_positions
    from airflow_mm2_offsets.core.result import Basis, Status, Strategy, Translation
    from airflow_mm2_offsets.core.summary import summarize
    from airflow_mm2_offsets.core.wire import OffsetSync, decode_offset_sync, encode_offset_sync

__all__ = [
    "Basis",
    "Direction",
    "Evidence",
    "Extras",
    "FailoverPlan",
    "Fallback",
    "Naming",
    "OffsetMapping",
    "OffsetSync",
    "OnUnmapped",
    "PartitionPlan",
    "Positions",
    "ReplicationPolicy",
    "SourceWindow",
    "Status",
    "Strategy",
    "SyncIndex",
    "SyncsLocation",
    "TargetWindow",
    "TopicPartition",
    "Translation",
    "Verdict",
    "Watermarks",
    "check_positions",
    "decode_offset_sync",
    "encode_offset_sync",
    "plan_partitions",
    "summarize",
]

_MODULES = {
    "Basis": "result",
    "Direction": "naming",
    "Evidence": "evidence",
    "Extras": "evidence",
    "FailoverPlan": "plan",
    "Fallback": "partition_plan",
    "Naming": "naming",
    "OffsetMapping": "offset_mapping",
    "OffsetSync": "wire",
    "OnUnmapped": "partition_plan",
    "PartitionPlan": "partition_plan",
    "Positions": "positions",
    "ReplicationPolicy": "naming",
    "SourceWindow": "evidence",
    "Status": "result",
    "Strategy": "result",
    "SyncIndex": "index",
    "SyncsLocation": "naming",
    "TargetWindow": "evidence",
    "TopicPartition": "positions",
    "Translation": "result",
    "Verdict": "plan",
    "Watermarks": "evidence",
    "check_positions": "positions",
    "decode_offset_sync": "wire",
    "encode_offset_sync": "wire",
    "plan_partitions": "partition_plan",
    "summarize": "summary",
}

if not TYPE_CHECKING:  # mypy is to find a name that is not above
    __getattr__ = import_on_first_use(__name__, _MODULES)
