"""Asks whether a failover can begin, and makes one report of the answers; it changes nothing.

``CheckFailoverOperator`` and the command ``check`` call ``check_readiness``. Each module holds the
checks of one family; ``run`` asks them at the same time.

A name is imported on its first use: the command line answers ``--help`` without it.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from airflow_mm2_offsets.readiness.request import ReadinessRequest
    from airflow_mm2_offsets.readiness.run import check_readiness
    from airflow_mm2_offsets.readiness.thresholds import Thresholds

__all__ = ["ReadinessRequest", "Thresholds", "check_readiness"]

_MODULES = {
    "ReadinessRequest": "request",
    "Thresholds": "thresholds",
    "check_readiness": "run",
}

if not TYPE_CHECKING:  # mypy is to find a name that is not above

    def __getattr__(name: str) -> object:
        """Import the module of a name on its first use."""
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
        globals()[name] = value
        return value
