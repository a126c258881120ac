"""Moves a streaming job that the Spark operator runs on Kubernetes, as a SparkApplication.

Needs ``apache-airflow-providers-cncf-kubernetes``. The cancel deletes the SparkApplication, and
with it its driver; where there is none of that name it fails, and moves nothing. The submit creates
another one, named by the run: of a second try Kubernetes creates none (``409 AlreadyExists``). The
operator repeats a call that Kubernetes refused for a moment, and has nothing left to create then:
it may succeed without an application. ``wait_started`` then ends; clear ``start_target``.
``SparkKubernetesOperator`` waits for the end of its driver, which a streaming job never has: so a
failover creates the resource. To keep the operator, let it run the job in a DAG of its own, and
name that as the ``dag`` of the job.

What can bring the job back: ``restartPolicy`` of the old SparkApplication ends with the deletion; a
GitOps tool (Argo CD, Flux) or a ScheduledSparkApplication creates it again: take it out there
first.

The login is a Secret, mounted into driver and executors as a file.
"""

from functools import partial

import yaml
from airflow.providers.cncf.kubernetes.operators.resource import (
    KubernetesCreateResourceOperator,
    KubernetesDeleteResourceOperator,
)
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

KIND = {"apiVersion": "sparkoperator.k8s.io/v1beta2", "kind": "SparkApplication"}
OLD = {**KIND, "metadata": {"name": "{{ params.application }}", "namespace": "spark"}}
"""The job on the source; the Kafka cluster is another one afterwards, Kubernetes need not be."""
LOGIN = {
    "secrets": [{"name": "kafka-target", "path": "/etc/kafka/target", "secretType": "Generic"}]
}
NEW = {
    **KIND,
    "metadata": {"name": from_hand_over("token"), "namespace": "spark"},
    "spec": {
        "type": "Python",
        "mode": "cluster",
        "image": "registry.example/orders-stream:1",
        "mainApplicationFile": "local:///opt/jobs/orders_stream.py",
        "sparkVersion": "4.0.0",
        "arguments": ARGUMENTS,
        # The platform keeps the job alive; its own checkpoint says where it goes on.
        "restartPolicy": {"type": "Always"},
        "driver": {"cores": 1, "memory": "2g", "serviceAccount": "spark", **LOGIN},
        "executor": {"instances": 2, "cores": 1, "memory": "2g", **LOGIN},
    },
}


with DAG(
    dag_id="failover_spark_kubernetes",
    description="Moves a streaming job that runs on Kubernetes",
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
            "orders-stream",
            type="string",
            title="SparkApplication",
            description="The name of the job's SparkApplication on the source.",
        ),
    },
) as dag:
    failover_tasks(
        job="{{ params.job }}",
        policy="{{ params.policy }}",
        dry_run="{{ params.dry_run }}",
        stop=partial(
            KubernetesDeleteResourceOperator,
            yaml_conf=yaml.safe_dump(OLD),
            custom_resource_definition=True,
        ),
        submit=partial(
            KubernetesCreateResourceOperator,
            yaml_conf=yaml.safe_dump(NEW, width=10**6),
            custom_resource_definition=True,
        ),
        submit_is_idempotent=True,
        # More than the job's trigger interval, and than the platform takes to end a driver.
        arguments={"stop_source": {"quiet_period": 120}},
    )
