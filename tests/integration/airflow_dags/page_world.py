"""Tasks whose pages ``test_page`` looks at; positions come with the run's conf."""

from typing import Any

from airflow.sdk import DAG, BaseOperator, Context

from airflow_mm2_offsets.core.partition_plan import PartitionPlan
from airflow_mm2_offsets.core.plan import FailoverPlan
from airflow_mm2_offsets.core.result import Basis, Status, Strategy, Translation
from airflow_mm2_offsets.moves.request import MoveRequest
from airflow_mm2_offsets.operators.check import CheckFailoverOperator
from airflow_mm2_offsets.operators.links import page_links
from airflow_mm2_offsets.operators.report import ReportFailoverOperator
from airflow_mm2_offsets.operators.translate import TranslateOffsetsOperator

ROWS = 10_000
MOVE = MoveRequest(job="orders")
"""Of the job in the file of jobs of ``contract.airflow_jobs``."""
MARKUP = "<script>document.title='owned'</script><img src=x onerror=document.title='owned'>"


class BigPlanOperator(BaseOperator):
    """Returns a plan of many partitions, one of them refused, one with markup in its reason."""

    operator_extra_links = page_links("plan")

    def execute(self, context: Context) -> dict[str, Any]:  # noqa: ARG002 - as Airflow calls it
        """Return the plan."""
        plan = FailoverPlan(
            created_at="2026-01-01T00:00:00+00:00",
            strategy=Strategy.SAFE,
            syncs_read=1,
            syncs_skipped=0,
            partitions=tuple(_partition(number) for number in range(ROWS)),
        )
        return plan.to_json()


def _partition(number: int) -> PartitionPlan:
    is_refused = number == 7777
    translation = Translation(
        topic="wide",
        partition=number,
        position=1000 + number,
        status=Status.REFUSED if is_refused else Status.BOUNDED,
        basis=Basis.EXPIRED if is_refused else Basis.BETWEEN_SYNCS,
        reason=MARKUP if number == 4242 else "between two syncs",
        target=None if is_refused else 500 + number,
        low=None if is_refused else 500 + number,
        high=None if is_refused else 500 + number + number % 100,
    )
    return PartitionPlan(translation=translation, target_topic="source.wide")


with DAG("page_world", schedule=None):
    check = CheckFailoverOperator(task_id="check", move=MOVE, timeout=5)
    translate = TranslateOffsetsOperator(
        task_id="translate", positions="{{ dag_run.conf['positions'] | tojson }}"
    )
    report = ReportFailoverOperator(task_id="report", move=MOVE)
    [check, translate, BigPlanOperator(task_id="big")] >> report
