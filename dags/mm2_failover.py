"""Moves a Spark streaming job to its other cluster, or home: one run, one job.

An example to copy. The file of jobs (``[mm2_offsets] jobs_file`` in Airflow's configuration) says
where each job lives, and its journal where it is now. docs/runbook.md has each step.
"""

from airflow.sdk import DAG, Param

from airflow_mm2_offsets.task_groups import failover_tasks

MORE = "More: direction, approval, disaster, translation"
"""Folded in Airflow's form, which then fits on a screen."""

with DAG(
    dag_id="mm2_failover",
    description="Moves a streaming job to its other Kafka cluster",
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
            description="Its name in the file of jobs. Its journal says where it is, and so where "
            "it goes.",
        ),
        "policy": Param(
            "planned",
            type="string",
            enum=["planned", "disaster"],
            title="Policy",
            description="planned: both clusters are up. disaster: the cluster where the job is, or "
            "a part of it, is lost.",
        ),
        "dry_run": Param(
            default=False,
            type="boolean",
            title="Dry run",
            description="Say what each step would do, and change nothing.",
        ),
        "to": Param(
            default=None,
            type=["null", "string"],
            title="To cluster",
            description="The cluster that it goes to, by its alias. Empty: its other one. With a "
            "name, a second run moves no job back that is there already.",
            section=MORE,
        ),
        "approve": Param(
            "above_thresholds",
            type="string",
            enum=["above_thresholds", "always", "never"],
            title="Approval",
            description="When a person is asked before the job is started there.",
            section=MORE,
        ),
        "on_failure": Param(
            "withdraw",
            type="string",
            enum=["withdraw", "restart", "keep"],
            title="After a failure",
            description="Before the job is handed over: let it run where it was, start it there "
            "again, or undo nothing.",
            section=MORE,
        ),
        "positions": Param(
            default=None,
            type=["null", "string"],
            title="Positions",
            description="The job's positions as Spark's JSON text, if neither its checkpoint nor "
            "saved positions have them.",
            section=MORE,
        ),
        "source_is_gone": Param(
            default=False,
            type="boolean",
            title="No driver runs there",
            description="Where the job's folder can't be reached: you are sure that no driver of "
            "it runs, and that none will be started there.",
            section=MORE,
        ),
        # A text: Airflow's editor of an object formats it while it is typed.
        "options": Param(
            default=None,
            type=["null", "string", "object"],
            title="Options of the translation",
            description="JSON, as TranslateOffsetsOperator takes them. In a disaster, when the "
            'source stopped taking writes: {"lost_at": "2026-11-21T03:12:00+00:00"}',
            section=MORE,
        ),
    },
) as dag:
    failover_tasks(
        job="{{ params.job }}",
        to="{{ params.to or '' }}",
        policy="{{ params.policy }}",
        dry_run="{{ params.dry_run }}",
        source_is_gone="{{ params.source_is_gone }}",
        positions="{{ params.positions or '' }}",
        options="{{ params.options if params.options is string "
        "else params.options | tojson if params.options else '' }}",
        approve="{{ params.approve }}",
        on_failure="{{ params.on_failure }}",
        group_id="failover",
        prefix_group_id=False,
    )
