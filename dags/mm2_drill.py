"""Rehearses the failover of the streaming job every week, and leaves no trace.

An example to copy. It triggers ``mm2_failover`` in the mode drill and waits for its end: the job
runs on, and a second run of its DAG starts on the target in a throw-away folder, is compared with
the source, and is removed. A failed run of this DAG says that a failover would not work now; the
report of the triggered run says why, and how long each step took.

It holds up no failover: ``mm2_failover`` may have several runs at a time.
"""

from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
from airflow.sdk import DAG, Param
from airflow.timetables.trigger import CronTriggerTimetable

from airflow_mm2_offsets.operators.run_conf import check_run_conf

with DAG(
    dag_id="mm2_drill",
    description="Rehearses the failover of a Spark streaming job every week",
    doc_md=__doc__,
    # When those who would mend what it finds are at work.
    schedule=CronTriggerTimetable("0 9 * * TUE", timezone="UTC"),
    catchup=False,
    max_active_runs=1,
    tags=["mm2", "spark"],
    params={
        "mm2_conn_id": Param(
            "mm2_default",
            type="string",
            title="MirrorMaker 2 connection",
            description="Id of the mm2 connection, which names the two clusters.",
        ),
        "stream_dag_id": Param(
            "orders_stream",
            type="string",
            title="DAG of the job",
            description="The DAG that runs the job; a second run of it starts on the target.",
        ),
        "source_folder": Param(
            default=None,
            type=["null", "string"],
            title="Folder of the job on the source",
            description="Holds its checkpoint and its control location. It is only read. Empty: "
            "as in mm2_failover.",
        ),
        "target_folder": Param(
            default=None,
            type=["null", "string"],
            title="Folder of the job on the target",
            description="Where a failover would start the job. The drill keeps away from it. "
            "Empty: as in mm2_failover.",
        ),
        "drill_folder": Param(
            "/tmp/orders/drill",  # noqa: S108 - an example
            type="string",
            title="Folder of the drill",
            description="Holds checkpoint, control and output of the drill's job, and is removed "
            "with all that it holds. Must lie apart from every other folder.",
        ),
        "sink": Param(
            "",
            type="string",
            title="Output of the job, if elsewhere",
            description="A folder or table outside its folder. A drill would write there, too, so "
            "it is refused.",
        ),
        "archive": Param(
            "",
            type="string",
            title="Archive of offset syncs",
            description="As mm2_archive_syncs has it. The drill keeps away from it.",
        ),
        "saved_positions": Param(
            "",
            type="string",
            title="Saved positions",
            description="As mm2_archive_syncs has them. The drill keeps away from them.",
        ),
        "reports_folder": Param(
            "",
            type="string",
            title="Reports",
            description="Empty: the folder reports in the target's folder.",
        ),
    },
) as dag:
    TriggerDagRunOperator(
        task_id="drill",
        pre_execute=check_run_conf,
        trigger_dag_id="mm2_failover",
        trigger_run_id="drill__{{ run_id }}",
        conf={
            "mode": "drill",
            # Empty text: mm2_failover then takes its own default.
            **{name: f"{{{{ params.{name} or '' }}}}" for name in dag.params},
        },
        wait_for_completion=True,
        poke_interval=15,
        deferrable=True,
        # A drill that failed is a finding; the next one comes in a week, or by hand.
        retries=0,
    )
