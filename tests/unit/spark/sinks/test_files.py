"""File sinks that would drop what a job begins with."""

from pathlib import Path

from upath import UPath

from airflow_mm2_offsets.spark.sinks import SinkWriter, find_sink_problems


def _touch(folder: Path, *names: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).write_text("v1\n")


def test_what_is_new_drops_nothing(tmp_path: Path) -> None:
    """An output that is not there, or holds files that no query wrote, is no trap."""
    assert find_sink_problems(UPath(tmp_path / "nothing")) == []
    _touch(tmp_path, "part-0.parquet")
    _touch(tmp_path / "_spark_metadata", ".0.crc", "_note")
    assert find_sink_problems(UPath(tmp_path)) == []


def test_a_file_sink_that_knows_batches(tmp_path: Path) -> None:
    """Compacted logs count too."""
    _touch(tmp_path / "_spark_metadata", "9.compact", "10", ".10.crc", "8")
    (problem,) = find_sink_problems(UPath(tmp_path))
    assert problem.startswith(f"{tmp_path}: its _spark_metadata has batches up to 10;")
    assert "MigrateSparkCheckpointOperator" in problem
    assert problem.endswith("give the job on the target an output of its own")


def test_a_checkpoint_older_than_its_sink(tmp_path: Path) -> None:
    """A job that goes on counts on, unless its checkpoint is behind what was written."""
    _touch(tmp_path / "_spark_metadata", "10")
    assert find_sink_problems(UPath(tmp_path), SinkWriter(query_id="id", first_batch=11)) == []
    (problem,) = find_sink_problems(UPath(tmp_path), SinkWriter(query_id="id", first_batch=10))
    assert "the job goes on at batch 10, and Spark drops all up to that one" in problem


def test_folders_by_batch_would_be_overwritten(tmp_path: Path) -> None:
    """A job that begins again at batch 0 replaces what it wrote; one that goes on does not."""
    for name in ("batch_id=0", "batch_id=12", "reports"):
        (tmp_path / name).mkdir()
    (problem,) = find_sink_problems(UPath(tmp_path))
    assert problem.startswith(f"{tmp_path}: it holds a folder for each batch up to batch_id=12")
    assert find_sink_problems(UPath(tmp_path), SinkWriter(first_batch=13)) == []
    (tmp_path / "_delta_log").mkdir()
    assert find_sink_problems(UPath(tmp_path)) == []
