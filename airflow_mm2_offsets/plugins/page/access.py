"""Who may see what on the page: Airflow's auth manager is asked for each connection and DAG."""

from http import HTTPStatus
from typing import Annotated

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.resource_details import (
    AccessView,
    DagAccessEntity,
    DagDetails,
)
from airflow.api_fastapi.core_api.security import GetUserDep
from airflow.models.dag import DagModel
from fastapi import Depends, HTTPException

from airflow_mm2_offsets.plugins.auth import may_read_connection
from airflow_mm2_offsets.plugins.teams import team_of


class Access:
    """What one user may see."""

    def __init__(self, user: GetUserDep) -> None:
        """Keep the user.

        Raises:
            HTTPException: The user may not see pages of plugins.
        """
        self._user = user
        if not get_auth_manager().is_authorized_view(access_view=AccessView.PLUGINS, user=user):
            raise _forbidden("you may not see the pages of plugins")

    def sees_connection(self, conn_id: str) -> bool:
        """Tell whether the user may read a connection."""
        return may_read_connection(self._user, conn_id)

    def sees_dag(self, dag_id: str) -> bool:
        """Tell whether the user may read all of a DAG's runs that the page shows."""
        details = DagDetails(id=dag_id, **team_of(DagModel, dag_id))
        return all(
            get_auth_manager().is_authorized_dag(
                method="GET", access_entity=entity, details=details, user=self._user
            )
            for entity in (DagAccessEntity.XCOM, DagAccessEntity.TASK_INSTANCE, DagAccessEntity.RUN)
        )

    def require_connection(self, conn_id: str) -> None:
        """Raise unless the user may read a connection.

        Raises:
            HTTPException: 403, with the connection's name.
        """
        if not self.sees_connection(conn_id):
            raise _forbidden(f"you may not read connection {conn_id}, which names the clusters")

    def require_dag(self, dag_id: str) -> None:
        """Raise unless the user may read a DAG's runs, tasks and XComs.

        Raises:
            HTTPException: 403, with the DAG's name.
        """
        if not self.sees_dag(dag_id):
            raise _forbidden(f"you may not read the runs, tasks and XComs of DAG {dag_id}")


User = Annotated[Access, Depends()]
"""The user of a request; a request without a login is refused (401)."""


def _forbidden(refusal: str) -> HTTPException:
    return HTTPException(
        HTTPStatus.FORBIDDEN, f"{refusal}; ask an administrator of Airflow for that right"
    )
