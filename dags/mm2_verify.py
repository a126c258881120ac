"""Compares what a job's last move has moved: records on both clusters, and rows in both outputs.

An example to copy. Run it after ``mm2_failover``, at any time: a Spark job of its own counts what
was lost and what was written twice.
"""

from airflow.sdk import DAG, Param

from airflow_mm2_offsets.moves.request import MoveRequest
from airflow_mm2_offsets.operators.reconcile import ReconcileOperator
from airflow_mm2_offsets.operators.run_conf import check_run_conf

with DAG(
    dag_id="mm2_verify",
    description="Compares what a job's last move has moved",
    doc_md=__doc__,
    schedule=None,
    catchup=False,
    tags=["mm2", "spark"],
    params={
        "job": Param(
            "orders",
            type="string",
            minLength=1,
            title="Job",
            description="Its name in the file of jobs.",
        ),
    },
) as dag:
    ReconcileOperator(
        task_id="verify",
        pre_execute=check_run_conf,
        move=MoveRequest(job="{{ params.job }}"),
        # A lost worker leaves its Spark driver behind, which may still write the report.
        retries=0,
    )
