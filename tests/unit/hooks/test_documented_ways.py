"""docs/connections.md: each way to give the connections leads to the clusters that it names."""

import json
import re
import shlex
from pathlib import Path

import pytest
from airflow.secrets.local_filesystem import LocalFilesystemBackend

from airflow_mm2_offsets.core import Naming, ReplicationPolicy, SyncsLocation
from airflow_mm2_offsets.hooks.mm2 import Mm2OffsetHook

TEXT = (Path(__file__).parents[3] / "docs" / "connections.md").read_text(encoding="utf-8")
CONSOLE = re.findall(r"```console\n(.*?)```", TEXT, re.DOTALL)
(FILE,) = re.findall(r"```json\n(.*?)```", TEXT, re.DOTALL)


def exported(console: str) -> dict[str, str]:
    words = shlex.split(console.replace("$ export ", ""))
    return dict(word.split("=", 1) for word in words)


@pytest.mark.parametrize("way", [0, 1], ids=["json", "uri"])
def test_variables_hold_the_connections(monkeypatch: pytest.MonkeyPatch, way: int) -> None:
    """As JSON and as URIs: both name the same clusters and settings."""
    for name, value in exported(CONSOLE[way]).items():
        assert name.startswith("AIRFLOW_CONN_")
        monkeypatch.setenv(name, value)
    pair = Mm2OffsetHook().get_conn()
    assert str(pair.source.config["bootstrap.servers"]).startswith("east-1:9092")
    assert pair.target.config["bootstrap.servers"] == "west-1:9092"
    assert pair.naming == Naming(
        source_alias="source", target_alias="target", policy=ReplicationPolicy.IDENTITY
    )
    assert pair.syncs_location is SyncsLocation.TARGET
    assert pair.connect is not None
    assert pair.connect.url == "http://connect:8083"


def test_a_mounted_file_holds_the_connections(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """By the backend and the argument that the page names."""
    variables = exported(CONSOLE[2])
    (argument,) = json.loads(variables["AIRFLOW__SECRETS__BACKEND_KWARGS"])
    assert variables["AIRFLOW__SECRETS__BACKEND"] == (
        f"{LocalFilesystemBackend.__module__}.{LocalFilesystemBackend.__qualname__}"
    )
    (tmp_path / "connections.json").write_text(FILE)
    backend = LocalFilesystemBackend(**{argument: str(tmp_path / "connections.json")})
    for conn_id in ("kafka_source", "kafka_target", "mm2_default"):
        connection = backend.get_connection(conn_id)
        assert connection is not None
        monkeypatch.setenv(f"AIRFLOW_CONN_{conn_id.upper()}", connection.get_uri())
    pair = Mm2OffsetHook().get_conn()
    assert pair.source.config["sasl.username"] == "airflow"
    assert pair.naming.target_alias == "west"
    assert pair.connect is not None
