"""Moves a streaming job that runs on Google Cloud Dataproc.

Needs ``apache-airflow-providers-google``. The cancel ends the job by its id. The submit gives the
job an id that derives from this DAG run: of a second try Dataproc starts none (``ALREADY_EXISTS``).

What can bring the job back: ``max_failures_per_hour`` (a restartable job) and YARN's attempts
(``spark.yarn.maxAppAttempts``, here 1).

The login is a file that an initialization action fetches, such as from Secret Manager. The console
shows a job's arguments and properties.
"""

from functools import partial

from airflow.providers.google.cloud.hooks.dataproc import DataprocHook
from airflow.providers.google.cloud.operators.dataproc import DataprocSubmitJobOperator
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
    "reference": {"job_id": from_hand_over("token")},
    "placement": {"cluster_name": "{{ params.cluster }}"},
    "pyspark_job": {
        "main_python_file_uri": "gs://eu/jobs/orders_stream.py",
        "args": ARGUMENTS,
        "properties": {
            "spark.submit.deployMode": "cluster",
            "spark.yarn.maxAppAttempts": "1",
        },
    },
}


def cancel(job_id: str, project_id: str, region: str) -> None:
    """Cancel the job."""
    DataprocHook().cancel_job(job_id=job_id, project_id=project_id, region=region)


with DAG(
    dag_id="failover_dataproc",
    description="Moves a streaming job that runs on Google Cloud Dataproc",
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
        "job_id": Param(
            "orders-stream",
            type="string",
            title="Job",
            description="The id of the job that streams on the source.",
        ),
        "cluster": Param(
            "target",
            type="string",
            title="Cluster",
            description="The cluster where the target job is to run.",
        ),
        "project": Param(
            "project",
            type="string",
            title="Project",
            description="The Google Cloud project.",
        ),
        "region": Param(
            "europe-west1",
            type="string",
            title="Region",
            description="The region of both jobs.",
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
                "job_id": "{{ params.job_id }}",
                "project_id": "{{ params.project }}",
                "region": "{{ params.region }}",
            },
        ),
        submit=partial(
            DataprocSubmitJobOperator,
            job=JOB,
            project_id="{{ params.project }}",
            region="{{ params.region }}",
            asynchronous=True,  # a streaming job never ends
        ),
        submit_is_idempotent=True,
        # More than the job's trigger interval, and than the platform takes to end a driver.
        arguments={"stop_source": {"quiet_period": 120}},
    )
