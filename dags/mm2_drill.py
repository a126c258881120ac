"""Rehearses the move of a streaming job every week, and leaves no trace.

An example to copy. The job runs on: a second copy of it starts at the other cluster in a throw-away
folder, is compared with both clusters, and is removed. A failed run says that a move would not work
now; its report says why, and a report of a run that succeeded says what a move would cost.

It holds up no move: ``mm2_failover`` may run at the same time. docs/drill.md says what the job must
keep to.
"""

from airflow.sdk import DAG, Param
from airflow.timetables.trigger import CronTriggerTimetable

from airflow_mm2_offsets.task_groups.drill import drill_tasks

with DAG(
    dag_id="mm2_drill",
    description="Rehearses the move of a streaming job every week",
    doc_md=__doc__,
    # When those who would mend what it finds are at work.
    schedule=CronTriggerTimetable("0 9 * * TUE", timezone="UTC"),
    catchup=False,
    max_active_runs=1,
    tags=["mm2", "spark"],
    params={
        "job": Param(
            "orders",
            type="string",
            minLength=1,
            title="Job",
            description="Its name in the file of jobs. Its journal says where it is, and so where "
            "the drill starts its copy.",
        ),
        "folder": Param(
            "/tmp/orders-drill",  # noqa: S108 - an example
            type="string",
            minLength=1,
            title="Folder of the drill",
            description="Holds checkpoint, control and output of the copy, and is removed with all "
            "that it holds. It must lie apart from every other folder, where the other cluster's "
            "Spark and Airflow both reach it.",
        ),
        "min_records": Param(
            1,
            type="integer",
            minimum=0,
            title="Records",
            description="How many records the copy must have read before it is compared. A quiet "
            "topic needs a smaller number.",
            section="Comparison",
        ),
        "options": Param(
            default=None,
            type=["null", "object"],
            title="Options of the translation",
            description='As TranslateOffsetsOperator takes them, such as {"give_up": 12}.',
            section="Translation",
        ),
    },
) as dag:
    drill_tasks(
        job="{{ params.job }}",
        folder="{{ params.folder }}",
        min_records="{{ params.min_records }}",
        options="{{ params.options | tojson if params.options else '' }}",
        group_id="drill",
        prefix_group_id=False,
    )
