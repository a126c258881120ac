"""The extra links of a task: they open the page in Airflow where a person reads what it did.

Airflow keeps a link as an XCom when a task ends. The page finds the newest tasks of a job by these,
so that a link also names the job and the policy, or the connection of a task without a job.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import attrs
from airflow.providers.common.compat.sdk import BaseOperator, BaseOperatorLink, conf

PAGE_PATH = "mm2-offsets/page"
"""Where the plugin mounts the page (``plugins.rest``), below whatever path Airflow is served at."""
TAB = "mm2-offsets-run"
"""What the plugin calls the tab of a DAG run in an address."""
KEY_PREFIX = "mm2_offsets_link_"
"""The key of a link's XCom is this and the name of its page."""
PROBLEM = "mm2_offsets_problem"
"""The XCom of why a task has failed."""

_NAMES: Mapping[str, str] = MappingProxyType(
    {
        "connection": "MirrorMaker 2 connection",
        "plan": "Failover plan",
        "readiness": "Readiness report",
        "run": "Failover status",
        "report": "Failover report",
    }
)
_OF_RUN = frozenset({"run", "report"})
"""The links that open the tab of the DAG run."""


@attrs.define(frozen=True)
class PageLink(BaseOperatorLink):
    """Links a task to a page.

    Attributes:
        page: ``plan``, ``readiness``, ``connection``, ``run`` (the tab of the DAG run) or
            ``report`` (the same, for the task that knows how the run ended).
    """

    page: str = "run"

    @property
    def name(self) -> str:
        """The text of the button."""
        return _NAMES[self.page]

    @property
    def xcom_key(self) -> str:
        """The key of the XCom that keeps the link."""
        return f"{KEY_PREFIX}{self.page}"

    def get_link(self, operator: Any, *, ti_key: Any) -> str:  # noqa: ANN401 - Airflow moves its classes
        """Return the address of the page, relative to that of Airflow.

        Args:
            operator: The task, with its templates rendered.
            ti_key: The task instance, or its key.
        """
        query = {
            "dag_id": ti_key.dag_id,
            "run_id": ti_key.run_id,
            "task_id": ti_key.task_id,
            "map_index": ti_key.map_index,
        }
        move = getattr(operator, "move", None)
        if isinstance(conn_id := getattr(operator, "mm2_conn_id", None), str) and move is None:
            query["conn_id"] = conn_id
        if isinstance(move, Mapping):
            job = move.get("job")
            query["job"] = str(job.get("name") if isinstance(job, Mapping) else job)
            query["policy"] = str(move.get("policy"))
            if str(move.get("dry_run")).lower() == "true":
                query["is_dry_run"] = "true"
        page = f"{PAGE_PATH}/{self.page}"
        if self.page in _OF_RUN:
            page = run_address(ti_key.dag_id, ti_key.run_id)
        return f"{page}?{urlencode(query)}"


def run_address(dag_id: str, run_id: str) -> str:
    """Return the address of a DAG run's tab in Airflow, or of its page where there is no tab.

    It is relative to that of Airflow.
    """
    if not conf.getboolean("mm2_offsets", "run_tab", fallback=True):
        return f"{PAGE_PATH}/run"
    return f"{airflow_address(dag_id, run_id)}/plugin/{TAB}"


def airflow_address(dag_id: str, run_id: str, task_id: str = "", map_index: int = -1) -> str:
    """Return the address of a DAG run, or of a task of it, relative to that of Airflow."""
    address = f"dags/{quote(dag_id, safe='')}/runs/{quote(run_id, safe='')}"
    if task_id:
        address += f"/tasks/{quote(task_id, safe='')}"
    return f"{address}/mapped/{map_index}" if task_id and map_index >= 0 else address


def address_in_airflow(address: str) -> str:
    """Return an address that is relative to that of Airflow, as its own pages link to it."""
    base = urlsplit(conf.get("api", "base_url", fallback="")).path.rstrip("/")
    return f"{base}/{address}"


def page_links(page: str, *, beside: type[BaseOperator] | None = None) -> list[BaseOperatorLink]:
    """Return the links of an operator.

    Args:
        page: See ``PageLink``.
        beside: The class whose links it keeps.
    """
    theirs = [] if beside is None else [*beside.operator_extra_links]
    return [*theirs, PageLink(page)]
