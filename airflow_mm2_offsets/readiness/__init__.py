"""Asks whether a failover can begin, and makes one report of the answers; it changes nothing.

``CheckFailoverOperator`` and the command ``check`` call ``check_readiness``. Each module holds the
checks of one family; ``run`` asks them at the same time.
"""

from airflow_mm2_offsets.readiness.request import ReadinessRequest
from airflow_mm2_offsets.readiness.run import check_readiness
from airflow_mm2_offsets.readiness.thresholds import Thresholds

__all__ = ["ReadinessRequest", "Thresholds", "check_readiness"]
