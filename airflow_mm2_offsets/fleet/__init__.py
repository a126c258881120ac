"""Moves many jobs in one run: the manifest that lists them, their order, one preview, one report.

``operators.fleet`` and ``task_groups.fleet`` carry it out; here is nothing of Airflow.
"""
