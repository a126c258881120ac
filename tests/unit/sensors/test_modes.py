"""The ways in which Airflow lets a sensor wait, and what each makes of its end."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import (
    DAG,
    AirflowException,
    AirflowFailException,
    AirflowSensorTimeout,
    BaseSensorOperator,
)

from airflow_mm2_offsets.errors import (
    ClusterRefusedError,
    ConfigurationError,
    NotReplicatedError,
    PositionError,
    TargetJobError,
)
from airflow_mm2_offsets.hooks.mm2 import Mm2OffsetHook
from airflow_mm2_offsets.sensors.checkpoint import SparkStartedSensor
from airflow_mm2_offsets.sensors.polling import PollingSensor
from airflow_mm2_offsets.sensors.replication import Mm2ReplicatedSensor
from airflow_mm2_offsets.triggers.checkpoint import SparkStartedTrigger
from airflow_mm2_offsets.triggers.polling import Done, NotYet, PollingTrigger
from airflow_mm2_offsets.triggers.replication import ReplicatedTrigger
from tests.unit.operators.clusters import Clusters
from tests.unit.operators.worker import Worker, events, rebuild
from tests.unit.spark import checkpoints

POKE: dict[str, Any] = {"deferrable": False}
RESCHEDULE: dict[str, Any] = {"deferrable": False, "mode": "reschedule"}
DEFER: dict[str, Any] = {"deferrable": True}
MODES = [
    pytest.param(POKE, id="poke"),
    pytest.param(RESCHEDULE, id="reschedule"),
    pytest.param(DEFER, id="defer"),
]
BEHIND = '{"orders":{"1":3}}'
COPIED = '{"orders":{"0":4}}'


def _replicated(positions: Any = BEHIND, **settings: Any) -> Mm2ReplicatedSensor:  # noqa: ANN401 - of many kinds
    settings = {"timeout": 0.1, "poke_interval": 0.02, **settings}
    with DAG("failover", schedule=None):
        return Mm2ReplicatedSensor(task_id="wait", positions=positions, **settings)


def _started(checkpoint: Path, **settings: Any) -> SparkStartedSensor:
    settings = {"timeout": 5, "poke_interval": 0.02, **settings}
    with DAG("failover", schedule=None):
        return SparkStartedSensor(task_id="wait", checkpoint=str(checkpoint), **settings)


def _run(worker: Worker, task: PollingSensor) -> Any:  # noqa: ANN401 - of many kinds
    """Run a sensor to its end, as worker, scheduler and triggerer do; return the last message."""
    message = worker.run(task)
    while message.type == "RescheduleTask":
        message = worker.run(task)
    if message.type == "DeferTask":
        (event,) = events(rebuild(message))
        message = worker.run(task, after=message, event=event)
    return message


def _at_second_look(
    monkeypatch: pytest.MonkeyPatch,
    trigger: type[PollingTrigger],
    change: Callable[[], object] = lambda: None,
) -> list[PollingTrigger]:
    """Let the world change before the second look; return who looked, look by look."""
    poll: Callable[[PollingTrigger], Done | NotYet] = trigger.poll
    looks: list[PollingTrigger] = []

    def count(self: PollingTrigger) -> Done | NotYet:
        looks.append(self)
        if len(looks) == 2:
            change()
        return poll(self)

    monkeypatch.setattr(trigger, "poll", count)
    return looks


@pytest.mark.parametrize("mode", MODES)
def test_a_sensor_waits_in_each_mode(
    worker: Worker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: dict[str, Any]
) -> None:
    """The first look finds nothing, the second the batch; the result is the same XCom."""
    looks = _at_second_look(monkeypatch, SparkStartedTrigger, lambda: checkpoints.simple(tmp_path))
    assert _run(worker, _started(tmp_path, **mode)).type == "SucceedTask"
    assert len(looks) == 2
    assert worker.xcoms["wait", "return_value"] == {
        "batch_id": 1,
        "query_id": checkpoints.QUERY_ID,
        "positions": checkpoints.orders(4, 6),
    }


@pytest.mark.usefixtures("clusters")
@pytest.mark.parametrize("mode", MODES)
def test_a_sensor_that_times_out_says_what_was_missing(
    worker: Worker, mode: dict[str, Any]
) -> None:
    """The error has our class and Airflow's, by which Airflow does not retry the task."""
    with pytest.raises(NotReplicatedError, match=r"^waited 0 s for .*: orders\[1\] at 3") as caught:
        _run(worker, _replicated(**mode))
    assert isinstance(caught.value, AirflowSensorTimeout)


@pytest.mark.usefixtures("clusters")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("positions", [BEHIND, "latest"])
def test_soft_fail_skips(worker: Worker, mode: dict[str, Any], positions: str) -> None:
    """A timeout and an error that no retry mends skip the task, as with Airflow's sensors."""
    message = _run(worker, _replicated(positions, soft_fail=True, **mode))
    assert message.state == "skipped"


@pytest.mark.parametrize("mode", MODES)
def test_a_missing_connection_is_not_a_timeout(worker: Worker, mode: dict[str, Any]) -> None:
    """It fails the task at the first look, under its own class, and is not retried."""
    with pytest.raises(ConfigurationError, match="connection mm2_default does not exist") as caught:
        worker.run(_replicated(**mode))
    assert isinstance(caught.value, AirflowFailException)


@pytest.mark.usefixtures("clusters")
@pytest.mark.parametrize("mode", MODES)
def test_an_error_that_may_pass_is_retried(
    worker: Worker, monkeypatch: pytest.MonkeyPatch, mode: dict[str, Any]
) -> None:
    """A broker's refusal keeps its class and fields through the database, and is not final."""

    def refuse(_: Mm2OffsetHook) -> None:
        raise ClusterRefusedError("no rights", cluster="source", topic="orders")

    _at_second_look(
        monkeypatch,
        ReplicatedTrigger,
        lambda: monkeypatch.setattr(Mm2OffsetHook, "get_conn", refuse),
    )
    with pytest.raises(ClusterRefusedError, match="source: orders: no rights") as caught:
        _run(worker, _replicated(timeout=5, **mode))
    assert not isinstance(caught.value, (AirflowFailException, AirflowSensorTimeout))
    assert caught.value.fields == {"cluster": "source", "topic": "orders"}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("positions", ["latest", "{}", {}, {"orders": {"0": -1}}])
def test_wrong_positions_are_not_waited_with(
    worker: Worker,
    mode: dict[str, Any],
    positions: Any,  # noqa: ANN401 - of many kinds
) -> None:
    """They are refused at the first look, and not retried."""
    with pytest.raises(PositionError) as caught:
        worker.run(_replicated(positions, **mode))
    assert isinstance(caught.value, AirflowFailException)


@pytest.mark.parametrize("mode", MODES)
def test_a_damaged_checkpoint_ends_the_wait_in_each_mode(
    worker: Worker, tmp_path: Path, mode: dict[str, Any]
) -> None:
    """No mode needs the look before to tell damage from a file in the making."""
    checkpoints.simple(tmp_path)
    (tmp_path / "offsets" / "1").write_text("v1\n{}\n{")
    with pytest.raises(TargetJobError, match="can't go on from its checkpoint"):
        worker.run(_started(tmp_path, **mode))


def test_quiet_clusters_are_noticed_by_one_process(
    worker: Worker, clusters: Clusters, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In poke mode and in the triggerer; in reschedule mode the error names the modes to use."""
    clusters.copy_the_rest()
    at_end = '{"orders":{"1":10}}'
    for mode in (POKE, DEFER):
        looks = _at_second_look(monkeypatch, ReplicatedTrigger)
        task = _replicated(at_end, timeout=5, quiet_after="0.05", **mode)
        assert _run(worker, task).type == "SucceedTask"
        assert len(looks) > 1
    with pytest.raises(ConfigurationError, match="deferrable=True or mode='poke'") as caught:
        worker.run(_replicated(at_end, quiet_after="0.05", **RESCHEDULE))
    assert isinstance(caught.value, AirflowFailException)
    assert worker.run(_replicated(COPIED, quiet_after="None", **RESCHEDULE)).type == "SucceedTask"


@pytest.mark.parametrize("default", [True, False])
def test_the_configuration_says_where_a_sensor_waits(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    default: bool,  # noqa: FBT001
) -> None:
    """Unless the sensor says it itself."""
    monkeypatch.setenv("AIRFLOW__OPERATORS__DEFAULT_DEFERRABLE", str(default))
    assert _started(tmp_path).deferrable is default
    assert _started(tmp_path, deferrable=not default).deferrable is not default


def test_a_sensor_takes_what_airflows_take(tmp_path: Path) -> None:
    """Times may be ``timedelta``; a wrong mode is refused when the DAG is parsed."""
    for task in (_replicated(), _started(tmp_path)):
        assert isinstance(task, BaseSensorOperator)
    task = _started(tmp_path, timeout=timedelta(minutes=5), poke_interval=timedelta(minutes=1))
    assert (task.timeout, task.poke_interval) == (300.0, 60.0)
    # Airflow before 3.2 raises its own.
    with pytest.raises((ValueError, AirflowException), match="mode must be one of"):
        _started(tmp_path, mode="watch")
