"""TranslateOffsetsOperator, run by Airflow's task runner against clusters of its own."""

import json
from pathlib import Path
from typing import Any

import pytest
from airflow import __version__
from airflow.providers.common.compat.sdk import DAG

from airflow_mm2_offsets.errors import (
    ClusterUnreachableError,
    ConfigurationError,
    TranslationRefusedError,
)
from airflow_mm2_offsets.operators.checkpoint import ReadSparkCheckpointOperator
from airflow_mm2_offsets.operators.translate import TranslateOffsetsOperator
from tests.support.pairs import STOPPED
from tests.unit.operators.clusters import RECORDS, Clusters, define, impatient
from tests.unit.operators.translate_task import plan_of, translate
from tests.unit.operators.worker import Worker
from tests.unit.spark import checkpoints

AT_4 = {"orders": {"0": 4}}
NUMBERS = pytest.mark.skipif(
    __version__.startswith("3.1."), reason="Airflow 3.1 shows no templates with numbers as keys"
)
pytestmark = pytest.mark.usefixtures("clusters")


@pytest.mark.parametrize(
    "positions",
    [
        pytest.param({"orders": {0: 4}}, marks=NUMBERS),
        {"orders": {"0": "4"}},
        {"orders": {"0": "{{ dag_run.conf.at }}"}},
        '{"orders":{"0":4}}',
        '{"orders":{"0":{{ dag_run.conf.at }}}}',
        "{{ ti.xcom_pull(task_ids='read', key='positions') }}",
    ],
)
def test_positions_are_taken_as_dict_as_text_and_as_templates(
    worker: Worker, positions: dict[str, Any] | str
) -> None:
    """However the positions come, the plan is of the same ones."""
    worker.conf = {"at": 4}
    worker.xcoms["read", "positions"] = json.dumps(AT_4)
    worker.run(translate(positions=positions))
    assert plan_of(worker).source_positions() == {"orders": {0: 4}}
    assert plan_of(worker).target_positions() == {"orders": {0: 9}}


@pytest.mark.parametrize("pending", [None, '{"orders":{"0":6}}'])
def test_positions_are_taken_from_another_tasks_output(
    worker: Worker, tmp_path: Path, pending: str | None
) -> None:
    """What ReadSparkCheckpointOperator found comes by XCom; nothing pending is nothing."""
    _checkpoint(tmp_path, pending)
    with DAG("failover", schedule=None):
        read = ReadSparkCheckpointOperator(task_id="read", checkpoint=str(tmp_path))
        task = TranslateOffsetsOperator(
            task_id="translate",
            positions=read.output,  # type: ignore[arg-type]
        )
    worker.run(read)
    worker.run(task)
    (planned,) = plan_of(worker).partitions
    assert (planned.translation.position, planned.translation.target) == (4, 9)
    assert planned.pending == (2 if pending else 0)


def test_positions_are_taken_from_a_checkpoint(worker: Worker, tmp_path: Path) -> None:
    """Committed and pending positions of a checkpoint are read by the operator itself."""
    _checkpoint(tmp_path, '{"orders":{"0":6}}')
    worker.conf = {"folder": str(tmp_path)}
    worker.run(translate(checkpoint="{{ dag_run.conf.folder }}"))
    (planned,) = plan_of(worker).partitions
    assert (planned.translation.position, planned.pending) == (4, 2)
    assert plan_of(worker).max_reread == 2


def _checkpoint(root: Path, pending: str | None) -> None:
    files = {
        "sources/0/0": checkpoints.start('{"orders":{"0":0}}'),
        "offsets/0": checkpoints.batch('{"orders":{"0":4}}'),
        "commits/0": checkpoints.commit(),
    }
    if pending:
        files["offsets/1"] = checkpoints.batch(pending)
    checkpoints.write(root, files)


def test_without_positions_nothing_is_translated(worker: Worker) -> None:
    """The error names the task and what it wants."""
    message = r"^task translate: give move, positions or checkpoint; none is given$"
    with pytest.raises(ConfigurationError, match=message):
        worker.run(translate())
    assert not worker.results


def test_a_strategy_that_is_none_is_refused(worker: Worker) -> None:
    """The error names the value and the choices."""
    message = "strategy: 'fast' is not one of safe, linear, kafka"
    with pytest.raises(ConfigurationError, match=message):
        worker.run(translate(positions=AT_4, options={"strategy": "fast"}))


def test_a_plan_that_may_lose_records_is_refused(
    worker: Worker, clusters: Clusters, tmp_path: Path
) -> None:
    """Its user sees it; no file keeps it, and no job gets its offsets."""
    clusters.target.produce("orders", 0, RECORDS)
    clusters.sync(20, 20)
    path = tmp_path / "plan.json"
    task = translate(
        positions={"orders": {"0": 15}},
        options={"strategy": "linear", "read_source": False},
        plan_path=str(path),
    )
    with pytest.raises(TranslationRefusedError, match="strategy linear answers 20"):
        worker.run(task)
    assert worker.xcoms["translate", "return_value"]["verdict"] == "not_safe"
    assert ("translate", "starting_offsets") not in worker.xcoms
    assert not path.exists()


def test_each_templated_field_is_rendered(worker: Worker, tmp_path: Path) -> None:
    """Templates stand wherever a value may differ from run to run."""
    worker.conf = {"mm2": "mm2_default", "at": "4", "folder": str(tmp_path), "how": "kafka"}
    task = translate(
        mm2_conn_id="{{ dag_run.conf.mm2 }}",
        positions={
            "positions": {"orders": {"0": "{{ dag_run.conf.at }}"}},
            "pending": '{"orders":{"0":{{ dag_run.conf.at }}}}',
        },
        plan_path="{{ dag_run.conf.folder }}/{{ run_id }}.json",
        options={"strategy": "{{ dag_run.conf.how }}"},
    )
    worker.run(task)
    expected = {"mm2_conn_id", "positions", "checkpoint", "plan_path", "options"}
    assert expected <= set(task.template_fields)
    assert plan_of(worker).strategy == "kafka"
    assert (tmp_path / "manual__1.json").exists()


def test_what_is_pushed(worker: Worker) -> None:
    """The plan is plain JSON of version 2, pushed once; beside it what people and Spark take."""
    worker.run(translate(positions=AT_4))
    pushed = {key: value for (_, key), value in worker.xcoms.items()}
    assert pushed.keys() == {
        "return_value",
        "summary",
        "table",
        "starting_offsets",
        "target_topics",
    }
    assert pushed["table"][0] in pushed["summary"]
    assert "\n" not in pushed["summary"]
    assert pushed["return_value"]["schema_version"] == 2
    assert pushed["return_value"]["verdict"] == "ready"
    assert pushed["starting_offsets"] == '{"orders":{"0":9}}'
    assert pushed["target_topics"] == "orders"
    assert pushed["summary"].startswith("READY: 1 partition (1 exact, 0 bounded, 0 refused)")


def test_each_refused_partition_is_named(worker: Worker, tmp_path: Path) -> None:
    """The task fails with every refusal; plan and summary are there all the same."""
    path = tmp_path / "plan.json"
    positions = {"orders": {"0": 4, "1": 3, "2": 0}}
    with pytest.raises(TranslationRefusedError) as caught:
        worker.run(translate(positions=positions, plan_path=str(path)))
    assert "orders[1] at 3: no offset sync is known" in str(caught.value)
    assert "orders[0]" not in str(caught.value)
    refused = {(each.topic, each.partition) for each in plan_of(worker).refused}
    assert ("orders", 1) in refused
    assert all(f"{topic}[{number}] at" in str(caught.value) for topic, number in refused)
    assert worker.xcoms["translate", "summary"].startswith("REFUSED: 3 partitions")
    assert ("translate", "starting_offsets") not in worker.xcoms
    assert not path.exists()


def test_an_unreachable_cluster_is_named(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who was asked stands in the error of the task."""
    down = {"bootstrap.servers": STOPPED.bootstrap_servers}
    define(monkeypatch, "kafka_source", conn_type="kafka", extra=down)
    impatient(monkeypatch)
    with pytest.raises(ClusterUnreachableError, match=r"source cluster \(kafka_source\)"):
        worker.run(translate(positions=AT_4))


UNMAPPED = {"orders": {"0": 4, "1": 3}}


@pytest.mark.parametrize(("named", "start"), [("earliest", 0), ("latest", 10)])
def test_a_fallback_is_taken_by_name_and_counted(
    worker: Worker, clusters: Clusters, named: str, start: int
) -> None:
    """A refused partition starts where the user said; plan and summary say so and count it."""
    clusters.target.produce("orders", 1, RECORDS)
    worker.run(translate(positions=UNMAPPED, options={"on_unmapped": named}))
    pushed = worker.xcoms
    assert pushed["translate", "starting_offsets"] == f'{{"orders":{{"0":9,"1":{start}}}}}'
    plan = pushed["translate", "return_value"]
    assert plan["totals"]["fallback"] == plan["totals"]["refused"] == 1
    assert plan["totals"]["max_reread"] is None
    assert plan["partitions"][1]["fallback"]["kind"] == named
    assert plan_of(worker).to_json() == plan
    summary = pushed["translate", "summary"]
    assert "1 start by a chosen fallback, with no proof" in summary
    assert f"Worst: orders[1] at 3 starts at {start} by {named}, with no proof." in summary
    assert any(f"FALLBACK {named}" in line for line in pushed["translate", "table"])


def test_a_fallback_by_time_needs_a_time(worker: Worker, clusters: Clusters) -> None:
    """Where the source has no record to tell the time by, the partition is named."""
    clusters.target.produce("orders", 1, RECORDS)
    at_the_end = {"orders": {"0": 4, "1": 10}}
    with pytest.raises(ConfigurationError, match=r"no record at the position of orders\[1\]"):
        worker.run(translate(positions=at_the_end, options={"on_unmapped": "timestamp"}))
    wrong = translate(
        positions=AT_4, options={"on_unmapped": "timestamp", "unmapped_time": "yesterday"}
    )
    with pytest.raises(ConfigurationError, match="unmapped_time: 'yesterday' is not a time"):
        worker.run(wrong)


def test_an_unknown_fallback_is_refused(worker: Worker) -> None:
    """A word that names no fallback is an error that lists those there are."""
    with pytest.raises(ConfigurationError, match="on_unmapped: 'nearest' is not one of fail, ear"):
        worker.run(translate(positions=AT_4, options={"on_unmapped": "nearest"}))
