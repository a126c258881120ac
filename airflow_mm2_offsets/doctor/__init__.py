"""Says what is wrong or dangerous in the set-up of a MirrorMaker 2, before a failover needs it.

The command ``doctor`` calls ``diagnose``. Each ``*_rules`` module holds a table of rules over one
kind of thing: a connector's settings, a flow and its reverse, the login of a cluster, the pair of
clusters. Only ``live_rules`` asks a cluster; nothing is changed.
"""

from airflow_mm2_offsets.doctor.diagnose import DoctorRequest, diagnose
from airflow_mm2_offsets.doctor.diagnosis import Diagnosis
from airflow_mm2_offsets.doctor.finding import Finding, Severity

__all__ = ["Diagnosis", "DoctorRequest", "Finding", "Severity", "diagnose"]
