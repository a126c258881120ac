"""The files with offsets that the copy of a checkpoint needs, and their new texts."""

from pathlib import Path

import pytest

from airflow_mm2_offsets.errors import CheckpointError
from airflow_mm2_offsets.spark.logs import read_logs
from airflow_mm2_offsets.spark.rewriting import SourcePosition, offset_files
from tests.unit.spark.checkpoints import batch, commit, orders, simple, start, write

RECORDED = Path(__file__).with_name("recorded")


def _roles(root: Path) -> dict[str, str]:
    return {file.name: file.role.value for file in offset_files(read_logs(str(root)))}


def _shifted(position: SourcePosition) -> tuple[str, int]:
    return f"a.{position.topic_partition.topic}", position.position + 1000


def _rewritten(root: Path) -> dict[str, str]:
    return {file.name: file.rewrite(_shifted) for file in offset_files(read_logs(str(root)))}


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("two_topics", {"offsets/0": "history", "offsets/1": "start"}),
        ("pending", {"offsets/1": "start", "offsets/2": "end"}),
        ("asynchronous", {"offsets/0": "history", "offsets/34": "start"}),
        ("continuous", {"offsets/7": "history", "offsets/8": "start"}),
        ("real_time", {"offsets/0": "history", "offsets/1": "start"}),
    ],
)
def test_the_newest_two_batches_are_roles(name: str, kept: dict[str, str]) -> None:
    """Spark starts from the newest; from the one before where it's pending; wants both files."""
    assert _roles(RECORDED / name) == kept


def test_one_batch_is_kept_alone(tmp_path: Path) -> None:
    """A query that has committed batch 0 only has no older one."""
    files = {"offsets/0": batch(orders(4)), "commits/0": commit()}
    assert _roles(write(tmp_path, files)) == {"offsets/0": "start"}


def test_the_first_batch_starts_where_the_sources_began(tmp_path: Path) -> None:
    """With nothing committed it's sources/N/0 that batch 0 starts from; other sources stay."""
    files = {
        "sources/0/0": start(orders(5)),
        "sources/1/0": "v1\n" + '{"path":"file:///in/a.txt","timestamp":1,"batchId":0}\n' * 2,
        "offsets/0": batch(orders(9), '{"logOffset":0}'),
    }
    write(tmp_path, files)
    assert _roles(tmp_path) == {"sources/0/0": "start", "offsets/0": "end"}
    assert _rewritten(tmp_path)["sources/0/0"] == start('{"a.orders":{"0":1005}}')


def test_a_source_whose_beginning_is_lost(tmp_path: Path) -> None:
    """Then nobody knows what the first batch reads; 0 would be a guess."""
    files = {"sources/0/0": start(orders(5)), "offsets/0": batch(orders(9), orders(9))}
    with pytest.raises(CheckpointError, match="where the Kafka source 1 began"):
        _roles(write(tmp_path, files))


def test_batches_that_spark_would_skip(tmp_path: Path) -> None:
    """Where Spark itself would lose records, a copy that does the same is refused."""
    simple(tmp_path, offsets__2=batch(orders(6, 6)), offsets__3=batch(orders(9, 6)))
    with pytest.raises(CheckpointError, match="would run only that one and skip those between"):
        _roles(tmp_path)


def test_a_query_without_kafka(tmp_path: Path) -> None:
    """There's nothing to translate."""
    files = {"offsets/0": batch("17"), "commits/0": commit()}
    with pytest.raises(CheckpointError, match="offsets/0: no source is Kafka"):
        offset_files(read_logs(str(write(tmp_path, files))))


@pytest.mark.parametrize(
    "name", ["beside_rate", "beside_files", "transforming", "one_topic_twice", "continuous"]
)
def test_only_kafka_s_lines_change(name: str) -> None:
    """The metadata line, and lines of other sources, stay byte by byte."""
    for file, text in _rewritten(RECORDED / name).items():
        lines = (RECORDED / name / file).read_text().split("\n")
        for before, after in zip(lines, text.split("\n"), strict=True):
            if not before.startswith('{"ex-'):
                assert after == before
            else:
                assert after.startswith('{"a.ex-orders":{"0":1')


def test_named_lines_keep_their_names() -> None:
    """In offset log v2 the offset comes after the first colon."""
    texts = _rewritten(RECORDED / "named_sources")
    assert texts["offsets/45"].split("\n")[2:] == [
        'my_orders:{"a.ex-orders":{"0":1046,"1":1046}}',
        'refunds_1:{"a.ex-refunds":{"0":1092}}',
    ]


def test_one_topic_twice_at_different_positions(tmp_path: Path) -> None:
    """Each source keeps its own, though one map of positions can't hold both."""
    files = {"offsets/0": batch(orders(4), orders(7)), "commits/0": commit()}
    (text,) = _rewritten(write(tmp_path, files)).values()
    assert text.split("\n")[2:] == ['{"a.orders":{"0":1004}}', '{"a.orders":{"0":1007}}']


def test_line_endings_stay(tmp_path: Path) -> None:
    """Whatever ends the lines, and whether something ends the last one, stays as it is."""
    text = batch(orders(4), '{"logOffset":0}').replace("\n", "\r\n") + "\n"
    files = {"offsets/0": "", "commits/0": commit()}
    root = write(tmp_path, files)
    (root / "offsets" / "0").write_bytes(text.encode())
    expected = text.replace(orders(4), '{"a.orders":{"0":1004}}')
    assert _rewritten(root) == {"offsets/0": expected}
