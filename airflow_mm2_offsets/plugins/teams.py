"""The team of a connection or DAG, where Airflow has several teams (from 3.2 on)."""

from typing import Any


def team_of(model: Any, name: str) -> dict[str, str | None]:  # noqa: ANN401 - two models
    """Return the argument ``team_name`` of Airflow's resource details.

    Airflow 3.1 knows no teams: there it is empty.

    Args:
        model: ``Connection`` or ``DagModel``.
        name: The id of a connection or DAG.
    """
    find = getattr(model, "get_team_name", None)
    # PostgreSQL takes no NUL in a text: no id has one, and a query with one fails.
    return {} if find is None or "\0" in name else {"team_name": find(name)}
