"""Secrets of connectors in what Airflow stores and logs of a task; Connect is in memory."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import DAG
from airflow.sdk.execution_time.comms import SetRenderedFields

from airflow_mm2_offsets.connectors.description import ConnectorKind, MirrorDescription
from airflow_mm2_offsets.errors import ConfigurationError, ConnectError
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


MIRROR: dict[str, Any] = {"topics": ["orders"], "kinds": ["source"]}


def test_rendered_fields_show_stars(
    worker: Worker, mm2: Mm2Simulation, stored: list[dict[str, Any]]
) -> None:
    """Connect gets the secrets, Airflow's database does not; a second try, neither."""
    mm2.source.create_topic(mm2.pair.syncs_topic, partitions=1)
    settings = {**SECRETS, JAAS: "{{ dag_run.conf.jaas }}", **PLAIN}
    with DAG("mirror", schedule=None):
        task = ApplyMirrorMakerOperator(
            task_id="apply", mirror={**MIRROR, "settings": settings}, poll_interval=0.01
        )
    for number in (1, 2):
        worker.conf = {"jaas": f"x required password=hunter2-{number};"}
        worker.run(task)
        assert mm2.connect.others["mm2-source"].config[JAAS] == worker.conf["jaas"]
    assert [each["mirror"] for each in stored] == [{**MIRROR, "settings": STARS}] * 2
    assert "hunter2" not in json.dumps(stored)


@pytest.mark.parametrize("as_value", [False, True])
@pytest.mark.parametrize("kind", [None, *ConnectorKind])
def test_settings_of_each_connector_show_stars(
    worker: Worker,
    mm2: Mm2Simulation,
    stored: list[dict[str, Any]],
    kind: ConnectorKind | None,
    *,
    as_value: bool,
) -> None:
    """A reference is shown, and all that is no setting; however the description is given."""
    assert mm2.connect.is_running
    reference = {"target.cluster.sasl.jaas.config": "${file:/x:y}"}
    settings = {**SECRETS, **PLAIN, **reference}
    own = {"settings": settings} if kind is None else {"settings_of": {kind.value: settings}}
    mirror: Any = {**MIRROR, **own}
    with DAG("mirror", schedule=None):
        task = ApplyMirrorMakerOperator(
            task_id="apply",
            mirror=MirrorDescription.from_json(mirror) if as_value else mirror,
            is_dry_run=True,
        )
    worker.run(task)
    shown = STARS | reference
    if as_value:
        shown = {name: str(value) for name, value in shown.items()}
    field = stored[0]["mirror"]
    assert (field["settings"] if kind is None else field["settings_of"][kind]) == shown
    assert (field["topics"], field["kinds"]) == (["orders"], ["source"])
    assert "hunter2" not in json.dumps(stored)


@pytest.mark.parametrize(
    "mirror",
    [
        {**MIRROR, "setings": SECRETS},
        {**MIRROR, "settings": str(SECRETS)},
        {**MIRROR, "settings_off": {"source": SECRETS}},
        {**MIRROR, "settings_of": {"source": str(SECRETS)}},
        {**MIRROR, "settings_of": {"sauce": SECRETS}},
        str(SECRETS),
    ],
)
def test_a_wrong_description_shows_no_secret(
    worker: Worker,
    mm2: Mm2Simulation,
    stored: list[dict[str, Any]],
    capfd: pytest.CaptureFixture[str],
    mirror: Any,  # noqa: ANN401 - of many kinds
) -> None:
    """Airflow stores the field before the task refuses it."""
    assert mm2.connect.is_running
    with DAG("mirror", schedule=None):
        task = ApplyMirrorMakerOperator(task_id="apply", mirror=mirror)
    with pytest.raises(ConfigurationError, match=r"^task apply: mirror: ") as caught:
        worker.run(task)
    assert stored
    assert "hunter2" not in f"{json.dumps(stored)} {caught.value} {''.join(capfd.readouterr())}"


def test_a_mapped_task_shows_stars(
    worker: Worker, mm2: Mm2Simulation, stored: list[dict[str, Any]]
) -> None:
    """Airflow renders it by another way."""
    with DAG("mirror", schedule=None):
        task = ApplyMirrorMakerOperator.partial(task_id="apply", is_dry_run=True).expand(
            mirror=[{**MIRROR, "settings": {**SECRETS, **PLAIN}}]
        )
    worker.map_index = 0
    worker.run(task)
    assert [each["mirror"]["settings"] for each in stored] == [STARS]
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
