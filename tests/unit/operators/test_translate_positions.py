"""TranslateOffsetsOperator takes positions that any task returns, and names what is none."""

from typing import Any

import numpy as np
import pytest
from airflow.providers.common.compat.sdk import DAG
from airflow.sdk import task as dag_task

from airflow_mm2_offsets.errors import HandoverError, PositionError
from airflow_mm2_offsets.hooks.mm2 import Mm2OffsetHook
from airflow_mm2_offsets.operators.translate import TranslateOffsetsOperator
from airflow_mm2_offsets.positions.notes import note_positions
from tests.unit.operators.clusters import Clusters
from tests.unit.operators.translate_task import plan_of, translate
from tests.unit.operators.worker import Worker

pytestmark = pytest.mark.usefixtures("clusters")


@pytest.mark.parametrize(
    "positions", [{"orders": {"0": 4}}, {"orders": {"0": np.int64(4)}}, '{"orders":{"0":4}}']
)
def test_positions_are_taken_from_a_task_of_python(worker: Worker, positions: object) -> None:
    """What a TaskFlow function returns is translated, whatever reader it calls."""
    with DAG("failover", schedule=None):
        read: Any = dag_task(task_id="read")(lambda: positions)()
        task = TranslateOffsetsOperator(task_id="translate", positions=read)
    worker.run(read.operator)
    worker.run(task)
    assert plan_of(worker).target_positions() == {"orders": {0: 9}}


def test_positions_that_were_noted_are_taken_with_their_ids(
    worker: Worker, clusters: Clusters
) -> None:
    """The ids that ``note_positions`` returns are compared: a recreated topic is refused."""
    with DAG("failover", schedule=None):
        read: Any = dag_task(task_id="read", multiple_outputs=True)(
            lambda: note_positions(Mm2OffsetHook().get_conn(), {"orders": {0: 4, 1: 0, 2: 0, 3: 0}})
        )()
        task = TranslateOffsetsOperator(task_id="translate", positions=read)
    clusters.copy_the_rest()
    worker.run(read.operator)
    worker.run(task)
    assert plan_of(worker).target_positions() == {"orders": {0: 9, 1: 0, 2: 0, 3: 0}}
    clusters.source.delete_topic("orders")
    clusters.source.create_topic("orders", partitions=4)
    with pytest.raises(HandoverError, match=r"clusters\.source\.topic_ids\.orders is "):
        worker.run(task)


@pytest.mark.parametrize(
    ("positions", "problem"),
    [
        ({}, "positions must map topics to partitions to offsets"),
        ("{}", "positions must map topics to partitions to offsets"),
        ("None", "Spark's offsets must be JSON such as"),
        ("latest", "Spark's offsets must be JSON such as"),
        ('{"orders":{"0":-1}}', r"orders\[0\]: -1 is not a position"),
        ({"orders-0": 4}, r'orders-0: its positions must map .*, as in {"0": 42}; got 4'),
        ({"orders": '{"0": 4}'}, r"""orders: its positions must map .*; got '{"0": 4}'"""),
        ({"orders": [4]}, r"orders: its positions must map partitions to offsets.*; got \[4\]"),
        ([["orders", 0, 4]], r"positions must map topics .*; got \[\['orders', 0, 4\]\]"),
        ({"orders": {"0": 4.0}}, r"orders\[0\]: 4\.0 is not a position"),
        ({"orders": {"0": None}}, r"orders\[0\]: None is not a position"),
        ({"orders": {"0": True}}, r"orders\[0\]: True is not a position"),
    ],
)
def test_what_is_no_position_is_refused(
    worker: Worker, positions: dict[str, Any] | str, problem: str
) -> None:
    """The error names task, argument, place and value; nothing is pushed."""
    with pytest.raises(PositionError, match=f"^task translate: positions: {problem}"):
        worker.run(translate(positions=positions))
    assert not worker.results


def test_a_wrong_pending_batch_is_named(worker: Worker) -> None:
    """The error tells it from the positions."""
    note = {"positions": '{"orders":{"0":4}}', "pending": {"orders": {"0": -1}}}
    said = r"^task translate: positions: pending: orders\[0\]: -1 is not"
    with pytest.raises(PositionError, match=said):
        worker.run(translate(positions=note))
