"""A plan that is kept: the same one for every try of a task."""

import json
from collections.abc import Iterable
from pathlib import Path

import pytest

from airflow_mm2_offsets.errors import ConfigurationError, HandoverError, PlanError
from airflow_mm2_offsets.kafka.cluster import KafkaCluster
from airflow_mm2_offsets.kafka.descriptions import TopicInfo
from airflow_mm2_offsets.testing import Record
from tests.support.pairs import STOPPED
from tests.unit.operators.clusters import Clusters, define, impatient
from tests.unit.operators.spark_job import Job
from tests.unit.operators.translate_task import translate
from tests.unit.operators.worker import Worker

AT_4 = {"orders": {"0": 4}}
pytestmark = pytest.mark.usefixtures("clusters")


def test_a_second_run_moves_no_position(worker: Worker, clusters: Clusters, tmp_path: Path) -> None:
    """The kept plan comes back, though MirrorMaker 2 has said more and would be answered anew."""
    path = str(tmp_path / "plans" / "run.json")
    at_the_end = {"orders": {"0": 10}}
    worker.run(translate(positions=at_the_end, plan_path=path))
    kept = dict(worker.xcoms)
    clusters.source.produce("orders", 0, [Record(b"key 10", b"value")])
    clusters.target.produce("orders", 0, [Record(b"between", b""), Record(b"key 10", b"value")])
    clusters.sync(10, 16)
    worker.xcoms.clear()
    worker.run(translate(positions=at_the_end, plan_path=path))
    assert worker.xcoms == kept
    worker.run(translate(positions=at_the_end))
    assert worker.xcoms["translate", "starting_offsets"] == '{"orders":{"0":16}}'
    assert kept["translate", "starting_offsets"] == '{"orders":{"0":15}}'


def test_a_source_that_is_lost_does_not_hold_the_kept_plan_back(
    worker: Worker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A retry gets the plan where the source has gone in the meantime; the target is compared."""
    path = str(tmp_path / "run.json")
    worker.run(translate(positions=AT_4, plan_path=path))
    worker.xcoms.clear()
    impatient(monkeypatch)
    down = {"bootstrap.servers": STOPPED.bootstrap_servers}
    define(monkeypatch, "kafka_source", conn_type="kafka", extra=down)
    worker.run(translate(positions=AT_4, plan_path=path))
    assert worker.xcoms["translate", "starting_offsets"] == '{"orders":{"0":9}}'


def _edit(path: Path, **fields: object) -> None:
    """Change fields of a kept plan's first partition, as a hand would."""
    plan = json.loads(path.read_text())
    plan["partitions"][0].update(fields)
    path.write_text(json.dumps(plan))


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"target": "999999"}, r"orders\[0\]: target is 999999, above high 9"),
        ({"low": "10", "target": "10"}, r"orders\[0\]: low is 10, above high 9"),
        ({"target": "8"}, r"orders\[0\]: target is 8, below low 9"),
        ({"target": "7", "low": "7", "high": "7"}, r"digest is '\w{64}', and that of its content"),
        ({"target_topic": "payments"}, r"digest is '\w{64}', and that of its content"),
    ],
)
def test_a_plan_that_was_edited_is_refused(
    worker: Worker, tmp_path: Path, fields: dict[str, object], named: str
) -> None:
    """What a hand has changed is not believed: the field and both values are named."""
    path = tmp_path / "run.json"
    worker.run(translate(positions=AT_4, plan_path=str(path)))
    _edit(path, **fields)
    edited = path.read_text()
    with pytest.raises(PlanError, match=rf"run\.json: is not a usable plan: {named}.*; delete the"):
        worker.run(translate(positions=AT_4, plan_path=str(path)))
    assert path.read_text() == edited


def test_a_plan_of_an_older_release_is_refused(worker: Worker, tmp_path: Path) -> None:
    """It says nothing of clusters and topics; both versions are named."""
    path = tmp_path / "run.json"
    worker.run(translate(positions=AT_4, plan_path=str(path)))
    path.write_text(path.read_text().replace('"schema_version": 2', '"schema_version": 1'))
    with pytest.raises(PlanError, match=r"schema version 1 .*reads version 2; delete the file"):
        worker.run(translate(positions=AT_4, plan_path=str(path)))


def test_a_plan_of_another_pair_is_refused(
    worker: Worker, tmp_path: Path, clusters: Clusters, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same positions of the same topic mean nothing on other clusters."""
    path = str(tmp_path / "run.json")
    worker.run(translate(positions=AT_4, plan_path=path))
    mine = clusters.target.cluster_id
    others = Clusters()
    others.connect(monkeypatch)
    with pytest.raises(PlanError, match=r"clusters\.source\.cluster_id is 'in-memory-"):
        worker.run(translate(positions=AT_4, plan_path=path))
    clusters.connect(monkeypatch, target=others.target)
    with pytest.raises(PlanError, match=rf"clusters\.target\.cluster_id is '{mine}' in the plan"):
        worker.run(translate(positions=AT_4, plan_path=path))


@pytest.mark.parametrize("side", ["source", "target"])
def test_a_plan_of_a_topic_that_was_made_again_is_refused(
    worker: Worker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, side: str
) -> None:
    """A topic of the same name with another id has other records at the same offsets."""
    path = str(tmp_path / "run.json")
    ids = {"source": "one", "target": "two"}
    _give_ids(monkeypatch, ids)
    worker.run(translate(positions=AT_4, plan_path=path))
    worker.run(translate(positions=AT_4, plan_path=path))
    before = ids[side]
    ids[side] = "another"
    named = (
        rf"clusters\.{side}\.topic_ids\.orders is '{before}' in the plan of .* and 'another' now"
    )
    with pytest.raises(PlanError, match=named):
        worker.run(translate(positions=AT_4, plan_path=path))


def _give_ids(monkeypatch: pytest.MonkeyPatch, ids: dict[str, str]) -> None:
    def topics(cluster: KafkaCluster, names: Iterable[str]) -> dict[str, TopicInfo]:
        topic_id = ids[cluster.name.partition(" ")[0]]
        return {name: TopicInfo(name=name, partitions=4, topic_id=topic_id) for name in names}

    monkeypatch.setattr(KafkaCluster, "topics", topics)


def test_a_job_that_has_run_since_is_noticed(worker: Worker, tmp_path: Path) -> None:
    """Positions that the checkpoint has left are not translated; both are named."""
    job = Job(tmp_path / "source", 4)
    arguments = {"positions": AT_4, "checkpoint": str(job.checkpoint)}
    worker.run(translate(**arguments))
    job.commit(1, 8)
    with pytest.raises(HandoverError) as caught:
        worker.run(translate(**arguments))
    assert 'its positions is {"orders":{"0":8}} now, and was {"orders":{"0":4}}' in str(
        caught.value
    )
    pending = {"positions": {"orders": {"0": 8}}, "pending": AT_4}
    with pytest.raises(HandoverError, match="its pending batch is none now, and was"):
        worker.run(translate(**{**arguments, "positions": pending}))


def test_a_plan_of_other_positions_is_refused(worker: Worker, tmp_path: Path) -> None:
    """A kept plan never answers for positions that it was not made of, and stays as it is."""
    path = tmp_path / "run.json"
    worker.run(translate(positions=AT_4, plan_path=str(path)))
    kept = path.read_text()
    with pytest.raises(ConfigurationError, match=r"run\.json: holds a plan of .* for other posi"):
        worker.run(translate(positions={"orders": {"0": 5}}, plan_path=str(path)))
    assert path.read_text() == kept


@pytest.mark.parametrize(
    "text",
    ["", "{", '{"schema_version": 1}', '{"schema_version": 2}', "[]", "null", "\x00\xff"],
)
def test_a_file_that_is_no_plan_is_refused(worker: Worker, tmp_path: Path, text: str) -> None:
    """A damaged or foreign file is an error that names it, and stays as it is."""
    path = tmp_path / "run.json"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(ConfigurationError, match=r"run\.json:? is "):
        worker.run(translate(positions=AT_4, plan_path=str(path)))
    assert path.read_text(encoding="latin-1") == text


@pytest.mark.parametrize("path", ["nosuch://bucket/run.json", "/proc/run.json"])
def test_a_path_that_no_plan_can_be_kept_in_is_refused(worker: Worker, path: str) -> None:
    """A plan that was not kept is not pushed: a retry could move a position."""
    with pytest.raises(ConfigurationError, match=r"run\.json is out of reach"):
        worker.run(translate(positions=AT_4, plan_path=path))
    assert not worker.results
