"""Commits translated offsets for consumer groups, and a Spark job's positions as a group's.

Operators and the command line call ``sync_groups`` and ``publish_positions``. The rules are in
``core.group_rules``, Kafka's requests in ``kafka.groups`` and ``kafka.group_commits``.

A name is imported on its first use: the command line answers ``--help`` without it.
"""

from typing import TYPE_CHECKING

from airflow_mm2_offsets.core.lazy_exports import import_on_first_use

if TYPE_CHECKING:
    from airflow_mm2_offsets.groups.publish import publish_positions
    from airflow_mm2_offsets.groups.selection import GroupSelection, OffsetsFrom, parse_selection
    from airflow_mm2_offsets.groups.sync import sync_groups

__all__ = [
    "GroupSelection",
    "OffsetsFrom",
    "parse_selection",
    "publish_positions",
    "sync_groups",
]

_MODULES = {
    "GroupSelection": "selection",
    "OffsetsFrom": "selection",
    "parse_selection": "selection",
    "publish_positions": "publish",
    "sync_groups": "sync",
}

if not TYPE_CHECKING:  # mypy is to find a name that is not above
    __getattr__ = import_on_first_use(__name__, _MODULES)
