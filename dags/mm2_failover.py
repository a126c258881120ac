"""Moves a Spark streaming job from one Kafka cluster to the other, while both are up.

An example to copy. It stops the job and waits for the proof of the stop, reads the positions from
the job's checkpoint, waits until MirrorMaker 2 has copied everything before them, translates them,
starts the same job against the target cluster from there, and ends when that job has committed its
first batch. With ``verify`` it then compares both clusters and the job's output around the switch,
record by record, while the job runs.

A job that has died does not answer, and one that hangs may never stop. The failover then fails
after ten minutes, and nothing has moved. The param ``heartbeat_timeout`` accepts silence as an
end, and ``kill_after`` kills the job. Both are empty by default.

The first task checks all that can be checked before the stop. You may clear every task, and Airflow
retries it after the loss of a worker or a server: the stop is requested once, the plan is made once
and kept in a file, and the target job starts once, because its run id derives from this run's.
Before the start, the task compares all that was read with the present: if the source job was
started again, nothing is started on the target.

The waits run in the triggerer. If your Airflow has none, give ``failover_tasks`` the argument
``deferrable=False``.

The stop leaves a fence in the job's control location. Until the fence is lifted no driver of the
job runs there, and no other run moves it.
"""

from airflow.sdk import DAG, Param

from airflow_mm2_offsets.task_groups import failover_tasks

SPARK_NAMES = {
    f"spark_{name}": f"{{{{ params.spark_folder ~ '/{name}' if params.spark_folder else '' }}}}"
    for name in ("checkpoint", "control")
}

with DAG(
    dag_id="mm2_failover",
    description="Moves a Spark streaming job to the other Kafka cluster",
    doc_md=__doc__,
    schedule=None,
    catchup=False,
    max_active_runs=1,
    render_template_as_native_obj=False,
    tags=["mm2", "spark"],
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
            description="Only if Airflow reaches it by another name, such as a mount, and the "
            "job has ended or died: you assert that both names are one folder.",
        ),
        "target_folder": Param(
            "/tmp/orders/target",  # noqa: S108 - an example
            type="string",
            title="Folder of the job on the target",
            description="Must hold no checkpoint yet; the plan is kept in it, too.",
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
            description="The folder of its files or its table. It is checked for batch numbers "
            "that would make the sink drop the first batches of a fresh checkpoint. Empty: the "
            "folder output in the target's folder.",
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
            "counts as dead. Give more than any pause of a driver that lives. "
            "Empty: never; the failover then fails, and nothing is moved.",
        ),
        "kill_after": Param(
            default=None,
            type=["null", "number"],
            minimum=0,
            title="Kill a job that does not stop after",
            description="Seconds after which a job that has not stopped is killed, through the "
            "Spark connection; the target job writes its last batch again. Empty: "
            "never; the failover then fails, and nothing is moved.",
        ),
        "changed_records": Param(
            default=False,
            type="boolean",
            title="A transform changes records",
            description="MirrorMaker 2 changes records on the way, so that a record may differ "
            "from its copy. Not needed if the connection names Kafka Connect.",
        ),
        "quiet_after": Param(
            default=None,
            type=["null", "number"],
            minimum=10,
            title="Continue when neither cluster has changed for",
            description="Seconds without a change on either cluster after which the last records "
            "before the positions count as dropped by a transform, if nothing else is in doubt. "
            "Nothing is lost; records that are copied later are read again. Empty: never.",
        ),
        "verify": Param(
            default=False,
            type="boolean",
            title="Verify",
            description="Afterwards compare both clusters and the outputs around the switch, in "
            "another Spark job. The task fails if records are lost, or repeated unannounced.",
        ),
    },
) as dag:
    failover_tasks(
        prefix_group_id=False,
        mm2_conn_id="{{ params.mm2_conn_id }}",
        stream_dag_id="{{ params.stream_dag_id }}",
        source_folder="{{ params.source_folder }}",
        target_folder="{{ params.target_folder }}",
        target_kafka_conn_id="{{ conn.get(params.mm2_conn_id).extra_dejson"
        ".get('target_kafka_conn_id') or 'kafka_target' }}",
        changed_records="{{ params.changed_records }}",
        verify="{{ params.verify }}",
        arguments={
            "check": {
                **SPARK_NAMES,
                "subscribe_pattern": "{{ params.subscribe_pattern }}",
                "sink": "{{ params.sink or params.target_folder ~ '/output' }}",
                "txn_app_id": "{{ params.txn_app_id }}",
            },
            "stop_source": {
                **SPARK_NAMES,
                "heartbeat_timeout": "{{ params.heartbeat_timeout }}",
                "kill_after": "{{ params.kill_after }}",
            },
            "wait_replicated": {"quiet_after": "{{ params.quiet_after }}"},
        },
    )
