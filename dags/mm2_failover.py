"""Moves a Spark streaming job from one Kafka cluster to the other, while both are up.

An example to copy. It stops the job, waits for the proof that it has stopped, reads where it
stands from its checkpoint, waits until MirrorMaker 2 has copied everything before that, translates
the positions, starts the same job against the target cluster from there, and ends when that job
has committed its first batch. If asked to, it then compares both clusters and the job's output
around the switch, record by record: the job runs meanwhile.

A job that has died answers nothing, and one that hangs may never stop: the failover then fails
after ten minutes, unless the params ``heartbeat_timeout`` and ``kill_after`` say that silence
counts as an end, or that the job is to be killed. Both are empty by default.

Whatever can be known before is checked before anything is stopped. Every task may be cleared and
run again, and is tried again by itself where a worker or a server was lost: the stop is asked once,
the plan is made once and kept in a file, and the target job is a DAG run whose id derives from this
one's, so that it is started once. Before it is, all that was read is compared with what is there
now: a source job that somebody has started again is not where it was, and nothing is started.

The stop leaves a fence in the job's control location: no driver of the job runs there, and no other
run moves it, until the fence is lifted.
"""

from datetime import timedelta
from typing import Any

from airflow.providers.common.compat.sdk import AirflowSkipException
from airflow.sdk import DAG, Context, Param, task

from airflow_mm2_offsets.operators.check import CheckFailoverOperator
from airflow_mm2_offsets.operators.checkpoint import ReadSparkCheckpointOperator
from airflow_mm2_offsets.operators.handover import TriggerTargetDagOperator
from airflow_mm2_offsets.operators.reconcile import ReconcileOperator
from airflow_mm2_offsets.operators.stop import StopSparkStreamingOperator
from airflow_mm2_offsets.operators.translate import TranslateOffsetsOperator
from airflow_mm2_offsets.sensors.checkpoint import SparkStartedSensor
from airflow_mm2_offsets.sensors.replication import Mm2ReplicatedSensor

MM2 = "{{ params.mm2_conn_id }}"
CHECKPOINT = "{{ params.source_folder }}/checkpoint"
CONTROL = "{{ params.source_folder }}/control"
SPARK_CHECKPOINT, SPARK_CONTROL = (
    f"{{{{ params.spark_folder ~ '/{name}' if params.spark_folder else '' }}}}"
    for name in ("checkpoint", "control")
)
TARGET_CHECKPOINT = "{{ params.target_folder }}/checkpoint"
TARGET_CONTROL = "{{ params.target_folder }}/control"
PLAN_PATH = "{{ params.target_folder }}/plans/{{ run_id }}.json"
TARGET_KAFKA = (
    "{{ conn.get(params.mm2_conn_id).extra_dejson.get('target_kafka_conn_id') or 'kafka_target' }}"
)
STREAM = "{{ params.stream_dag_id }}"
SINK = "{{ params.sink or params.target_folder ~ '/output' }}"
OUTPUTS = [
    {"cluster": side, "path": f"{{{{ params.{side}_folder }}}}/output"}
    for side in ("source", "target")
]


def only_if_asked(context: Context) -> None:
    """Skip the verification unless the run's params ask for it."""
    if not context["params"]["verify"]:
        raise AirflowSkipException("the param verify is off")


with DAG(
    dag_id="mm2_failover",
    description="Moves a Spark streaming job to the other Kafka cluster",
    doc_md=__doc__,
    schedule=None,
    catchup=False,
    max_active_runs=1,
    render_template_as_native_obj=False,
    tags=["mm2", "spark"],
    # For a worker that is lost, or a cluster that is for a moment. What no other try mends, such as
    # a wrong setting or a refused translation, fails at once all the same.
    default_args={"retries": 2, "retry_delay": timedelta(seconds=30)},
    params={
        "mm2_conn_id": Param(
            "mm2_default",
            type="string",
            title="MirrorMaker 2 connection",
            description="Id of the mm2 connection: which two clusters, and what copies between.",
        ),
        "stream_dag_id": Param(
            "orders_stream",
            type="string",
            title="DAG of the job",
            description="The DAG that runs the job; it is triggered for the target cluster.",
        ),
        "source_folder": Param(
            "/tmp/orders/source",  # noqa: S108 - an example
            type="string",
            title="Folder of the job on the source",
            description="Holds its checkpoint and its control location.",
        ),
        "spark_folder": Param(
            default=None,
            type=["null", "string"],
            title="That folder, as Spark names it",
            description="Only where Airflow reaches it by another name, such as a mount, and the "
            "job has ended or died: your word that both names are one folder.",
        ),
        "target_folder": Param(
            "/tmp/orders/target",  # noqa: S108 - an example
            type="string",
            title="Folder of the job on the target",
            description="Must hold no checkpoint yet; the plan is kept in it too.",
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
            description="Where it writes files or a Delta table: checked for batch numbers that "
            "would make the sink drop what a fresh checkpoint begins with. Empty: the folder "
            "output in the target's folder.",
        ),
        "txn_app_id": Param(
            default=None,
            type=["null", "string"],
            title="Application id of a Delta or Hudi output",
            description="What the job gives Delta as txnAppId, or Hudi as its identifier, so that "
            "its output can be checked. Empty text: it gives none.",
        ),
        "heartbeat_timeout": Param(
            default=None,
            type=["null", "number"],
            minimum=10,
            title="Take a silent job for gone after",
            description="Seconds without a heartbeat after which a job that has not answered is "
            "taken for gone: for a driver that has died. Longer than any pause of one that lives. "
            "Empty: never; the failover then fails, and nothing is moved.",
        ),
        "kill_after": Param(
            default=None,
            type=["null", "number"],
            minimum=0,
            title="Kill a job that does not stop after",
            description="Seconds after which a job that was asked to stop and has not is killed, "
            "through the Spark connection; what its last batch wrote is written again. Empty: "
            "never; the failover then fails, and nothing is moved.",
        ),
        "changed_records": Param(
            default=False,
            type="boolean",
            title="A transform changes records",
            description="MirrorMaker 2 changes records on the way, so that a record may differ "
            "from its copy. Needless where the connection names Kafka Connect.",
        ),
        "quiet_after": Param(
            default=None,
            type=["null", "number"],
            minimum=10,
            title="Go on when both clusters stand still for",
            description="Seconds without a change on either cluster after which the last records "
            "before the positions count as dropped by a transform, if nothing else is in doubt. "
            "Nothing is lost; what is copied later all the same is read again. Empty: never.",
        ),
        "verify": Param(
            default=False,
            type="boolean",
            title="Verify",
            description="Afterwards compare both clusters and the outputs around the switch, in a "
            "Spark job of its own; it fails where anything was lost, or repeated unannounced.",
        ),
    },
) as dag:
    check = CheckFailoverOperator(
        task_id="check",
        mm2_conn_id=MM2,
        checkpoint=CHECKPOINT,
        control=CONTROL,
        spark_control=SPARK_CONTROL,
        spark_checkpoint=SPARK_CHECKPOINT,
        target_checkpoint=TARGET_CHECKPOINT,
        target_control=TARGET_CONTROL,
        subscribe_pattern="{{ params.subscribe_pattern }}",
        plan_path=PLAN_PATH,
        sink=SINK,
        txn_app_id="{{ params.txn_app_id }}",
        changed_records="{{ params.changed_records }}",
        trigger_dag_id=STREAM,
    )
    stop_source = StopSparkStreamingOperator(
        task_id="stop_source",
        control=CONTROL,
        checkpoint=CHECKPOINT,
        spark_control=SPARK_CONTROL,
        spark_checkpoint=SPARK_CHECKPOINT,
        moved_to="{{ params.target_folder }}",
        heartbeat_timeout="{{ params.heartbeat_timeout }}",
        kill_after="{{ params.kill_after }}",
    )
    read_positions = ReadSparkCheckpointOperator(
        task_id="read_positions", checkpoint=CHECKPOINT, control=CONTROL, mm2_conn_id=MM2
    )
    wait_replicated = Mm2ReplicatedSensor(
        task_id="wait_replicated",
        mm2_conn_id=MM2,
        positions=read_positions.output["positions"],
        clusters=read_positions.output["clusters"],
        quiet_after="{{ params.quiet_after }}",
    )
    translate = TranslateOffsetsOperator(
        task_id="translate",
        mm2_conn_id=MM2,
        positions=read_positions.output["positions"],
        pending=read_positions.output["pending"],
        clusters=read_positions.output["clusters"],
        changed_records="{{ params.changed_records }}",
        checkpoint=CHECKPOINT,
        plan_path=PLAN_PATH,
    )
    submit_target = TriggerTargetDagOperator(
        task_id="submit_target",
        mm2_conn_id=MM2,
        control=CONTROL,
        checkpoint=CHECKPOINT,
        read=read_positions.output,
        plan_path=PLAN_PATH,
        target_checkpoint=TARGET_CHECKPOINT,
        moved_to="{{ params.target_folder }}",
        trigger_dag_id=STREAM,
        trigger_run_id="{{ dag.dag_id }}__{{ run_id }}",
        conf={
            "kafka_conn_id": TARGET_KAFKA,
            "topic": "{{ ti.xcom_pull(task_ids='translate', key='target_topics') }}",
            "folder": "{{ params.target_folder }}",
            "starting_offsets": "{{ ti.xcom_pull(task_ids='translate', key='starting_offsets') }}",
        },
        # Cleared and run again, it finds the run it made: skipped, and the DAG goes on.
        skip_when_already_exists=True,
    )
    wait_started = SparkStartedSensor(
        task_id="wait_started",
        checkpoint=TARGET_CHECKPOINT,
        starting_offsets=translate.output["starting_offsets"],
        trigger_rule="none_failed",
    )

    @task
    def report(
        stopped: dict[str, Any], plan: dict[str, Any], summary: str, started: dict[str, Any]
    ) -> dict[str, Any]:
        """Put what an auditor asks into one place."""
        print(summary)  # noqa: T201 - the task's log is where the person on call looks
        return {"stopped": stopped, "plan": plan, "started": started}

    reported = report(
        stop_source.output, translate.output, translate.output["summary"], wait_started.output
    )
    verify = ReconcileOperator(
        task_id="verify",
        pre_execute=only_if_asked,
        mm2_conn_id=MM2,
        plan=translate.output,
        committed="{{ ti.xcom_pull(task_ids='wait_started')['positions'] }}",
        sinks=OUTPUTS,
        report="{{ params.target_folder }}/verified",
        # A worker that is lost leaves its Spark driver behind, which may yet write the report.
        retries=0,
    )
    check >> stop_source >> read_positions >> wait_replicated >> translate
    translate >> submit_target >> wait_started >> reported >> verify
    # Cleared with wait_started, it waits for the positions that it reads of it.
    wait_started >> verify
