"""Commits translated offsets for consumer groups, and a Spark job's positions as a group's.

Operators and the command line call ``sync_groups`` and ``publish_positions``. The rules are in
``core.group_rules``, Kafka's requests in ``kafka.groups`` and ``kafka.group_commits``.

A name is imported on its first use: the command line answers ``--help`` without it.
"""

from importlib import import_module
from typing import TYPE_CHECKING

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

    def __getattr__(name: str) -> object:
        """Import the module of a name on its first use."""
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
        globals()[name] = value
        return value
