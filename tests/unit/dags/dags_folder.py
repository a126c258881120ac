"""The DAGs of dags/, which users copy, as Airflow parses them."""

import warnings
from pathlib import Path

import pytest

try:
    from airflow.dag_processing.dagbag import DagBag
except ImportError:  # before Airflow 3.2
    from airflow.models.dagbag import DagBag  # type: ignore[no-redef]

__all__ = ["FILES", "FOLDER", "DagBag", "parse"]
FOLDER = Path(__file__).parents[3] / "dags"
FILES = sorted(FOLDER.glob("*.py"))


def parse(place: Path) -> DagBag:
    """Return what Airflow makes of a folder, or of one file."""
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        patch.setenv("AIRFLOW__CORE__LOAD_EXAMPLES", "False")
        # Airflow reads .airflowignore with a pattern that pathspec calls by another name since.
        warnings.filterwarnings("ignore", "GitWildMatchPattern", DeprecationWarning)
        return DagBag(str(place))
