"""Keeps every offset sync of MirrorMaker 2 in an archive that outlives both Kafka clusters.

An example to copy. It runs when MirrorMaker 2 has written syncs, and every ten minutes in any
case, so that the archive also holds the clusters' watermarks and topic ids of that time. It saves
the job's positions, too, where the job is at that time, for the night when the checkpoint's storage
is gone. The job's declaration says where both are kept.
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
        "job": Param(
            "orders",
            type="string",
            minLength=1,
            title="Job",
            description="Its name in the file of jobs, which says where archive and saved "
            "positions are kept. One job for each pair of clusters is enough for the archive.",
        ),
    },
) as dag:
    ArchiveSyncsOperator(
        task_id="archive", pre_execute=check_run_conf, job="{{ params.job }}", retries=2
    )
    SaveSparkPositionsOperator(
        task_id="save_positions", pre_execute=check_run_conf, job="{{ params.job }}", retries=2
    )
