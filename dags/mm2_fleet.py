"""Moves many streaming jobs to one Kafka cluster, in waves.

An example to copy. The file of jobs (``[mm2_offsets] jobs_file`` in Airflow's configuration) lists
them, and their journals say where they are now: docs/fleet.md. The run says what the moves would
cost, asks for one approval over the total, and moves the jobs wave by wave, each as the DAG
``mm2_failover`` does. Trigger it again after a failure: it moves only what is left.
"""

from airflow.sdk import DAG, Param

from airflow_mm2_offsets.task_groups.fleet import fleet_tasks

with DAG(
    dag_id="mm2_fleet",
    description="Moves many streaming jobs to one Kafka cluster",
    doc_md=__doc__,
    schedule=None,
    catchup=False,
    # Each job is kept from another run by its journal. Give it more than at_once times the jobs'
    # own tasks that wait in a worker: here all wait in the triggerer.
    max_active_runs=4,
    max_active_tasks=32,
    tags=["mm2", "spark"],
    params={
        "to": Param(
            "west",
            type="string",
            minLength=1,
            title="To",
            description="The cluster that the jobs go to. A job that is there already stays.",
        ),
        "jobs": Param(
            default=None,
            type=["null", "string"],
            title="Jobs",
            description="Their names in the file of jobs, separated by commas. Empty: all that "
            "have a home there.",
        ),
        "out_of": Param(
            default=None,
            type=["null", "string"],
            title="Out of",
            description="Only jobs with their other home at this cluster. Empty: at any.",
        ),
        "policy": Param(
            "planned",
            type="string",
            enum=["planned", "disaster"],
            title="Policy",
            description="planned: both clusters are up. disaster: the cluster where the jobs are, "
            "or a part of it, is lost.",
        ),
        "dry_run": Param(
            default=False,
            type="boolean",
            title="Dry run",
            description="Say what each step would do, and change nothing.",
        ),
        "approve": Param(
            "above_thresholds",
            type="string",
            enum=["above_thresholds", "always", "never"],
            title="Approval",
            description="When a person is asked, before the first wave. A job that costs more than "
            "was approved for it asks again, unless it is never.",
        ),
        "at_once": Param(
            5,
            type="integer",
            minimum=1,
            title="Jobs at once",
            description="How many jobs of a wave may be at work at the same time.",
        ),
        "source_is_gone": Param(
            default=False,
            type="boolean",
            title="No driver runs there",
            description="Where a job's folder can't be reached: you are sure that no driver of it "
            "runs, and that none will be started there.",
            section="Disaster",
        ),
    },
) as dag:
    fleet_tasks(
        to="{{ params.to }}",
        jobs="{{ params.jobs or '' }}",
        out_of="{{ params.out_of or '' }}",
        policy="{{ params.policy }}",
        dry_run="{{ params.dry_run }}",
        source_is_gone="{{ params.source_is_gone }}",
        approve="{{ params.approve }}",
        at_once="{{ params.at_once }}",
    )
