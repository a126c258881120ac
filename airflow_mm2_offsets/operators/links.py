"""The extra links of a task: they open the page in Airflow where a person reads what it did.

Airflow keeps a link as an XCom when a task ends. The page finds the newest tasks of a connection by
these, so that a link also names the connection, the policy and what the task does to the job.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any
from urllib.parse import urlencode

import attrs
from airflow.providers.common.compat.sdk import BaseOperator, BaseOperatorLink

PAGE_PATH = "mm2-offsets/page"
"""Where the plugin mounts the page (``plugins.rest``), below whatever path Airflow is served at."""
KEY_PREFIX = "mm2_offsets_link_"
"""The key of a link's XCom is this and the name of its page."""
STOPS, STARTS, ROLLS_BACK = "stops", "starts", "rolls_back"
"""What a task does to the job, or proves of it; the page's timeline marks the downtime by it."""

_NAMES: Mapping[str, str] = MappingProxyType(
    {
        "connection": "MirrorMaker 2 connection",
        "plan": "Failover plan",
        "readiness": "Readiness report",
        "run": "Failover timeline",
        "report": "Failover report",
    }
)


@attrs.define(frozen=True)
class PageLink(BaseOperatorLink):
    """Links a task to a page.

    Attributes:
        page: ``plan``, ``readiness``, ``connection``, ``run`` (the timeline of the DAG run) or
            ``report`` (the same, for the task that knows how the run ended).
        job: ``STOPS``, ``STARTS``, ``ROLLS_BACK``, or empty.
    """

    page: str = "run"
    job: str = ""

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
        if isinstance(conn_id := getattr(operator, "mm2_conn_id", None), str):
            query["conn_id"] = conn_id
        move = getattr(operator, "move", None)
        if isinstance(move, Mapping):
            query["policy"] = str(move.get("policy"))
        if str(getattr(operator, "is_dry_run", False)).lower() == "true":
            query["is_dry_run"] = "true"
        if self.job:
            query["job"] = self.job
        page = "run" if self.page == "report" else self.page
        return f"{PAGE_PATH}/{page}?{urlencode(query)}"


def page_links(
    page: str, *, job: str = "", beside: type[BaseOperator] | None = None
) -> list[BaseOperatorLink]:
    """Return the links of an operator.

    Args:
        page: See ``PageLink``.
        job: See ``PageLink``.
        beside: The class whose links it keeps.
    """
    theirs = [] if beside is None else [*beside.operator_extra_links]
    return [*theirs, PageLink(page, job)]
