"""Commits the translated offsets of the source's consumer groups on the target, every 5 minutes.

An example to copy. It does what MirrorMaker 2's ``sync.group.offsets.enabled`` does, with this
package's translation: switch that off for these groups. The groups find the offsets when they are
started on the target. A group with members there is left alone, and only commits of this DAG are
overwritten. It begins as a dry run: see the XCom ``table`` of the task, then set ``dry_run`` to
False. Where the param ``checkpoint`` is set, it also commits the positions of that Spark job for a
group on the source, so that lag tools see the job.
"""

from airflow.sdk import DAG, Param
from airflow.timetables.trigger import CronTriggerTimetable

from airflow_mm2_offsets.operators.groups import (
    PublishPositionsOperator,
    SyncConsumerGroupsOperator,
)
from airflow_mm2_offsets.operators.run_conf import check_run_conf

with DAG(
    dag_id="mm2_sync_groups",
    description="Commits translated offsets of consumer groups on the target",
    doc_md=__doc__,
    schedule=CronTriggerTimetable("*/5 * * * *", timezone="UTC"),
    catchup=False,
    max_active_runs=1,
    is_paused_upon_creation=True,
    tags=["mm2"],
    params={
        "mm2_conn_id": Param(
            "mm2_default",
            type="string",
            title="MirrorMaker 2 connection",
            description="Id of the mm2 connection, which names the two clusters.",
        ),
        "include": Param(
            ".*",
            type="string",
            title="Groups",
            description="A regular expression of whole names of groups on the source.",
        ),
        "exclude": Param(
            "console-consumer-.*|connect-.*|__.*",
            type=["null", "string"],
            title="Groups to leave out",
            description="Another one; the default is that of MirrorMaker 2.",
        ),
        "offsets_from": Param(
            "translation",
            type="string",
            enum=["translation", "checkpoints"],
            title="Who translates",
            description="This package, or MirrorMaker 2 in its checkpoints topic.",
        ),
        "dry_run": Param(
            default=True,
            type="boolean",
            title="Dry run",
            description="Decide, and commit nothing.",
        ),
        "overwrite_others": Param(
            default=False,
            type="boolean",
            title="Overwrite others",
            description="Move commits too that a consumer or MirrorMaker 2 made; never backwards.",
        ),
        "archive": Param(
            None,
            type=["null", "string"],
            title="Archive",
            description="The archive of offset syncs, if there is one.",
        ),
        "checkpoint": Param(
            "",
            type="string",
            title="Checkpoint",
            description="Checkpoint of a Spark job that is shown as a group; empty: none.",
        ),
        "checkpoint_group": Param(
            "spark-orders",
            type="string",
            title="Group of the Spark job",
            description="A group on the source that nothing else uses.",
        ),
    },
) as dag:
    SyncConsumerGroupsOperator(
        task_id="sync_groups",
        pre_execute=check_run_conf,
        mm2_conn_id="{{ params.mm2_conn_id }}",
        include="{{ params.include }}",
        exclude="{{ params.exclude }}",
        offsets_from="{{ params.offsets_from }}",
        rules={
            "dry_run": "{{ params.dry_run }}",
            "overwrite_others": "{{ params.overwrite_others }}",
        },
        archive="{{ params.archive }}",
        retries=2,
    )
    PublishPositionsOperator(
        task_id="publish_positions",
        pre_execute=check_run_conf,
        mm2_conn_id="{{ params.mm2_conn_id }}",
        checkpoint="{{ params.checkpoint }}",
        group_id="{{ params.checkpoint_group }}",
        rules={"dry_run": "{{ params.dry_run }}"},
        retries=2,
    )
