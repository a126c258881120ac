"""The operators of Connect's connectors; Connect is in memory."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import DAG, AirflowFailException, BaseOperator
from airflow.sdk.execution_time.comms import DeferTask

from airflow_mm2_offsets.errors import ConfigurationError, ConnectError
from airflow_mm2_offsets.operators.connector_states import (
    RestartFailedTasksOperator,
    SetConnectorStateOperator,
)
from airflow_mm2_offsets.operators.connectors import ApplyMirrorMakerOperator
from airflow_mm2_offsets.sensors.connectors import ConnectorStateSensor
from airflow_mm2_offsets.testing.connectors import SimulatedConnector
from airflow_mm2_offsets.testing.simulation import Mm2Simulation, simulated_mm2
from tests.unit.operators.worker import Worker, events, rebuild

NAMES = ["new-source", "new-checkpoint", "new-heartbeat"]
SECRET = {"source.cluster.sasl.jaas.config": 'x required password="hunter2";'}


@pytest.fixture
def mm2() -> Iterator[Mm2Simulation]:
    """Clusters with the internal topics, and a Connect that runs a connector of other topics."""
    with simulated_mm2() as simulation:
        simulation.use_connection()
        simulation.connect.config = {**simulation.connect.config, "topics": "clicks"}
        simulation.source.create_topic("heartbeats", partitions=1)
        simulation.source.create_topic(simulation.pair.syncs_topic, partitions=1)
        simulation.target.create_topic("source.checkpoints.internal", partitions=1)
        yield simulation


def run(worker: Worker, kind: type[BaseOperator], **settings: Any) -> Any:  # noqa: ANN401 - JSON
    """Run a task, and return its XCom."""
    with DAG("mirror", schedule=None):
        task = kind(task_id="task", **{"poll_interval": 0.01, "timeout": 5, **settings})
    worker.run(task)
    return worker.xcoms["task", "return_value"]


MIRROR = {"topics": ["orders"], "name": "new"}


def apply(worker: Worker, *, of: Mapping[str, Any] | None = None, **settings: Any) -> Any:  # noqa: ANN401 - JSON
    """Apply the description of a mirror of orders, with further fields."""
    return run(worker, ApplyMirrorMakerOperator, mirror={**MIRROR, **(of or {})}, **settings)


def test_the_three_connectors_are_created_and_then_left_alone(
    worker: Worker, mm2: Mm2Simulation
) -> None:
    """A second run of the task finds nothing to do; a changed setting is the only difference."""
    made = apply(worker)
    assert made["connectors"] == NAMES
    assert [each["action"] for each in made["changes"]] == ["create"] * 3
    assert mm2.connect.others["new-source"].config["topics"] == "orders"
    assert [each["action"] for each in apply(worker)["changes"]] == ["none"] * 3
    changed = apply(worker, of={"settings_of": {"source": {"offset.lag.max": 10}}})["changes"]
    assert [each["action"] for each in changed] == ["update", "none", "none"]
    assert changed[0]["differences"] == [{"name": "offset.lag.max", "before": None, "after": "10"}]


def test_a_dry_run_changes_nothing(worker: Worker, mm2: Mm2Simulation) -> None:
    """The differences are shown all the same."""
    shown = apply(worker, is_dry_run="True")
    assert shown["is_dry_run"] is True
    assert {"name": "topics", "before": None, "after": "orders"} in shown["changes"][0][
        "differences"
    ]
    assert not mm2.connect.others


def test_a_secret_is_in_no_xcom_log_or_error(
    worker: Worker, mm2: Mm2Simulation, capfd: pytest.CaptureFixture[str]
) -> None:
    """Neither when it is new nor when it changes; a reference to a config provider is shown."""
    apply(worker, of={"settings": SECRET})
    assert "hunter2" in json.dumps(mm2.connect.others["new-source"].config)
    longer = {name: f"{value} " for name, value in SECRET.items()}
    changed = apply(worker, of={"settings": longer})
    (difference,) = changed["changes"][0]["differences"]
    assert (difference["before"], difference["after"]) == ("***", "***")
    reference = apply(worker, of={"settings": dict.fromkeys(SECRET, "${file:/x:y}")})
    assert reference["changes"][0]["differences"][0]["after"] == "${file:/x:y}"
    assert "hunter2" not in json.dumps([changed, reference])
    assert "hunter2" not in "".join(capfd.readouterr())


@pytest.mark.parametrize(
    ("running", "said"),
    [
        ({"connector.class": "org.acme.FileSource"}, "is of class org.acme.FileSource, not"),
        ({"source.cluster.alias": "other"}, "is of other->target, not of source->target"),
        (
            {"source.cluster.alias": "${env:SOURCE}", "target.cluster.alias": "other"},
            r"is of \$\{env:SOURCE\}->other, not of source->target",
        ),
    ],
)
def test_another_connector_of_that_name_is_refused(
    worker: Worker, mm2: Mm2Simulation, running: dict[str, str], said: str
) -> None:
    """Nothing is changed, not even the connectors whose names are free; no retry helps."""
    before = {**mm2.connect.config, "topics": "x", **running}
    mm2.connect.others["new-source"] = SimulatedConnector(name="new-source", config=before)
    with pytest.raises(ConfigurationError, match=said) as raised:
        apply(worker)
    assert isinstance(raised.value, AirflowFailException)
    assert [*mm2.connect.others] == ["new-source"]
    assert mm2.connect.others["new-source"].config == before


def test_a_second_copy_of_a_topic_is_refused(worker: Worker, mm2: Mm2Simulation) -> None:
    """Another connector of the pair copies the topic already."""
    with pytest.raises(ConfigurationError, match="connector mirror copies topic clicks of this"):
        apply(worker, of={"topics": "clicks, orders"})
    assert not mm2.connect.others


@pytest.mark.parametrize("alias", ["source.cluster.alias", "target.cluster.alias"])
def test_a_second_copy_is_refused_where_the_first_can_not_be_read(
    worker: Worker, mm2: Mm2Simulation, alias: str
) -> None:
    """A config provider holds an alias of the other connector; a third one of the pair is told."""
    hidden = {**mm2.connect.config, "topics": "orders", alias: "${env:ALIAS}"}
    mm2.connect.others["hidden"] = SimulatedConnector(name="hidden", config=hidden)
    said = r"hidden copies topic orders, and it may be of this pair: its .*\$\{env:ALIAS\}.*be read"
    with pytest.raises(ConfigurationError, match=said):
        apply(worker)
    assert [*mm2.connect.others] == ["hidden"]
    hidden["topics"] = "refunds"
    assert apply(worker)["connectors"] == NAMES


def test_a_setting_that_contradicts_the_connection_is_refused(
    worker: Worker, mm2: Mm2Simulation
) -> None:
    """The plan would go by the connection's."""
    with pytest.raises(ConfigurationError, match=r"replication.policy.separator is '_'"):
        apply(worker, of={"settings": {"replication.policy.separator": "_"}})
    assert not mm2.connect.others


def test_copies_that_would_go_to_another_cluster_are_refused(
    worker: Worker, mm2: Mm2Simulation
) -> None:
    """Connect's own producer writes to Connect's cluster, unless it is told otherwise."""
    mm2.connect.cluster_id = "elsewhere"
    with pytest.raises(ConfigurationError, match="would write the copies to elsewhere"):
        apply(worker)
    servers = {"producer.override.bootstrap.servers": mm2.target.bootstrap_servers}
    assert apply(worker, of={"settings": servers})["state"] == "RUNNING"


def test_the_wait_names_a_missing_internal_topic(worker: Worker, mm2: Mm2Simulation) -> None:
    """The connectors run, but one of them has not made its topic."""
    mm2.target.delete_topic("source.checkpoints.internal")
    with pytest.raises(ConnectError, match=r"topic source.checkpoints.internal on the target"):
        apply(worker, timeout=0.05)


def test_a_failed_task_is_named_and_restarted(worker: Worker, mm2: Mm2Simulation) -> None:
    """The sensor names the trace of the half that failed; the restart mends it."""
    trace = "ConnectException: no\n\tat"
    mm2.connect.tasks = [
        {"id": 0, "state": "RUNNING"},
        {"id": 1, "state": "FAILED", "trace": trace},
    ]
    with pytest.raises(ConnectError, match=r"task 1 .* is FAILED \(ConnectException: no\)$"):
        _sense(worker, timeout=0.02)
    run(worker, RestartFailedTasksOperator, connector="mirror")
    _sense(worker)


def _sense(worker: Worker, *, timeout: float = 5) -> None:
    with DAG("mirror", schedule=None):
        sensor = ConnectorStateSensor(
            task_id="wait", connector="mirror", poke_interval=0.01, timeout=timeout
        )
    worker.run(sensor)


@pytest.mark.parametrize("state", ["STOPPED", "PAUSED", "RUNNING", "running"])
def test_a_state_is_set_and_set_again(worker: Worker, mm2: Mm2Simulation, state: str) -> None:
    """A repetition finds the state there."""
    for _ in range(2):
        told = run(worker, SetConnectorStateOperator, connector="mirror", state=state)
        assert told == {"connectors": ["mirror"], "state": state.upper()}
    assert mm2.connect.state == state.upper()


def test_an_unknown_state_is_refused(worker: Worker, mm2: Mm2Simulation) -> None:
    """The error lists those that there are."""
    with pytest.raises(ConfigurationError, match="give one of RUNNING, PAUSED, STOPPED"):
        run(worker, SetConnectorStateOperator, connector="mirror", state="DELETED")
    assert mm2.connect.state == "RUNNING"


def test_the_wait_is_in_the_triggerer(worker: Worker, mm2: Mm2Simulation) -> None:
    """A task that is not done at once is deferred; the trigger's result is the task's."""
    mm2.target.delete_topic("source.checkpoints.internal")
    with DAG("mirror", schedule=None):
        task = ApplyMirrorMakerOperator(
            task_id="task", mirror=MIRROR, deferrable=True, poll_interval=0.01
        )
    deferred = worker.run(task)
    assert isinstance(deferred, DeferTask)
    trigger = rebuild(deferred)
    mm2.target.create_topic("source.checkpoints.internal", partitions=1)
    (event,) = events(trigger)
    worker.run(task, deferred, event)
    told = worker.xcoms["task", "return_value"]
    assert (told["connectors"], told["state"]) == (NAMES, "RUNNING")
    assert [each["action"] for each in told["changes"]] == ["create"] * 3


def test_connect_that_is_down_is_waited_for_and_a_retry_may_help(
    worker: Worker, mm2: Mm2Simulation
) -> None:
    """The error is not final."""
    mm2.connect.is_running = False
    with pytest.raises(ConnectionError) as raised:
        apply(worker)
    assert not isinstance(raised.value, AirflowFailException)
