"""The app inside Airflow: the REST API, and the page under ``/page``.

Its import takes a second, so ``rest`` imports it late.
"""

from fastapi import FastAPI

from airflow_mm2_offsets.api.app import create_app
from airflow_mm2_offsets.plugins.auth import may_use_connection
from airflow_mm2_offsets.plugins.page.app import make_page
from airflow_mm2_offsets.plugins.pairs import ConnectionPairs


def make_app() -> FastAPI:
    """Return the app: a pair for each connection; every route needs Airflow's login."""
    pairs = ConnectionPairs()
    app = create_app(pairs, auth=may_use_connection, anonymous_probes=False)
    app.mount("/page", make_page(pairs))
    return app
