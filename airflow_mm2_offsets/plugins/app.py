"""The app as Airflow serves it; importing it takes a second."""

from fastapi import FastAPI

from airflow_mm2_offsets.api.app import create_app
from airflow_mm2_offsets.plugins.auth import may_use_connection
from airflow_mm2_offsets.plugins.pairs import ConnectionPairs


def make_app() -> FastAPI:
    """Return the app: a pair for each connection, and Airflow's login before every route."""
    return create_app(ConnectionPairs(), auth=may_use_connection, anonymous_probes=False)
