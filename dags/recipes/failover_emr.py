"""Moves a streaming job that runs as a step of a cluster of Amazon EMR.

Needs ``apache-airflow-providers-amazon``. The cancel terminates the job's cluster: give each
streaming job a cluster of its own. (A step alone is cancelled by ``EmrHook().conn.cancel_steps``
with ``TERMINATE_PROCESS``, for which the provider has no operator.) ``AddJobFlowSteps`` takes no
token, so a second try of the submit may start a second job: the group refuses it while the first
one's job has begun no checkpoint, and says where to look.

What can bring the job back: YARN starts a driver anew (``spark.yarn.maxAppAttempts``, here 1); a
terminated cluster starts nothing.

The login is a file that a bootstrap action fetches, such as from AWS Secrets Manager. The console
shows the arguments of a step.
"""

from functools import partial

from airflow.providers.amazon.aws.operators.emr import (
    EmrAddStepsOperator,
    EmrTerminateJobFlowOperator,
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

STEP = {
    "Name": from_hand_over("token"),
    "ActionOnFailure": "CONTINUE",
    "HadoopJarStep": {
        "Jar": "command-runner.jar",
        "Args": [
            *("spark-submit", "--deploy-mode", "cluster", "--conf", "spark.yarn.maxAppAttempts=1"),
            *("s3://eu/jobs/orders_stream.py", *ARGUMENTS),
        ],
    },
}


with DAG(
    dag_id="failover_emr",
    description="Moves a streaming job that runs on a cluster of Amazon EMR",
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
        "source_cluster": Param(
            "j-SOURCE",
            type="string",
            title="Cluster of the job",
            description="Its id; it is terminated.",
        ),
        "target_cluster": Param(
            "j-TARGET",
            type="string",
            title="Cluster of the target job",
            description="Its id; the step is added to it.",
        ),
    },
) as dag:
    failover_tasks(
        job="{{ params.job }}",
        policy="{{ params.policy }}",
        dry_run="{{ params.dry_run }}",
        stop=partial(EmrTerminateJobFlowOperator, job_flow_id="{{ params.source_cluster }}"),
        submit=partial(
            EmrAddStepsOperator, job_flow_id="{{ params.target_cluster }}", steps=[STEP]
        ),
        # More than the job's trigger interval, and than the platform takes to end a driver.
        arguments={"stop_source": {"quiet_period": 120}},
    )
