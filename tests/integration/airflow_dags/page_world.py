"""Jobs and tasks whose pages ``test_page`` looks at; positions come with the run's conf."""

import json
from pathlib import Path
from typing import Any

from airflow.sdk import DAG, BaseOperator, Context
from upath import UPath

from airflow_mm2_offsets.core.partition_plan import PartitionPlan
from airflow_mm2_offsets.core.plan import FailoverPlan
from airflow_mm2_offsets.core.policy import PLANNED
from airflow_mm2_offsets.core.result import Basis, Status, Strategy, Translation
from airflow_mm2_offsets.moves.jobs_file import parse_jobs
from airflow_mm2_offsets.moves.journal import Event
from airflow_mm2_offsets.moves.move import Mover
from airflow_mm2_offsets.operators.check import CheckFailoverOperator
from airflow_mm2_offsets.operators.links import page_links
from airflow_mm2_offsets.operators.report import ReportFailoverOperator
from airflow_mm2_offsets.operators.translate import TranslateOffsetsOperator

ROWS = 10_000
MARKUP = "<script>document.title='owned'</script><img src=x onerror=document.title='owned'>"


def write_jobs(folder: Path, source: str, target: str) -> Path:
    """Write a file of three jobs: ``orders`` has never moved, ``clicks`` has, ``lost`` is damaged.

    Args:
        folder: Where the jobs live.
        source: The alias of one cluster.
        target: The alias of the other.
    """
    homes = {side: f"{folder}/{side}/{{name}}" for side in (source, target)}
    defaults = {"homes": homes, "dag": "page_world", "records": f"{folder}/records"}
    names = ("orders", "clicks", "lost")
    text = json.dumps({"defaults": defaults, "jobs": [{"name": name} for name in names]})
    file = folder / "jobs.json"
    file.write_text(text)
    _, clicks, lost = parse_jobs(text, str(file))
    mover = Mover(clicks, "page_world:gone", PLANNED, UPath)
    mover.record(mover.ask(), Event.PROVE, proof="acknowledged")
    mover.record(mover.find(), Event.NOTE, numbers={"lost_at_most": 0, "read_again_at_most": 12})
    mover.record(mover.find(), Event.HAND_OVER, starting_offsets="{}", plan=MARKUP)
    mover.record(mover.find(), Event.ARRIVE)
    Mover(lost, "page_world:gone", PLANNED, UPath).ask()
    (Path(lost.journal) / "000001.json").write_text("no entry")
    return file


class BigPlanOperator(BaseOperator):
    """Returns a plan of many partitions, one of them refused, one with markup in its reason."""

    operator_extra_links = page_links("plan")

    def execute(self, context: Context) -> dict[str, Any]:  # noqa: ARG002 - as Airflow calls it
        """Return the plan."""
        plan = FailoverPlan(
            created_at="2026-01-01T00:00:00+00:00",
            strategy=Strategy.SAFE,
            syncs_read=1,
            syncs_skipped=0,
            partitions=tuple(_partition(number) for number in range(ROWS)),
        )
        return plan.to_json()


def _partition(number: int) -> PartitionPlan:
    is_refused = number == 7777
    translation = Translation(
        topic="wide",
        partition=number,
        position=1000 + number,
        status=Status.REFUSED if is_refused else Status.BOUNDED,
        basis=Basis.EXPIRED if is_refused else Basis.BETWEEN_SYNCS,
        reason=MARKUP if number == 4242 else "between two syncs",
        target=None if is_refused else 500 + number,
        low=None if is_refused else 500 + number,
        high=None if is_refused else 500 + number + number % 100,
    )
    return PartitionPlan(translation=translation, target_topic="source.wide")


MOVE = {"job": "orders", "policy": "planned"}

with DAG("page_world", schedule=None):
    check = CheckFailoverOperator(task_id="check", move=MOVE, timeout=5)
    translate = TranslateOffsetsOperator(
        task_id="translate", positions="{{ dag_run.conf['positions'] | tojson }}"
    )
    report = ReportFailoverOperator(task_id="report", move=MOVE)
    [check, translate, BigPlanOperator(task_id="big")] >> report
