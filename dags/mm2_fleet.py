"""Moves all streaming jobs of a manifest to the other Kafka cluster, in waves.

An example to copy. The manifest is a file in YAML that lists the jobs: docs/fleet.md explains it,
and what is held when a job fails. It is read when the DAG runs, never when the DAG is parsed.

The run reads the manifest, archives the offset syncs once for all jobs, says what the failover
would cost from where the jobs stand, and asks for one approval over the total. Then it moves the
jobs wave by wave, each as the DAG ``mm2_failover`` does. Trigger it again with the same manifest
after a failure: it moves only what is left.
"""

from airflow.sdk import DAG, Param

from airflow_mm2_offsets.task_groups.fleet import fleet_tasks

with DAG(
    dag_id="mm2_fleet",
    description="Moves all streaming jobs of a manifest to the other Kafka cluster",
    doc_md=__doc__,
    schedule=None,
    catchup=False,
    # Each job is kept from another run by its fence. Give it more than at_once times the jobs' own
    # tasks that wait in a worker: here all wait in the triggerer.
    max_active_runs=4,
    max_active_tasks=32,
    render_template_as_native_obj=False,
    tags=["mm2", "spark"],
    params={
        "manifest": Param(
            "/tmp/mm2-fleet.yaml",  # noqa: S108 - an example
            type="string",
            title="Manifest",
            description="The file that lists the jobs, on any storage that Airflow reaches.",
        ),
        "mode": Param(
            "planned",
            type="string",
            enum=["planned", "disaster"],
            title="Mode",
            description="planned: both clusters are up. disaster: the source or a part of it is "
            "lost.",
        ),
        "mm2_conn_id": Param(
            "mm2_default",
            type="string",
            title="MirrorMaker 2 connection",
            description="Id of the mm2 connection, which names the two clusters.",
        ),
        "archive": Param(
            "/tmp/mm2-syncs",  # noqa: S108 - an example
            type=["null", "string"],
            title="Archive of offset syncs",
            description="The folder that mm2_archive_syncs writes; this run adds what is new. "
            "Empty: there is none, as where copies keep their offsets.",
        ),
        "at_once": Param(
            5,
            type="integer",
            minimum=1,
            title="Jobs at once",
            description="How many jobs of a wave may be at work at the same time.",
        ),
        "approve": Param(
            "above_thresholds",
            type="string",
            enum=["above_thresholds", "always", "never"],
            title="Ask for approval",
            description="When a person must approve the total before the first wave. A job that "
            "costs more than was approved for it asks again, unless it is never.",
        ),
        "approval_minutes": Param(
            60,
            type="integer",
            minimum=1,
            title="Deadline of an approval",
            description="Minutes to wait for an answer. Without one nothing more is moved.",
        ),
        "reports_folder": Param(
            "/tmp/mm2-fleet-reports",  # noqa: S108 - an example
            type="string",
            title="Folder of the reports",
            description="Where the reports of the jobs and of the fleet are kept.",
        ),
    },
) as dag:
    fleet_tasks(
        manifest="{{ params.manifest }}",
        archive="{{ params.archive or '' }}",
        waves=3,
        at_once="{{ params.at_once }}",
        mode="{{ params.mode }}",
        ask="{{ params.approve }}",
        response_timeout="{{ params.approval_minutes * 60 }}",
        mm2_conn_id="{{ params.mm2_conn_id }}",
        source_kafka_conn_id=(
            "{{ conn.get(params.mm2_conn_id).extra_dejson.get('source_kafka_conn_id') "
            "or 'kafka_source' }}"
        ),
        target_kafka_conn_id=(
            "{{ conn.get(params.mm2_conn_id).extra_dejson.get('target_kafka_conn_id') "
            "or 'kafka_target' }}"
        ),
        reports_folder="{{ params.reports_folder }}",
    )
