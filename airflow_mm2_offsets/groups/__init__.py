"""Commits translated offsets for consumer groups, and a Spark job's positions as a group's.

Operators and the command line call ``sync_groups`` and ``publish_positions``. The rules are in
``core.group_rules``, Kafka's requests in ``kafka.groups`` and ``kafka.group_commits``.
"""

from airflow_mm2_offsets.groups.publish import publish_positions
from airflow_mm2_offsets.groups.selection import GroupSelection, parse_selection
from airflow_mm2_offsets.groups.sync import OffsetsFrom, sync_groups

__all__ = [
    "GroupSelection",
    "OffsetsFrom",
    "parse_selection",
    "publish_positions",
    "sync_groups",
]
