"""Secrets of connectors in what Airflow stores and logs of a task; Connect is in memory."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import DAG, BaseOperator
from airflow.sdk.execution_time.comms import SetRenderedFields

from airflow_mm2_offsets.errors import ConnectError
from airflow_mm2_offsets.operators.connector_states import SetConnectorStateOperator
from airflow_mm2_offsets.operators.connectors import ApplyMirrorMakerOperator
from airflow_mm2_offsets.planning.checks import find_problems
from airflow_mm2_offsets.sensors.connectors import ConnectorStateSensor
from airflow_mm2_offsets.testing.connectors import SimulatedConnector
from airflow_mm2_offsets.testing.simulation import Mm2Simulation, simulated_mm2
from tests.unit.operators.worker import Worker

JAAS = "source.cluster.sasl.jaas.config"
SECRETS = {
    JAAS: 'x required username="mm2" password="hunter2-long";',
    "source.cluster.ssl.keystore.key": "-----BEGIN PRIVATE KEY-----hunter2-pem",
    "transforms.x.pwd": "hunter2",
}
PLAIN: dict[str, Any] = {"offset.lag.max": 10, "replication.factor": "3"}
STARS: dict[str, Any] = dict.fromkeys(SECRETS, "***") | PLAIN


@pytest.fixture
def mm2() -> Iterator[Mm2Simulation]:
    """A Connect that runs a connector with secrets."""
    with simulated_mm2() as simulation:
        simulation.use_connection()
        simulation.connect.config = {**simulation.connect.config, "topics": "clicks", **SECRETS}
        yield simulation


@pytest.fixture
def stored(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What Airflow's database gets as rendered fields, for each run of a task."""
    fields: list[dict[str, Any]] = []
    send = Worker.send

    def keep(self: Worker, msg: object) -> object:
        if isinstance(msg, SetRenderedFields):
            fields.append(json.loads(msg.model_dump_json())["rendered_fields"])
        return send(self, msg)

    monkeypatch.setattr(Worker, "send", keep)
    return fields


def apply(**settings: Any) -> BaseOperator:
    """Return a task that shows what differs in the source connector."""
    with DAG("mirror", schedule=None):
        return ApplyMirrorMakerOperator(
            task_id="apply", topics=["orders"], kinds=["source"], is_dry_run=True, **settings
        )


def test_rendered_fields_show_stars(
    worker: Worker, mm2: Mm2Simulation, stored: list[dict[str, Any]]
) -> None:
    """Connect gets the secrets, Airflow's database does not; a second try, neither."""
    mm2.source.create_topic(mm2.pair.syncs_topic, partitions=1)
    with DAG("mirror", schedule=None):
        task = ApplyMirrorMakerOperator(
            task_id="apply",
            topics=["orders"],
            kinds=["source"],
            settings={**SECRETS, JAAS: "{{ dag_run.conf.jaas }}", **PLAIN},
            poll_interval=0.01,
        )
    for number in (1, 2):
        worker.conf = {"jaas": f"x required password=hunter2-{number};"}
        worker.run(task)
        assert mm2.connect.others["mm2-source"].config[JAAS] == worker.conf["jaas"]
    assert [each["settings"] for each in stored] == [STARS] * 2
    assert "hunter2" not in json.dumps(stored)


@pytest.mark.parametrize("field", ApplyMirrorMakerOperator.secret_fields)
def test_each_field_of_settings_shows_stars(
    worker: Worker, mm2: Mm2Simulation, stored: list[dict[str, Any]], field: str
) -> None:
    """A reference is shown, a field without settings stays as it is."""
    assert mm2.connect.is_running
    reference = {"target.cluster.sasl.jaas.config": "${file:/x:y}"}
    worker.run(apply(**{field: {**SECRETS, **PLAIN, **reference}}))
    others = set(ApplyMirrorMakerOperator.secret_fields) - {field}
    assert stored[0][field] == STARS | reference
    assert {stored[0][other] for other in others} == {None}


def test_a_mapped_task_shows_stars(
    worker: Worker, mm2: Mm2Simulation, stored: list[dict[str, Any]]
) -> None:
    """Airflow renders it by another way."""
    with DAG("mirror", schedule=None):
        task = ApplyMirrorMakerOperator.partial(
            task_id="apply", topics=["orders"], kinds=["source"], is_dry_run=True
        ).expand(settings=[{**SECRETS, **PLAIN}])
    worker.map_index = 0
    worker.run(task)
    assert [each["settings"] for each in stored] == [STARS]
    assert mm2.connect.is_running


def fail_a_task(mm2: Mm2Simulation) -> None:
    """Let the connector's task fail with a trace that quotes a secret."""
    trace = f"ConfigException: Invalid value {SECRETS[JAAS]}, see hunter2-long\n\tat x"
    mm2.connect.tasks = [{"id": 0, "state": "FAILED", "trace": trace}]


def test_a_wait_shows_no_secret_of_a_trace(
    worker: Worker, mm2: Mm2Simulation, capfd: pytest.CaptureFixture[str]
) -> None:
    """Neither the error nor the log; the rest of the first line is there."""
    fail_a_task(mm2)
    with DAG("mirror", schedule=None):
        task = ConnectorStateSensor(
            task_id="wait", connector="mirror", poke_interval=0.01, timeout=0.02
        )
    said = r"is FAILED \(ConfigException: Invalid value \*\*\*, see \*\*\*\)"
    with pytest.raises(ConnectError, match=said):
        worker.run(task)
    assert "hunter2" not in "".join(capfd.readouterr())


def test_a_check_shows_no_secret_of_a_trace(mm2: Mm2Simulation) -> None:
    """Its findings go to XCom and to reports."""
    mm2.connect.config = {**mm2.connect.config, "topics": "orders"}
    fail_a_task(mm2)
    mm2.source.produce("orders", 0, [b"x"])
    mm2.mirror()
    found = str(find_problems(mm2.pair, {"orders": {0: 1}}))
    assert "Invalid value ***, see ***" in found
    assert "hunter2" not in found


def test_a_refusal_shows_no_secret(
    worker: Worker, mm2: Mm2Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The operators that have no settings of their own go by the connector's."""
    mm2.connect.others["other"] = SimulatedConnector(name="other", config=SECRETS)
    answer = SimulatedConnector.answer

    def refuse(
        connector: SimulatedConnector, method: str, what: str, content: bytes
    ) -> tuple[int, object] | None:
        if method == "GET":
            return answer(connector, method, what, content)
        return 500, {"message": f"can't start: {connector.config[JAAS]}"}

    monkeypatch.setattr(SimulatedConnector, "answer", refuse)
    with DAG("mirror", schedule=None):
        task = SetConnectorStateOperator(task_id="set", connector="other", state="RUNNING")
    with pytest.raises(ConnectError, match=r"HTTP 500: can't start: \*\*\*; look"):
        worker.run(task)
