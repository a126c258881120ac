"""A plan that is kept: the same one for every try of a task."""

from pathlib import Path

import pytest

from airflow_mm2_offsets.errors import ConfigurationError
from tests.unit.operators.clusters import Clusters
from tests.unit.operators.tasks import translate
from tests.unit.operators.worker import Worker

AT_4 = {"orders": {"0": 4}}
pytestmark = pytest.mark.usefixtures("clusters")


def test_a_second_run_moves_no_position(worker: Worker, clusters: Clusters, tmp_path: Path) -> None:
    """The kept plan comes back, though MirrorMaker 2 has said more and would be answered anew."""
    path = str(tmp_path / "plans" / "run.json")
    at_the_end = {"orders": {"0": 10}}
    worker.run(translate(positions=at_the_end, plan_path=path))
    kept = dict(worker.xcoms)
    clusters.source.write("orders", [(b"key 10", b"value")])
    clusters.target.write("orders", [(b"between", b""), (b"key 10", b"value")])
    clusters.sync(10, 16)
    worker.xcoms.clear()
    worker.run(translate(positions=at_the_end, plan_path=path))
    assert worker.xcoms == kept
    worker.run(translate(positions=at_the_end))
    assert worker.xcoms["translate", "starting_offsets"] == '{"orders":{"0":16}}'
    assert kept["translate", "starting_offsets"] == '{"orders":{"0":15}}'


def test_a_kept_plan_needs_no_cluster(
    worker: Worker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A retry gets the plan even where a cluster has gone in the meantime."""
    path = str(tmp_path / "run.json")
    worker.run(translate(positions=AT_4, plan_path=path))
    monkeypatch.delenv("AIRFLOW_CONN_MM2_DEFAULT")
    worker.xcoms.clear()
    worker.run(translate(positions=AT_4, plan_path=path))
    assert worker.xcoms["translate", "starting_offsets"] == '{"orders":{"0":9}}'


def test_a_plan_of_other_positions_is_refused(worker: Worker, tmp_path: Path) -> None:
    """A kept plan never answers for positions that it was not made of, and stays as it is."""
    path = tmp_path / "run.json"
    worker.run(translate(positions=AT_4, plan_path=str(path)))
    kept = path.read_text()
    with pytest.raises(ConfigurationError, match=r"run\.json holds a plan of .* for other posi"):
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
    with pytest.raises(ConfigurationError, match=r"run\.json is "):
        worker.run(translate(positions=AT_4, plan_path=str(path)))
    assert path.read_text(encoding="latin-1") == text


@pytest.mark.parametrize("path", ["nosuch://bucket/run.json", "/proc/run.json"])
def test_a_path_that_no_plan_can_be_kept_in_is_refused(worker: Worker, path: str) -> None:
    """Without a place for the plan none is made known: a retry could move a position."""
    with pytest.raises(ConfigurationError, match=r"run\.json is out of reach"):
        worker.run(translate(positions=AT_4, plan_path=path))
    assert not worker.xcoms
