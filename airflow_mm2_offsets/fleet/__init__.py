"""Moves many jobs of the file of jobs in one run: which, in what order, and at what cost.

``operators.fleet`` and ``task_groups.fleet`` carry it out; here is nothing of Airflow. What a run
has done is in the jobs' journals, and nowhere else.
"""
