"""Moves a streaming job that runs on Amazon EMR Serverless.

Needs ``apache-airflow-providers-amazon``. The cancel ends the job run by its id. The submit gives
``clientToken`` in ``config``, which is a template; the operator's own ``client_request_token`` is
none, and is a new one in each try.

What can bring the job back: ``mode: STREAMING`` and a ``retryPolicy`` start the job again after a
failure, not after a cancel.

The login is a file that the job's image or a ``spark.archives`` brings, or a secret of AWS Secrets
Manager (``EMR.secret@<arn>`` in the application's configuration). ``entryPointArguments`` are shown
in the console.
"""

from functools import partial

from airflow.providers.amazon.aws.hooks.emr import EmrServerlessHook
from airflow.providers.amazon.aws.operators.emr import EmrServerlessStartJobOperator
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


def cancel(application_id: str, job_run_id: str) -> None:
    """Cancel the job's run."""
    EmrServerlessHook().conn.cancel_job_run(applicationId=application_id, jobRunId=job_run_id)


with DAG(
    dag_id="failover_emr_serverless",
    description="Moves a streaming job that runs on Amazon EMR Serverless",
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
        "application": Param(
            "00application",
            type="string",
            title="Application",
            description="The EMR Serverless application of both jobs.",
        ),
        "job_run": Param(
            "00jobrun",
            type="string",
            title="Run of the job",
            description="The id of the job run that streams on the source.",
        ),
        "role": Param(
            "arn:aws:iam::123456789012:role/orders",
            type="string",
            title="Role",
            description="The execution role of the target job.",
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
            op_kwargs={
                "application_id": "{{ params.application }}",
                "job_run_id": "{{ params.job_run }}",
            },
        ),
        submit=partial(
            EmrServerlessStartJobOperator,
            application_id="{{ params.application }}",
            execution_role_arn="{{ params.role }}",
            job_driver={
                "sparkSubmit": {
                    "entryPoint": "s3://eu/jobs/orders_stream.py",
                    "entryPointArguments": ARGUMENTS,
                }
            },
            name="orders-stream",
            config={"clientToken": from_hand_over("token"), "mode": "STREAMING"},
            wait_for_completion=False,  # a streaming job never ends
        ),
        submit_is_idempotent=True,
        # More than the job's trigger interval, and than the platform takes to end a driver.
        arguments={"stop_source": {"quiet_period": 120}},
    )
