"""SyncConsumerGroupsOperator and PublishPositionsOperator."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import DAG, BaseOperator

from airflow_mm2_offsets.core import TopicPartition
from airflow_mm2_offsets.errors import ConfigurationError
from airflow_mm2_offsets.operators.groups import (
    PublishPositionsOperator,
    SyncConsumerGroupsOperator,
)
from airflow_mm2_offsets.testing import Mm2Simulation, simulated_mm2
from tests.unit.operators.worker import Worker
from tests.unit.spark.checkpoints import simple

ORDERS, COPY = TopicPartition("orders", 0), TopicPartition("source.orders", 0)


@pytest.fixture
def mm2() -> Iterator[Mm2Simulation]:
    with simulated_mm2() as made:
        made.source.produce("orders", 0, [b"%d" % number for number in range(100)])
        made.mirror()
        made.source.group_offsets["billing"] = {ORDERS: (42, "")}
        made.use_connection()
        yield made


def _run(worker: Worker, kind: type[BaseOperator], **settings: Any) -> dict[str, Any]:
    with DAG("groups", schedule=None):
        task = kind(task_id="groups", **settings)
    worker.run(task)
    report: dict[str, Any] = worker.xcoms["groups", "return_value"]
    return report


def test_groups_are_synced_and_told(worker: Worker, mm2: Mm2Simulation) -> None:
    """The report is returned, the summary stands beside it, and a retry changes nothing."""
    report = _run(worker, SyncConsumerGroupsOperator, include="bill.*", rules={"dry_run": "False"})
    assert report["totals"]["committed"] == 1
    assert mm2.target.group_offsets["billing"][COPY][0] == 42
    assert worker.xcoms["groups", "table"] == report["summary"].splitlines()
    again = _run(worker, SyncConsumerGroupsOperator, include="bill.*")
    assert again["totals"]["unchanged"] == 1


def test_a_dry_run_by_a_template(worker: Worker, mm2: Mm2Simulation) -> None:
    """Jinja writes the param as a text."""
    report = _run(worker, SyncConsumerGroupsOperator, include=".*", rules={"dry_run": "True"})
    assert report["dry_run"]
    assert mm2.target.group_offsets == {}


@pytest.mark.parametrize(
    "settings", [{"include": "["}, {"include": ".*", "offsets_from": "heartbeats"}]
)
def test_a_wrong_setting_fails_at_once(
    worker: Worker, mm2: Mm2Simulation, settings: dict[str, str]
) -> None:
    """Before any request."""
    mm2.source.is_running = mm2.target.is_running = False
    with pytest.raises(ConfigurationError):
        _run(worker, SyncConsumerGroupsOperator, **settings)


def test_positions_are_published(worker: Worker, mm2: Mm2Simulation, tmp_path: Path) -> None:
    """The committed ones of the checkpoint, for a group on the source."""
    simple(tmp_path)
    mm2.source.create_topic("orders", partitions=2)
    mm2.source.produce("orders", 1, [b"%d" % number for number in range(9)])
    settings = {"checkpoint": str(tmp_path), "group_id": "spark-orders"}
    report = _run(worker, PublishPositionsOperator, **settings)
    assert report["totals"]["committed"] == 2
    assert mm2.source.group_offsets["spark-orders"][ORDERS][0] == 4
    with pytest.raises(ConfigurationError):
        _run(worker, PublishPositionsOperator, **settings, side="left")


def test_without_a_checkpoint_nothing_is_published(worker: Worker, mm2: Mm2Simulation) -> None:
    """As with the archive's DAG, one DAG serves those without a Spark job."""
    with DAG("groups", schedule=None):
        task = PublishPositionsOperator(task_id="groups", checkpoint="", group_id="spark-orders")
    worker.run(task)
    assert "return_value" not in {name for _, name in worker.xcoms}
    assert "spark-orders" not in mm2.source.group_offsets
