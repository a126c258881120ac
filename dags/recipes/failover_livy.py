"""Moves a streaming job that was submitted as a batch of Apache Livy.

Needs ``apache-airflow-providers-apache-livy``. The cancel deletes the batch: Livy kills its
application. The submit names the batch after the run, and Livy refuses a second one of that name
(``Duplicate session name``).

What can bring the job back: YARN starts a driver anew (``spark.yarn.maxAppAttempts``, here 1).

The login is a file on the machines of the cluster. Livy's REST API shows ``args`` and ``conf``.
"""

from functools import partial

from airflow.providers.apache.livy.hooks.livy import LivyHook
from airflow.providers.apache.livy.operators.livy import LivyOperator
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


def cancel(batch_id: str) -> None:
    """Delete the batch of the job."""
    LivyHook().delete_batch(int(batch_id))


with DAG(
    dag_id="failover_livy",
    description="Moves a streaming job that runs on Apache Livy",
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
        "batch_id": Param(
            "0",
            type="string",
            title="Batch of the job",
            description="The id of the batch that streams on the source.",
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
            op_kwargs={"batch_id": "{{ params.batch_id }}"},
        ),
        submit=partial(
            LivyOperator,
            file="s3://eu/jobs/orders_stream.py",
            name=from_hand_over("token"),
            args=ARGUMENTS,
            conf={"spark.submit.deployMode": "cluster", "spark.yarn.maxAppAttempts": "1"},
            polling_interval=0,  # a streaming job never ends
        ),
        submit_is_idempotent=True,
        # More than the job's trigger interval, and than the platform takes to end a driver.
        arguments={"stop_source": {"quiet_period": 120}},
    )
