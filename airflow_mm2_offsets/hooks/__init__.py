"""Airflow's connections, as pairs of clusters and as storage."""
