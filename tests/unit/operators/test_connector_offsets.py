"""The operators that read, alter and reset a connector's offsets; Connect is in memory."""

import json
from collections.abc import Iterator
from typing import Any, TypeAlias

import pytest
from airflow.providers.common.compat.sdk import DAG, AirflowFailException, BaseOperator

from airflow_mm2_offsets.errors import ConfigurationError, ConnectError, PositionError
from airflow_mm2_offsets.operators.connector_offsets import (
    AlterConnectorOffsetsOperator,
    ReadConnectorOffsetsOperator,
    ResetConnectorOffsetsOperator,
)
from airflow_mm2_offsets.testing.connectors import SimulatedConnector
from airflow_mm2_offsets.testing.simulation import Mm2Simulation, simulated_mm2
from tests.unit.operators.worker import Worker

COPIES, SKIPS = "copies again", "skips records"
Backup: TypeAlias = list[dict[str, Any]]


def entry(last: int | None, partition: int = 0, topic: str = "orders") -> dict[str, Any]:
    """Return an offset as Connect tells it."""
    return {
        "partition": {"cluster": "source", "topic": topic, "partition": partition},
        "offset": None if last is None else {"offset": last},
    }


@pytest.fixture
def mm2() -> Iterator[Mm2Simulation]:
    """A source with 100 records in each of two partitions."""
    with simulated_mm2() as simulation:
        simulation.use_connection()
        simulation.source.create_topic("orders", partitions=2)
        for partition in range(2):
            simulation.source.produce("orders", partition, [b"x"] * 100)
        yield simulation


@pytest.fixture
def connector(mm2: Mm2Simulation) -> SimulatedConnector:
    """A stopped connector that has copied both partitions."""
    made = SimulatedConnector(
        name="mm2-source",
        config=mm2.connect.config,
        state="STOPPED",
        tasks=(),
        offsets=[entry(99), entry(49, 1)],
    )
    mm2.connect.others[made.name] = made
    return made


def run(worker: Worker, kind: type[BaseOperator], **settings: Any) -> Any:  # noqa: ANN401 - JSON
    """Run a task, and return its XCom."""
    with DAG("mirror", schedule=None):
        task = kind(task_id=kind.__name__, **{"connector": "mm2-source", **settings})
    worker.run(task)
    return worker.xcoms[kind.__name__, "return_value"]


@pytest.fixture
def backup(worker: Worker, connector: SimulatedConnector) -> Backup:
    """The connector's offsets before a change."""
    assert connector.offsets
    read: Backup = run(worker, ReadConnectorOffsetsOperator)["offsets"]
    return read


def reset(worker: Worker, backup: object, confirm: str = COPIES) -> Any:  # noqa: ANN401 - JSON
    """Reset the connector's offsets."""
    return run(worker, ResetConnectorOffsetsOperator, backup=backup, confirm=confirm)


def alter(worker: Worker, backup: object, offsets: object, *confirm: str) -> Any:  # noqa: ANN401
    """Alter the connector's offsets."""
    return run(
        worker,
        AlterConnectorOffsetsOperator,
        backup=backup,
        offsets=offsets,
        confirm=list(confirm),
    )


def test_a_reset_is_put_back(worker: Worker, connector: SimulatedConnector, backup: Backup) -> None:
    """The offsets are exactly those of before; each step says what it means."""
    done = reset(worker, backup)
    assert connector.offsets == []
    assert done["backup"] == backup
    assert done["warnings"][0].startswith("MirrorMaker 2 copies these records a second time")
    assert done["changes"][0] == {
        "partition": "orders[0]",
        "before": "99",
        "after": None,
        "effect": COPIES,
    }
    emptied = run(worker, ReadConnectorOffsetsOperator)["offsets"]
    back = alter(worker, emptied, done["backup"], SKIPS)
    assert connector.offsets == backup
    assert back["warnings"][0].startswith("MirrorMaker 2 does not copy the records in between")


def test_a_retry_of_a_reset_keeps_the_backup(
    worker: Worker,
    connector: SimulatedConnector,
    backup: Backup,
) -> None:
    """A try that dies after the reset is repeated: nothing changes, and the backup is returned."""
    reset(worker, backup)
    again = reset(worker, backup)
    assert (again["changed"], again["backup"]) == (False, backup)
    assert connector.offsets == []


@pytest.mark.parametrize("confirm", ["", SKIPS, "yes"])
def test_nothing_is_changed_without_its_word(
    worker: Worker,
    connector: SimulatedConnector,
    backup: Backup,
    confirm: str,
) -> None:
    """The error says what would happen, to which partitions, and the word."""
    with pytest.raises(ConfigurationError, match=r"orders\[0\]: 99 -> none.*confirm=\['copies ag"):
        reset(worker, backup, confirm)
    assert connector.offsets == backup


def test_each_effect_needs_its_word(
    worker: Worker,
    connector: SimulatedConnector,
    backup: Backup,
) -> None:
    """One partition goes back, the other one forward."""
    wanted = {"orders": {"0": 10, "1": "60"}}
    with pytest.raises(ConfigurationError, match=r"confirm=\['skips records'\]"):
        alter(worker, backup, wanted, COPIES)
    alter(worker, backup, json.dumps(wanted), COPIES, SKIPS)
    assert connector.offsets == [entry(10), entry(60, 1)]


def test_other_partitions_keep_their_offsets(
    worker: Worker,
    connector: SimulatedConnector,
    backup: Backup,
) -> None:
    """None forgets one partition's."""
    done = alter(worker, backup, {"orders": {"1": None}}, COPIES)
    assert connector.offsets == done["offsets"] == [entry(99)]


def test_an_offset_of_a_deleted_topic_stays(
    worker: Worker, connector: SimulatedConnector, backup: Backup
) -> None:
    """Connect keeps it: that is no reason to refuse the change of another one."""
    connector.offsets = [*backup, entry(7, topic="deleted")]
    alter(worker, connector.offsets, {"orders": {"0": 10}}, COPIES)
    assert connector.offsets == [entry(49, 1), entry(7, 0, "deleted"), entry(10)]


@pytest.mark.parametrize("state", ["RUNNING", "PAUSED"])
def test_a_connector_that_is_not_stopped_keeps_its_offsets(
    worker: Worker,
    connector: SimulatedConnector,
    backup: Backup,
    state: str,
) -> None:
    """Neither is a backup made: it would be old at once."""
    connector.state = state
    with pytest.raises(ConnectError, match=f"mm2-source is {state}.*SetConnectorStateOperator"):
        reset(worker, backup)
    with pytest.raises(ConnectError, match=f"mm2-source is {state}"):
        run(worker, ReadConnectorOffsetsOperator)
    assert connector.offsets == backup


def test_offsets_that_somebody_has_changed_since_stay(
    worker: Worker,
    connector: SimulatedConnector,
    backup: Backup,
) -> None:
    """The connector ran after the backup was read: the backup is not of these offsets."""
    connector.offsets = [entry(99), entry(50, 1)]
    with pytest.raises(ConnectError, match="not those of the backup any more"):
        reset(worker, backup)
    assert connector.offsets == [entry(99), entry(50, 1)]


def test_a_change_that_was_half_done_is_finished(
    worker: Worker,
    connector: SimulatedConnector,
    backup: Backup,
) -> None:
    """Connect's worker died over the alteration: each offset is the old or the new one."""
    connector.offsets = [entry(10), entry(49, 1)]
    alter(worker, backup, {"orders": {"0": 10, "1": 20}}, COPIES)
    assert connector.offsets == [entry(10), entry(20, 1)]


@pytest.mark.parametrize(
    ("offsets", "said"),
    [
        ({"orders": {"2": 5}}, r"orders\[2\]: the partition does not exist \(the topic has 2\)"),
        ({"nope": {"0": 5}}, r"nope\[0\]: the partition does not exist \(the topic has 0\)"),
        ({"orders": {"0": 100}}, r"orders\[0\]: the last copied offset 100 is not before .* 100"),
        ({"orders": {"0": -1}}, r"orders\[0\]: the last copied offset -1 is not before"),
    ],
)
def test_offsets_that_the_source_has_not_are_refused(
    worker: Worker,
    connector: SimulatedConnector,
    backup: Backup,
    offsets: object,
    said: str,
) -> None:
    """MirrorMaker 2 would skip what is yet to come; Connect itself takes any number."""
    with pytest.raises(PositionError, match=said) as raised:
        alter(worker, backup, offsets, COPIES, SKIPS)
    assert isinstance(raised.value, AirflowFailException)
    assert connector.offsets == backup


@pytest.mark.parametrize(
    "offsets",
    [5, "{", {"orders": 5}, {"orders": {"x": 5}}, [{"partition": {}}], [entry(1) | {"offset": 5}]],
)
def test_offsets_of_another_form_are_refused(
    worker: Worker,
    connector: SimulatedConnector,
    backup: Backup,
    offsets: object,
) -> None:
    """The error says which forms there are."""
    with pytest.raises(ConfigurationError, match=r"the offsets (have another form|are no JSON)"):
        alter(worker, backup, offsets, COPIES, SKIPS)
    assert connector.offsets == backup


def test_a_backup_of_another_connector_is_refused(
    worker: Worker,
    connector: SimulatedConnector,
    backup: Backup,
) -> None:
    """Its source alias differs."""
    other = entry(5)
    other["partition"]["cluster"] = "eu"
    with pytest.raises(ConfigurationError, match="the offsets are of eu, and the connector copies"):
        alter(worker, backup, [other], COPIES, SKIPS)
    assert connector.offsets == backup
