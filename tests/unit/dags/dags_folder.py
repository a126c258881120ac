"""The DAGs of dags/, which users copy, as Airflow parses them."""

import re
import warnings
from pathlib import Path

import pytest
from airflow.providers.common.compat.sdk import DAG

try:
    from airflow.dag_processing.dagbag import DagBag
except ImportError:  # before Airflow 3.2
    from airflow.models.dagbag import DagBag  # type: ignore[no-redef]

__all__ = ["FILES", "FOLDER", "OTHERS", "STEPS", "DagBag", "parse", "templated_reads"]
FOLDER = Path(__file__).parents[3] / "dags"
FILES = sorted(FOLDER.glob("*.py"))
STEPS = (
    "check",
    "stop_source",
    "read_positions",
    "wait_replicated",
    "translate",
    "forecast",
    "approve",
    "submit_target",
    "wait_started",
    "verify",
    "report",
)
"""The tasks of a planned failover, in order."""
OTHERS = ("start_drill", "tear_down", "roll_back")
"""The tasks of mm2_failover that a planned failover skips."""


def parse(place: Path) -> DagBag:
    """Return what Airflow makes of a folder, or of one file."""
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        patch.setenv("AIRFLOW__CORE__LOAD_EXAMPLES", "False")
        # Airflow reads .airflowignore with a pattern that pathspec calls by another name since.
        warnings.filterwarnings("ignore", "GitWildMatchPattern", DeprecationWarning)
        return DagBag(str(place))


def templated_reads(dag: DAG) -> dict[str, set[str]]:
    """Return for each task the tasks whose XComs its templates pull: Airflow does not see them."""
    return {
        task.task_id: set(re.findall(r"task_ids='([\w.]+)'", str(vars(task)))) for task in dag.tasks
    }
