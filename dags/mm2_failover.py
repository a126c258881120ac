"""Moves a Spark streaming job from one Kafka cluster to the other.

An example to copy. The param ``mode`` says why the job is moved: ``planned`` while both clusters
are up, ``disaster`` when the source or a part of it is lost, ``drill`` to rehearse in a throw-away
folder while the job runs on, ``failback`` to bring a moved job home. docs/runbook.md has a page for
each.

It stops the job and waits for the proof of the stop, reads the positions from
the job's checkpoint, waits until MirrorMaker 2 has copied everything before them, translates them,
starts the same job against the target cluster from there, and ends when that job has committed its
first batch. With ``verify`` it then compares both clusters and the job's output around the switch,
record by record, while the job runs.

A job that has died does not answer, and one that hangs may never stop. The failover then fails
after ten minutes, and nothing has moved. The param ``heartbeat_timeout`` accepts silence as an
end, and ``kill_after`` kills the job. Both are empty by default; in a disaster,
``heartbeat_timeout`` is then 60 seconds.

The first task checks all that can be checked before the stop. You may clear every task, and Airflow
retries it after the loss of a worker or a server: the stop is requested once, the plan is made once
and kept in a file, and the target job starts once, because its run id derives from this run's.
Before the start, the task compares all that was read with the present: if the source job was
started again, nothing is started on the target.

The waits run in the triggerer. If your Airflow has none, give ``failover_tasks`` the argument
``deferrable=False``.

The folders that the form leaves empty are those of the Airflow variables ``mm2_source_folder``,
``mm2_target_folder`` and ``mm2_archive``, which are read when a task runs.

The stop leaves a fence in the job's control location. Until the fence is lifted no driver of the
job runs there, and no other run moves it.
"""

from airflow.sdk import DAG, Param

from airflow_mm2_offsets.task_groups import failover_tasks

SPARK_NAMES = {
    f"spark_{name}": f"{{{{ params.spark_folder ~ '/{name}' if params.spark_folder else '' }}}}"
    for name in ("checkpoint", "control")
}

MM2_CONN_ID = "{{ params.mode == 'failback' and params.reverse_mm2_conn_id or params.mm2_conn_id }}"


HEARTBEAT_TIMEOUT = (
    "{% set silence = 60 if params.mode == 'disaster' else None %}"
    "{% set silence = silence if params.kill_after is none or params.kill_after > 60 else None %}"
    "{{ params.heartbeat_timeout or silence }}"
)
"""In a disaster a silent driver counts as dead: nobody can answer."""
SOURCE = "(params.source_folder or var.value.get('mm2_source_folder', '/tmp/orders/source'))"
TARGET = "(params.target_folder or var.value.get('mm2_target_folder', '/tmp/orders/target'))"
"""Where the job runs, and where it is to run: expressions of templates, read when a task runs."""
IN_A_DISASTER = "var.value.get('mm2_archive', '') if params.mode == 'disaster' else ''"
ARCHIVE = f"{{{{ params.archive or ({IN_A_DISASTER}) }}}}"
DRILL_FOLDER = f"(params.drill_folder or {TARGET} ~ '-drill')"
TARGET_FOLDER = f"{{{{ {DRILL_FOLDER} if params.mode == 'drill' else {TARGET} }}}}"
SOURCE_OUTPUT = f"{{{{ params.source_sink or {SOURCE} ~ '/output' }}}}"
TARGET_OUTPUT = (
    f"{{{{ {DRILL_FOLDER} ~ '/output' if params.mode == 'drill' "
    f"else params.sink or {TARGET} ~ '/output' }}}}"
)
"""A drill's job writes in the drill's folder."""


def kafka_conn_id(side: str, *, exchanged: str) -> str:
    """Return a template of the Kafka connection of a side; a failback may exchange the sides."""
    return (
        "{% set back = params.mode == 'failback' %}"
        f"{{% set side = '{exchanged}' if back and not params.reverse_mm2_conn_id else '{side}' %}}"
        "{% set id = back and params.reverse_mm2_conn_id or params.mm2_conn_id %}"
        "{{ conn.get(id).extra_dejson.get(side ~ '_kafka_conn_id') or 'kafka_' ~ side }}"
    )


with DAG(
    dag_id="mm2_failover",
    description="Moves a Spark streaming job to the other Kafka cluster",
    doc_md=__doc__,
    schedule=None,
    catchup=False,
    # Several jobs may have to move in one night, and a drill may run: a failover of one job is kept
    # from another one of the same job by the job's fence and lock, and not by the queue.
    max_active_runs=16,
    render_template_as_native_obj=False,
    tags=["mm2", "spark"],
    params={
        "mode": Param(
            "planned",
            type="string",
            enum=["planned", "disaster", "drill", "failback"],
            title="Mode",
            description="planned: both clusters are up. disaster: the source or a part of it is "
            "lost. drill: a rehearsal in a throw-away folder; the job runs on. failback: a job "
            "that was moved returns.",
        ),
        "dry_run": Param(
            default=False,
            type="boolean",
            title="Dry run",
            description="Say what each step would do, and change nothing.",
        ),
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
            description="Id of the DAG that runs the job. The failover triggers it for the target.",
        ),
        "source_folder": Param(
            default=None,
            type=["null", "string"],
            title="Folder of the job on the source",
            description="Where the job runs now, also in a failback. It holds checkpoint and "
            "control. Empty: the Airflow variable mm2_source_folder, or else /tmp/orders/source.",
        ),
        "spark_folder": Param(
            default=None,
            type=["null", "string"],
            title="Folder of the job on the source, as Spark names it",
            description="Only if Spark and Airflow reach that folder by different names, such as a "
            "mount, and the job has ended or died. It is your word that both are one folder.",
        ),
        "target_folder": Param(
            default=None,
            type=["null", "string"],
            title="Folder of the job on the target",
            description="Where the job is to run. It must hold no checkpoint yet; in a failback it "
            "may be the folder that the job left. The plan is kept in its folder plans. Empty: the "
            "Airflow variable mm2_target_folder, or else /tmp/orders/target.",
        ),
        "drill_folder": Param(
            default=None,
            type=["null", "string"],
            title="Folder of a drill",
            description="Removed with all that it holds when the drill ends. Empty: the target's "
            "folder with -drill at its end.",
        ),
        "archive": Param(
            default=None,
            type=["null", "string"],
            title="Archive of offset syncs",
            description="The folder that mm2_archive_syncs writes. A disaster needs it if the "
            "offset-syncs topic is on the source. Empty: in a disaster the Airflow variable "
            "mm2_archive; else none.",
        ),
        "saved_positions": Param(
            default=None,
            type=["null", "string"],
            title="Saved positions (disaster)",
            description="The folder where mm2_archive_syncs saves the job's positions. They are "
            "used only if the checkpoint can't be reached.",
        ),
        "source_is_gone": Param(
            default=False,
            type="boolean",
            title="The source job is gone (disaster)",
            description="Your word that no driver of the job runs or will be started on the "
            "source. It counts only if the job's folder can't be reached.",
        ),
        "lost_at": Param(
            default=None,
            type=["null", "string"],
            title="The source was lost at (disaster)",
            description="When the source took its last write, such as 2026-11-21T03:12:00+00:00. "
            "It narrows the forecast. Empty: the time of the first forecast.",
        ),
        "max_rate": Param(
            default=None,
            type=["null", "number"],
            minimum=0,
            title="Highest rate (disaster)",
            description="The most records per second that one partition of the source can have "
            "received since the archive's last run. Empty: twice the highest rate in the archive.",
        ),
        "reverse_mm2_conn_id": Param(
            default=None,
            type=["null", "string"],
            title="Connection of the reverse mirror (failback)",
            description="Id of the mm2 connection of a second MirrorMaker 2 that copies back, if "
            "there is one. Empty: the syncs of mm2_conn_id are used, with sides exchanged.",
        ),
        "first_plan": Param(
            default=None,
            type=["null", "string"],
            title="Plan of the first failover (failback)",
            description="The file plans/<run id>.json in the folder where the job runs now. Needed "
            "if the target folder is new. Empty: the fence in the target folder names it.",
        ),
        "approve": Param(
            "above_thresholds",
            type="string",
            enum=["above_thresholds", "always", "never"],
            title="Ask for approval",
            description="When a person must approve before the target job starts. "
            "above_thresholds: if records may be lost, more than max_read_again may be read again, "
            "or a partition is refused.",
        ),
        "max_read_again": Param(
            0,
            type="integer",
            minimum=0,
            title="Records read again without approval",
            description="If more records than this may be read again, a person must approve.",
        ),
        "approval_minutes": Param(
            60,
            type="integer",
            minimum=1,
            title="Deadline of the approval",
            description="Minutes to wait for an answer. Without one the failover is rolled back.",
        ),
        "on_failure": Param(
            "withdraw",
            type="string",
            enum=["withdraw", "restart", "keep"],
            title="When the failover fails before the hand-over",
            description="withdraw: take back stop and fence. restart: also start the job on the "
            "source again. keep: change nothing, so that you can clear the failed task.",
        ),
        "reports_folder": Param(
            default=None,
            type=["null", "string"],
            title="Folder of the reports",
            description="Where the reports are kept. Empty: the target's folder with -reports at "
            "its end.",
        ),
        "subscribe_pattern": Param(
            default=None,
            type=["null", "string"],
            title="subscribePattern of the job on the target",
            description="Checked against the topics of the target. Not given: the pattern that the "
            "job on the source has, if it has one. Empty text: the job subscribes by name.",
        ),
        "sink": Param(
            default=None,
            type=["null", "string"],
            title="Output of the job on the target",
            description="The folder of its files or its table; the job's DAG gets it as output in "
            "its conf. It is checked for batch numbers that would make the sink drop the first "
            "batches of a fresh checkpoint. Empty: the folder output in the target's folder.",
        ),
        "source_sink": Param(
            default=None,
            type=["null", "string"],
            title="Output of the job on the source",
            description="Where it writes now, if elsewhere than in the folder output in its "
            "folder: to compare it, and to start the job there again.",
        ),
        "txn_app_id": Param(
            default=None,
            type=["null", "string"],
            title="Application id of a Delta or Hudi output",
            description="The job's txnAppId for Delta, or its identifier for Hudi, to check its "
            "output. Empty text: it has none.",
        ),
        "heartbeat_timeout": Param(
            default=None,
            type=["null", "number"],
            minimum=10,
            title="Heartbeat timeout",
            description="Seconds without a heartbeat after which a job that has not answered "
            "counts as dead. Give more than the longest pause of a live driver. Empty: 60 in a "
            "disaster; else never: the failover fails, and nothing is moved.",
        ),
        "kill_after": Param(
            default=None,
            type=["null", "number"],
            minimum=0,
            title="Kill a job that does not stop after (seconds)",
            description="The job is killed through the Spark connection, and the target job writes "
            "its last batch again. Empty: never; the failover then fails, and nothing is moved.",
        ),
        "changed_records": Param(
            default=False,
            type="boolean",
            title="A transform changes records",
            description="A transform in MirrorMaker 2 makes copies differ from their records. "
            "Not needed if the connection names Kafka Connect.",
        ),
        "give_up": Param(
            0,
            type="integer",
            minimum=0,
            title="Records to give up",
            description="How many records may be lost that MirrorMaker 2 passed over without "
            "copying them, for all topic-partitions together. The refusal never-copied names the "
            "number.",
        ),
        "quiet_after": Param(
            default=None,
            type=["null", "number"],
            minimum=10,
            title="Continue when neither cluster has changed for (seconds)",
            description="Give it if a transform drops records. After so long the last records "
            "before the positions count as dropped. Nothing is lost; records that are copied "
            "later are read again. Empty: never.",
        ),
        "verify": Param(
            default=False,
            type="boolean",
            title="Verify",
            description="Compare both clusters and the outputs after the switch, in a Spark job of "
            "its own. A drill always compares, a disaster never. The task fails if records are "
            "lost, or repeated though the plan did not say so.",
        ),
    },
) as dag:
    failover_tasks(
        prefix_group_id=False,
        mode="{{ params.mode }}",
        dry_run="{{ params.dry_run }}",
        mm2_conn_id=MM2_CONN_ID,
        exchanged="{{ params.mode == 'failback' and not params.reverse_mm2_conn_id }}",
        stream_dag_id="{{ params.stream_dag_id }}",
        source_folder=f"{{{{ {SOURCE} }}}}",
        target_folder=TARGET_FOLDER,
        source_output=SOURCE_OUTPUT,
        target_output=TARGET_OUTPUT,
        reports_folder=f"{{{{ params.reports_folder or {TARGET} ~ '-reports' }}}}",
        source_kafka_conn_id=kafka_conn_id("source", exchanged="target"),
        target_kafka_conn_id=kafka_conn_id("target", exchanged="source"),
        archive=ARCHIVE,
        source_is_gone="{{ params.source_is_gone }}",
        changed_records="{{ params.changed_records }}",
        verify="{{ params.verify }}",
        arguments={
            "check": {
                **SPARK_NAMES,
                "subscribe_pattern": "{{ params.subscribe_pattern }}",
                "sink": f"{{{{ params.sink or {TARGET} ~ '/output' }}}}",
                "txn_app_id": "{{ params.txn_app_id }}",
            },
            "stop_source": {
                **SPARK_NAMES,
                "heartbeat_timeout": HEARTBEAT_TIMEOUT,
                "kill_after": "{{ params.kill_after }}",
            },
            "read_positions": {"saved_positions": "{{ params.saved_positions or '' }}"},
            "wait_replicated": {"quiet_after": "{{ params.quiet_after }}"},
            "translate": {
                "first_plan": "{{ params.first_plan or '' }}",
                "give_up": "{{ params.give_up }}",
            },
            "forecast": {
                "lost_at": "{{ params.lost_at or '' }}",
                "max_rate": "{{ params.max_rate }}",
            },
            "start_drill": {
                # A job that writes outside its folders would write there in a drill, too.
                "sinks": [SOURCE_OUTPUT, "{{ params.sink or '' }}"],
                "job_folders": {
                    "source folder": f"{{{{ {SOURCE} }}}}",
                    "target folder": f"{{{{ {TARGET} }}}}",
                },
            },
            # A drill is to read something.
            "wait_started": {"min_records": "{{ 1 if params.mode == 'drill' else 0 }}"},
            "approve": {
                "ask": "{{ params.approve }}",
                "max_read_again": "{{ params.max_read_again }}",
                "response_timeout": "{{ params.approval_minutes * 60 }}",
            },
            "roll_back": {"on_failure": "{{ params.on_failure }}"},
        },
    )
