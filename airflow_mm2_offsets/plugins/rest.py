"""The REST API and the page inside Airflow's API server, under ``/mm2-offsets``."""

import asyncio
from importlib import import_module
from typing import TYPE_CHECKING

from airflow.providers.common.compat.sdk import AirflowPlugin, conf

from airflow_mm2_offsets.operators.links import PAGE_PATH, TAB

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

URL_PREFIX = "/mm2-offsets"


class LazyApp:
    """An app that is built at the first request.

    Every process of Airflow imports its plugins, and only the API server serves the app.
    """

    def __init__(self) -> None:
        """Build nothing yet."""
        self._app: ASGIApp | None = None
        self._making = asyncio.Lock()

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Answer a request."""
        async with self._making:
            if self._app is None:
                self._app = await asyncio.to_thread(_make)
        await self._app(scope, receive, send)


def _make() -> "ASGIApp":
    app: ASGIApp = import_module("airflow_mm2_offsets.plugins.app").make_app()
    return app


_APPS = [{"name": "MirrorMaker 2 offsets", "app": LazyApp(), "url_prefix": URL_PREFIX}]


# Without a slash before it, an address is under Airflow's own path, whatever that is.
_NAV_VIEW = {
    "name": "MirrorMaker 2",
    "href": f"{PAGE_PATH}/",
    "destination": "nav",
    "category": "browse",
    "url_route": "mm2-offsets",
}
_RUN_TAB = {
    "name": "Failover",
    "href": f"{PAGE_PATH}/run?dag_id={{DAG_ID}}&run_id={{RUN_ID}}",
    "destination": "dag_run",
    "url_route": TAB,
}
# Airflow shows a tab on the runs of every DAG or of none.
_VIEWS = [_NAV_VIEW]
if conf.getboolean("mm2_offsets", "run_tab", fallback=True):
    _VIEWS.append(_RUN_TAB)


class Mm2OffsetsPlugin(AirflowPlugin):
    """Declares the app, which Airflow mounts, and where Airflow's UI shows its page."""

    name = "mm2_offsets"
    fastapi_apps = _APPS
    external_views = _VIEWS
