"""Asks whether a failover can begin, and makes one report of the answers; it changes nothing.

``CheckFailoverOperator`` and the command ``check`` call ``check_readiness``. Each module holds the
checks of one family; ``run`` asks them at the same time.

A name is imported on its first use: the command line answers ``--help`` without it.
"""

from typing import TYPE_CHECKING

from airflow_mm2_offsets.core.lazy_exports import import_on_first_use

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
    __getattr__ = import_on_first_use(__name__, _MODULES)
