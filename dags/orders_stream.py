"""Runs the streaming job of the topic orders, on either cluster.

An example to copy. The job never ends by itself: its run lasts until the DAG ``mm2_failover``, or
another request in its control location, stops it, and then succeeds.

Spark needs its Kafka source: put it into the ``spark-defaults.conf`` of the machine that
submits, as ``spark.jars.packages org.apache.spark:spark-sql-kafka-0-10_2.13:<Spark's version>``.

Where a cluster demands a login, give the job its own: the Airflow variable
``kafka_properties_folder`` names a folder where the driver runs, with a file of Kafka client
properties for each connection, such as ``kafka_source.properties``. docs/security.md has an
example.
"""

from datetime import timedelta
from pathlib import Path

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import DAG, Param

from airflow_mm2_offsets.job import py_files

KAFKA_PROPERTIES = (
    "{% set folder = var.value.get('kafka_properties_folder', '') %}"
    "{{ folder and folder ~ '/' ~ params.kafka_conn_id ~ '.properties' }}"
)
"""By the connection: the failover names that of the cluster where the job is to run."""

with DAG(
    dag_id="orders_stream",
    description="The streaming job of the topic orders",
    doc_md=__doc__,
    schedule=None,
    catchup=False,
    tags=["mm2", "spark"],
    user_defined_macros={"py_files": py_files},  # packed when the task runs, not at each parsing
    params={
        "kafka_conn_id": Param(
            "kafka_source",
            type="string",
            title="Kafka connection",
            description="Id of the kafka connection of the cluster to read from.",
        ),
        "topic": Param(
            "orders",
            type="string",
            title="Topic",
            description="The topic's name on that cluster.",
        ),
        "folder": Param(
            "/tmp/orders/source",  # noqa: S108 - an example
            type="string",
            title="Folder of the job",
            description="The job's home: has its checkpoint and control on this cluster, and where "
            "a failover lets it start. Never shared by two clusters. Any location that Spark and "
            "Airflow both reach.",
        ),
        "output": Param(
            default=None,
            type=["null", "string"],
            title="Output",
            description="Where the job writes: for this cluster and this checkpoint alone. Empty: "
            "the folder output in the job's folder.",
        ),
    },
) as dag:
    SparkSubmitOperator(
        task_id="stream",
        application=str(Path(__file__).parent / "jobs" / "orders_stream.py"),
        py_files="{{ py_files() }}",
        name="orders-stream-{{ params.kafka_conn_id }}",
        application_args=[
            "--bootstrap-servers",
            "{{ conn.get(params.kafka_conn_id).extra_dejson['bootstrap.servers'] }}",
            "--kafka-properties",
            KAFKA_PROPERTIES,
            "--topic",
            "{{ params.topic }}",
            "--home",
            "{{ params.folder }}",
            "--output",
            "{{ params.output or params.folder ~ '/output' }}",
        ],
        # StopControl lets one driver run: a retry beside one that outlived its worker ends, and
        # after one that died it goes on from the checkpoint.
        retries=2,
        retry_delay=timedelta(seconds=30),
    )
