"""Authorization inside Airflow: the user must be allowed to read the connection."""

from http import HTTPStatus
from typing import Annotated

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.resource_details import ConnectionDetails
from airflow.api_fastapi.core_api.security import GetUserDep
from airflow.models.connection import Connection
from fastapi import Query

from airflow_mm2_offsets.api.problems import Problem
from airflow_mm2_offsets.plugins.pairs import DEFAULT
from airflow_mm2_offsets.plugins.teams import team_of


def may_use_connection(
    user: GetUserDep, conn_id: Annotated[str | None, Query(include_in_schema=False)] = None
) -> None:
    """Raise unless the request has a login (401) that may read the connection (403).

    Raises:
        Problem: The user has no right to the connection.
    """
    name = conn_id or DEFAULT
    if not may_read_connection(user, name):
        raise Problem(
            HTTPStatus.FORBIDDEN,
            f"you may not read connection {name}, which names the clusters; ask an "
            f"administrator of Airflow for that right",
            field="query.conn_id",
        )


def may_read_connection(user: GetUserDep, conn_id: str) -> bool:
    """Tell whether a user may read a connection."""
    details = ConnectionDetails(conn_id=conn_id, **team_of(Connection, conn_id))
    return get_auth_manager().is_authorized_connection(method="GET", details=details, user=user)
