"""Requests that change a connector: those of Kafka's REST documentation (Connect 4.3)."""

import json
from collections.abc import Callable

import httpx
import pytest

from airflow_mm2_offsets.connect.admin import ConnectorAdmin, TargetState
from airflow_mm2_offsets.connect.client import ConnectClient
from airflow_mm2_offsets.errors import ConnectError

ENTRY = {
    "partition": {"cluster": "a", "partition": 0, "topic": "orders"},
    "offset": {"offset": 9},
}


def served(
    asked: list[tuple[str, str, object]], *, state: str = "STOPPED", conflicts: int = 0
) -> ConnectorAdmin:
    """Return the admin of a connector whose worker notes requests, and rebalances at first."""
    left = [conflicts]

    def answer(request: httpx.Request) -> httpx.Response:
        path = request.url.raw_path.decode()
        if path.endswith("/status"):
            body = {"connector": {"state": state}, "tasks": []}
            return httpx.Response(200, json=body)
        if left[0]:
            left[0] -= 1
            return httpx.Response(409, json={"error_code": 409, "message": "rebalance"})
        asked.append((request.method, path, json.loads(request.content or "null")))
        status = {"DELETE": 204, "PUT": 202}.get(request.method, 200)
        if path.endswith("config"):
            return httpx.Response(201, json={"name": "mirror a", "config": {}, "tasks": []})
        is_empty = status in {202, 204} and not path.endswith("offsets")
        return httpx.Response(status) if is_empty else httpx.Response(200, json={"message": "ok"})

    connect = ConnectClient(
        url="http://connect:8083", timeout=5, transport=httpx.MockTransport(answer)
    )
    return ConnectorAdmin(connect=connect, name="mirror a")


@pytest.mark.parametrize(
    ("change", "request_"),
    [
        (lambda a: a.put_config({"x": "y"}), ("PUT", "/config", {"x": "y"})),
        (lambda a: a.set_state(TargetState.RUNNING), ("PUT", "/resume", None)),
        (lambda a: a.set_state(TargetState.PAUSED), ("PUT", "/pause", None)),
        (lambda a: a.set_state(TargetState.STOPPED), ("PUT", "/stop", None)),
        (
            lambda a: a.restart_failed(),
            ("POST", "/restart?includeTasks=true&onlyFailed=true", None),
        ),
        (lambda a: a.delete(), ("DELETE", "", None)),
        (lambda a: a.alter_offsets([ENTRY]), ("PATCH", "/offsets", {"offsets": [ENTRY]})),
        (lambda a: a.reset_offsets(), ("DELETE", "/offsets", None)),
    ],
)
def test_a_change_is_the_request_that_kafka_documents(
    change: Callable[[ConnectorAdmin], None], request_: tuple[str, str, object]
) -> None:
    """Method, path and body; while the workers rebalance, it is sent again."""
    asked: list[tuple[str, str, object]] = []
    change(served(asked, conflicts=1))
    method, path, body = request_
    assert asked == [(method, f"/connectors/mirror%20a{path}", body)]


@pytest.mark.parametrize("state", ["RUNNING", "PAUSED", "FAILED"])
def test_offsets_are_changed_of_a_stopped_connector_alone(state: str) -> None:
    """The error names the state and the step before; nothing is sent."""
    asked: list[tuple[str, str, object]] = []
    admin = served(asked, state=state)
    for change in (admin.reset_offsets, lambda: admin.alter_offsets([ENTRY])):
        with pytest.raises(ConnectError, match=f"mirror a is {state}, .*: stop it first"):
            change()
    assert asked == []
