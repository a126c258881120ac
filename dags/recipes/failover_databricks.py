"""Moves a streaming job that runs on Databricks.

Needs ``apache-airflow-providers-databricks``. The cancel ends the job's run by its id. The submit
gives Databricks an ``idempotency_token`` that derives from this DAG run: of a second try it returns
the run of the first.

What can bring the job back: a *continuous* job starts a new run after a cancel, a schedule or
``max_retries`` may: pause the job (``pause_status``) before the failover. A run of its own
(``runs/submit``) comes back by ``max_retries`` of its task alone.

The login is a secret in a scope. Databricks puts it where its own braces name it; Airflow must not
take them for a template, so they stand in a template. Never put it into ``parameters``, which
Databricks shows.
"""

from functools import partial

from airflow.providers.databricks.hooks.databricks import DatabricksHook
from airflow.providers.databricks.operators.databricks import DatabricksSubmitRunOperator
from airflow.providers.standard.operators.python import PythonOperator
from airflow.sdk import DAG, Param

from airflow_mm2_offsets.task_groups import failover_tasks, from_hand_over

ARGUMENTS = [
    *("--bootstrap-servers", '{{ conn.get("kafka_target").extra_dejson["bootstrap.servers"] }}'),
    *("--topic", from_hand_over("topic")),
    *("--starting-offsets", from_hand_over("starting_offsets")),
    *("--checkpoint", f"{from_hand_over('folder')}/checkpoint"),
    *("--output", f"{from_hand_over('folder')}/output"),
    *("--kafka-properties", "{{ params.kafka_properties }}"),
]
"""Of the job; a login is in the file that the last one names, and never an argument."""

JOB = {
    "tasks": [
        {
            "task_key": "stream",
            "max_retries": 0,
            "spark_python_task": {
                "python_file": "dbfs:/jobs/orders_stream.py",
                "parameters": ARGUMENTS,
            },
            "new_cluster": {
                "spark_version": "16.4.x-scala2.13",
                "node_type_id": "i3.xlarge",
                "num_workers": 2,
                # An init script writes it to the file that the last argument names.
                "spark_env_vars": {
                    "KAFKA_CLIENT_PROPERTIES": "{{ '{{secrets/kafka/target-client-properties}}' }}"
                },
                "init_scripts": [{"workspace": {"destination": "/jobs/write_kafka_login.sh"}}],
            },
        }
    ]
}


def cancel(run_id: str) -> None:
    """Cancel the run of the job; Databricks ends it within seconds."""
    DatabricksHook("databricks_default").cancel_run(int(run_id))


with DAG(
    dag_id="failover_databricks",
    description="Moves a streaming job that runs on Databricks",
    doc_md=__doc__,
    schedule=None,
    catchup=False,
    tags=["mm2", "spark"],
    params={
        "job": Param(
            "orders",
            type="string",
            title="Job",
            description="Its name in the file of jobs: without dag, is_controlled false.",
        ),
        "policy": Param(
            "planned",
            type="string",
            enum=["planned", "disaster"],
            title="Policy",
            description="As in mm2_failover.",
        ),
        "dry_run": Param(
            default=False,
            type="boolean",
            title="Dry run",
            description="Say what each step would do, and change nothing.",
        ),
        "kafka_properties": Param(
            "/etc/kafka/target/client.properties",
            type="string",
            title="Kafka properties",
            description="A file that the driver reads: the job's login at the target.",
        ),
        "databricks_run_id": Param(
            "0",
            type="string",
            title="Run of the job",
            description="The id of the run that streams on the source.",
        ),
    },
) as dag:
    failover_tasks(
        job="{{ params.job }}",
        policy="{{ params.policy }}",
        dry_run="{{ params.dry_run }}",
        stop=partial(
            PythonOperator,
            python_callable=cancel,
            op_kwargs={"run_id": "{{ params.databricks_run_id }}"},
        ),
        submit=partial(
            DatabricksSubmitRunOperator,
            run_name="orders-stream",
            json=JOB,
            idempotency_token=from_hand_over("token"),
            wait_for_termination=False,  # a streaming job never ends
        ),
        submit_is_idempotent=True,
        # More than the job's trigger interval, and than the platform takes to end a driver.
        arguments={"stop_source": {"quiet_period": 120}},
    )
