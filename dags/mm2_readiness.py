"""Tells every 15 minutes whether a failover could begin, before the night on which it is needed.

An example to copy, once for each job and mode; what is not given is not asked. The task fails when
the failover could not begin: let it alert you as your other DAGs do. Its XCom ``table`` has every
check with its value; the report is its return value. It changes nothing: neither clusters, nor the
job, nor its folders.
"""

from airflow.sdk import DAG, Param
from airflow.timetables.trigger import CronTriggerTimetable

from airflow_mm2_offsets.operators.check import CheckFailoverOperator

SPARK_NAMES = {
    f"spark_{name}": f"{{{{ params.spark_folder ~ '/{name}' if params.spark_folder else '' }}}}"
    for name in ("checkpoint", "control")
}
TARGET_NAMES = {
    f"target_{name}": f"{{{{ params.target_folder ~ '/{name}' if params.target_folder else '' }}}}"
    for name in ("checkpoint", "control")
}
BESIDE_TARGET = "params.target_folder ~ '{}' if params.target_folder else ''"
REPORTS = f"params.reports_folder or ({BESIDE_TARGET.format('-reports')})"
SOURCE = "(params.source_folder or var.value.get('mm2_source_folder', '/tmp/orders/source'))"
SOURCE_OUTPUT = f"{{{{ params.source_sink or {SOURCE} ~ '/output' }}}}"
DRILL = {
    "folder": f"{{{{ params.drill_folder or ({BESIDE_TARGET.format('-drill')}) }}}}",
    "job_folders": {
        "source folder": f"{{{{ {SOURCE} }}}}",
        "target folder": "{{ params.target_folder or '' }}",
    },
    "other_folders": {
        "archive": "{{ params.archive or '' }}",
        "saved positions": "{{ params.saved_positions or '' }}",
        "reports folder": f"{{{{ {REPORTS} }}}}",
    },
    "sinks": [SOURCE_OUTPUT, "{{ params.sink or '' }}"],
}


def _text(title: str, description: str) -> Param:
    return Param(default=None, type=["null", "string"], title=title, description=description)


def _word(title: str, description: str) -> Param:
    return Param(default=False, type="boolean", title=title, description=description)


with DAG(
    dag_id="mm2_readiness",
    description="Reports whether a failover could begin",
    doc_md=__doc__,
    schedule=CronTriggerTimetable("*/15 * * * *", timezone="UTC"),
    catchup=False,
    max_active_runs=1,
    tags=["mm2"],
    params={
        "mm2_conn_id": Param(
            "mm2_default",
            type="string",
            title="MirrorMaker 2 connection",
            description="Id of the mm2 connection, which names the two clusters.",
        ),
        "mode": Param(
            "planned",
            type="string",
            enum=["planned", "disaster", "drill", "failback"],
            title="Mode",
            description="The failover that is to be ready.",
        ),
        "source_folder": Param(
            default=None,
            type=["null", "string"],
            title="The job's folder",
            description="It holds checkpoint and control location. Empty: the Airflow variable "
            "mm2_source_folder, or else /tmp/orders/source.",
        ),
        "spark_folder": _text("The job's folder, as Spark names it", "As in mm2_failover."),
        "target_folder": _text(
            "The job's folder on the target",
            "Where a failover would start it. In a failback the folder that it returns to.",
        ),
        "drill_folder": _text(
            "Folder of a drill", "Mode drill. Empty: the target's folder with -drill at its end."
        ),
        "reports_folder": _text(
            "Folder of the reports", "Mode drill: what the drill's folder must not hold."
        ),
        "archive": _text(
            "Archive", "The folder that mm2_archive_syncs fills; empty: there is none."
        ),
        "saved_positions": _text(
            "Saved positions", "Mode disaster: the folder where mm2_archive_syncs saves them."
        ),
        "positions": _text(
            "Positions", "Mode disaster: where the job stands, as Spark's JSON text, by your word."
        ),
        "source_is_gone": _word("The source job is gone", "Mode disaster: as in mm2_failover."),
        "reverse_mm2_conn_id": _text(
            "Connection of the reverse mirror",
            "Mode failback: as in mm2_failover. Empty: sides are exchanged.",
        ),
        "subscribe_pattern": _text("subscribePattern on the target", "Not given: the job's own."),
        "sink": _text(
            "Output of the job on the target", "Empty: the folder output in the target's folder."
        ),
        "source_sink": _text(
            "Output of the job on the source", "Empty: the folder output in its folder."
        ),
        "txn_app_id": _text("Application id of a Delta or Hudi output", "As in mm2_failover."),
        "changed_records": _word("A transform changes records", "As in mm2_failover."),
        "plan_options": Param(
            default=None,
            type=["null", "object"],
            title="How positions are translated",
            description="What your mm2_failover gives to its task translate, as JSON, such as "
            '{"sole_writer": true}. Empty: the defaults.',
        ),
        "probe_folder": _text(
            "Folder of a probe",
            "Where a file may be written and removed: only that shows what an object store allows.",
        ),
        "stream_dag_id": Param(
            "orders_stream",
            type="string",
            title="The job's DAG",
            description="The DAG that the failover triggers; it must exist and not be paused.",
        ),
    },
) as dag:
    CheckFailoverOperator(
        task_id="check",
        mm2_conn_id="{{ params.mode == 'failback' and params.reverse_mm2_conn_id "
        "or params.mm2_conn_id }}",
        exchanged="{{ params.mode == 'failback' and not params.reverse_mm2_conn_id }}",
        mode="{{ params.mode }}",
        checkpoint=f"{{{{ {SOURCE} }}}}/checkpoint",
        control=f"{{{{ {SOURCE} }}}}/control",
        **SPARK_NAMES,
        **TARGET_NAMES,
        from_folder=f"{{{{ {SOURCE} }}}}",
        archive="{{ params.archive or '' }}",
        saved_positions="{{ params.saved_positions or '' }}",
        positions="{{ params.positions or '' }}",
        source_is_gone="{{ params.source_is_gone }}",
        subscribe_pattern="{{ params.subscribe_pattern }}",
        sink=f"{{{{ params.sink or ({BESIDE_TARGET.format('/output')}) }}}}",
        txn_app_id="{{ params.txn_app_id }}",
        changed_records="{{ params.changed_records }}",
        plan_options="{{ params.plan_options | tojson if params.plan_options else '' }}",
        probe_folder="{{ params.probe_folder or '' }}",
        drill=DRILL,
        trigger_dag_id="{{ params.stream_dag_id }}",
        note_ids=False,
        timeout=10,
        retries=1,
    )
