"""Keeps every offset sync of MirrorMaker 2 in an archive that outlives both Kafka clusters.

An example to copy. It runs when MirrorMaker 2 has written syncs, and every ten minutes in any
case, so that the archive also holds the clusters' watermarks and topic ids of that time. Give
``TranslateOffsetsOperator`` the same archive location. Where the param ``checkpoint`` is set, it
also saves the positions of that job, for the night when the checkpoint's storage is gone.
"""

from airflow.sdk import DAG, Asset, AssetWatcher, Param
from airflow.timetables.assets import AssetOrTimeSchedule
from airflow.timetables.trigger import CronTriggerTimetable

from airflow_mm2_offsets.operators.archive import ArchiveSyncsOperator
from airflow_mm2_offsets.operators.run_conf import check_run_conf
from airflow_mm2_offsets.operators.save_positions import SaveSparkPositionsOperator
from airflow_mm2_offsets.triggers.syncs import NewSyncsTrigger

MM2_CONN_ID = "mm2_default"

SYNCS = Asset(
    f"mm2-offset-syncs-{MM2_CONN_ID}",
    watchers=[
        AssetWatcher(
            name=f"new-syncs-{MM2_CONN_ID}",
            trigger=NewSyncsTrigger(mm2_conn_id=MM2_CONN_ID, poll_interval=120.0),
        )
    ],
)

with DAG(
    dag_id="mm2_archive_syncs",
    description="Archives the offset syncs of MirrorMaker 2",
    doc_md=__doc__,
    schedule=AssetOrTimeSchedule(
        timetable=CronTriggerTimetable("*/10 * * * *", timezone="UTC"),
        assets=[SYNCS],  # type: ignore[list-item] # annotated for what Airflow makes of it
    ),
    catchup=False,
    max_active_runs=1,
    tags=["mm2"],
    params={
        "mm2_conn_id": Param(
            MM2_CONN_ID,
            type="string",
            title="MirrorMaker 2 connection",
            description="Id of the mm2 connection, which names the two clusters.",
        ),
        "archive": Param(
            default=None,
            type=["null", "string"],
            title="Archive",
            description="A folder for this pair of clusters alone, such as s3://conn@bucket/syncs. "
            "Empty: the Airflow variable mm2_archive, or else /tmp/mm2-syncs.",
        ),
        "checkpoint": Param(
            "",
            type="string",
            title="Checkpoint",
            description="Checkpoint of a Spark job whose positions are saved; empty: none.",
        ),
        "control": Param(
            "",
            type="string",
            title="Control location",
            description="That job's control location: a job that was moved is not saved.",
        ),
        "saved_positions": Param(
            "/tmp/mm2-positions",  # noqa: S108 - an example
            type="string",
            title="Saved positions",
            description="A folder that outlives the checkpoint's storage.",
        ),
    },
) as dag:
    ArchiveSyncsOperator(
        task_id="archive",
        pre_execute=check_run_conf,
        mm2_conn_id="{{ params.mm2_conn_id }}",
        archive="{{ params.archive or var.value.get('mm2_archive', '/tmp/mm2-syncs') }}",
        retries=2,
    )
    SaveSparkPositionsOperator(
        task_id="save_positions",
        pre_execute=check_run_conf,
        checkpoint="{{ params.checkpoint }}",
        control="{{ params.control }}",
        save_to="{{ params.saved_positions }}",
        mm2_conn_id="{{ params.mm2_conn_id }}",
        retries=2,
    )
