"""Reports every 15 minutes whether a move could begin, before the night on which it is needed.

An example to copy, once for each job and policy. The file of jobs (``[mm2_offsets] jobs_file`` in
Airflow's configuration) says where the job lives, and its journal where it is now: the report is of
the next move, also after one. The task fails when that move could not begin: let it alert you as
your other DAGs do. Its XCom ``table`` has every check with its value; the report is its return
value. It changes nothing: neither clusters, nor the job, nor its folders.
"""

from airflow.sdk import DAG, Param
from airflow.timetables.trigger import CronTriggerTimetable

from airflow_mm2_offsets.operators.check import CheckFailoverOperator

with DAG(
    dag_id="mm2_readiness",
    description="Reports whether a move of a job could begin",
    doc_md=__doc__,
    schedule=CronTriggerTimetable("*/15 * * * *", timezone="UTC"),
    catchup=False,
    max_active_runs=1,
    tags=["mm2"],
    params={
        "job": Param(
            "orders",
            type="string",
            minLength=1,
            title="Job",
            description="Its name in the file of jobs.",
        ),
        "policy": Param(
            "planned",
            type="string",
            enum=["planned", "disaster", "drill"],
            title="Policy",
            description="The move that is to be ready.",
        ),
        "positions": Param(
            default=None,
            type=["null", "string"],
            title="Positions",
            description="Where the job stands, as Spark's JSON text, if neither its checkpoint nor "
            "saved positions say so.",
            section="Disaster",
        ),
        "source_is_gone": Param(
            default=False,
            type="boolean",
            title="No driver runs there",
            description="Where the job's folder can't be reached: you are sure that no driver of "
            "it runs, and that none will be started there.",
            section="Disaster",
        ),
        "options": Param(
            default=None,
            type=["null", "object"],
            title="Options of the translation",
            description='What your mm2_failover is given, such as {"give_up": 12}.',
            section="Translation",
        ),
        "probe_folder": Param(
            default=None,
            type=["null", "string"],
            title="Folder of a probe",
            description="Where a file may be written and removed: only that shows what an object "
            "store allows.",
            section="Storage",
        ),
    },
) as dag:
    CheckFailoverOperator(
        task_id="check",
        move={
            "job": "{{ params.job }}",
            "policy": "{{ params.policy }}",
            "source_is_gone": "{{ params.source_is_gone }}",
        },
        positions="{{ params.positions or '' }}",
        options="{{ params.options | tojson if params.options else '' }}",
        probe_folder="{{ params.probe_folder or '' }}",
        note_ids=False,
        timeout=10,
        retries=1,
    )
