"""The extra links of a task: they open the page in Airflow where a person reads what it did.

Airflow keeps a link as an XCom when a task ends. The page finds the newest tasks of a connection by
these, so that a link also names connection and mode.
"""

from typing import Any
from urllib.parse import urlencode, urlsplit

from airflow.providers.common.compat.sdk import BaseOperator, BaseOperatorLink, conf

from airflow_mm2_offsets.core.mode import FailoverMode

PAGE_PATH = "/mm2-offsets/page"
"""Where the plugin mounts the page; see ``plugins.rest``."""
KEY_PREFIX = "mm2_offsets_link_"
"""A link's XCom has this before its page's name as its key."""


class PageLink(BaseOperatorLink):
    """Links a task to a page."""

    def __init__(self, page: str = "run") -> None:
        """Choose the page.

        Args:
            page: ``plan``, ``readiness``, ``connection``, ``run`` (the timeline of the DAG run) or
                ``report`` (the same, for the task that knows how the run ended).
        """
        super().__init__()
        self.page = page

    @property
    def name(self) -> str:
        """The text of the button."""
        return _NAMES[self.page]

    @property
    def xcom_key(self) -> str:
        """The key of the XCom that keeps the link."""
        return f"{KEY_PREFIX}{self.page}"

    def get_link(self, operator: Any, *, ti_key: Any) -> str:  # noqa: ANN401 - Airflow's classes move
        """Return the address of the page, without a host.

        Args:
            operator: The task, rendered.
            ti_key: Which DAG run, task and map index it is.
        """
        query = {
            "dag_id": ti_key.dag_id,
            "run_id": ti_key.run_id,
            "task_id": ti_key.task_id,
            "map_index": ti_key.map_index,
        }
        if isinstance(conn_id := getattr(operator, "mm2_conn_id", None), str):
            query["conn_id"] = conn_id
        mode = getattr(operator, "mode", None)
        if mode in set(FailoverMode):  # a sensor's mode is none
            query["mode"] = str(mode)
        if str(getattr(operator, "is_dry_run", False)).lower() == "true":
            query["is_dry_run"] = "true"
        page = "run" if self.page == "report" else self.page
        return f"{_prefix()}{PAGE_PATH}/{page}?{urlencode(query)}"


_NAMES = {
    "connection": "MirrorMaker 2 connection",
    "plan": "Failover plan",
    "readiness": "Readiness report",
    "run": "Failover timeline",
    "report": "Failover report",
}


def page_links(page: str, *, beside: type[BaseOperator] | None = None) -> list[BaseOperatorLink]:
    """Return the links of an operator.

    Args:
        page: See ``PageLink``.
        beside: The class whose links it keeps.
    """
    kept = [] if beside is None else [*beside.operator_extra_links]
    return [*kept, PageLink(page)]


def _prefix() -> str:
    """Return the path under which Airflow is served, such as ``/airflow``; mostly empty."""
    return str(urlsplit(conf.get("api", "base_url", fallback="")).path).rstrip("/")
