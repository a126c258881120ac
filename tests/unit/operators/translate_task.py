"""The task translate, and its plan, for the tests of operators."""

from typing import Any

from airflow.providers.common.compat.sdk import DAG

from airflow_mm2_offsets.core import FailoverPlan
from airflow_mm2_offsets.operators.translate import TranslateOffsetsOperator
from tests.unit.operators.worker import Worker


def translate(**settings: Any) -> TranslateOffsetsOperator:
    with DAG("failover", schedule=None):
        return TranslateOffsetsOperator(task_id="translate", **settings)


def plan_of(worker: Worker) -> FailoverPlan:
    return FailoverPlan.from_json(worker.xcoms["translate", "return_value"])
