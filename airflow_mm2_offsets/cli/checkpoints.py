"""``checkpoint show``: the Kafka positions of a Spark checkpoint."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

from airflow_mm2_offsets.cli.command import answering, grouped
from airflow_mm2_offsets.cli.output import Answer
from airflow_mm2_offsets.cli.params import Argument

if TYPE_CHECKING:
    from airflow_mm2_offsets.core import Positions
    from airflow_mm2_offsets.spark.checkpoint import Checkpoint

EXAMPLE = """\
\b
Example:
  airflow-mm2-offsets checkpoint show s3://bucket/checkpoints/orders"""

_HEADER = ("partition", "first batch began", "committed", "pending batch ends")


@grouped
@answering
def show(
    *,
    url: Annotated[
        str, Argument(metavar="URL", help="The checkpointLocation, on any storage of fsspec.")
    ],
) -> Answer:
    """Show the next offset to read of each partition."""
    from airflow_mm2_offsets.spark.checkpoint import read_checkpoint

    state = read_checkpoint(url)
    return Answer(text=_text(state), data=_to_json(state), has_advice=False)


def _text(state: "Checkpoint") -> str:
    from airflow_mm2_offsets.core.summary import table

    last = "none yet" if state.committed_batch is None else state.committed_batch
    pending = (
        "none"
        if state.pending_batch is None
        else f"{state.pending_batch}, of {state.reread} records that a new job processes again"
    )
    return (
        f"Query {state.query_id}\nLast committed batch: {last}\nPending batch: {pending}\n\n"
        f"{table(_HEADER, [*_rows(state)])}"
    )


def _rows(state: "Checkpoint") -> Iterator[tuple[object, ...]]:
    from airflow_mm2_offsets.core.positions import by_topic_partition

    columns = [
        by_topic_partition(positions)
        for positions in (state.start, state.positions, state.pending or {})
    ]
    for partition in sorted({partition for column in columns for partition in column}):
        yield partition, *(column.get(partition, "-") for column in columns)


def _to_json(state: "Checkpoint") -> dict[str, object]:
    return {
        "location": state.location,
        "query_id": state.query_id,
        "committed_batch": state.committed_batch,
        "positions": _offsets(state.positions),
        "pending_batch": state.pending_batch,
        "pending": None if state.pending is None else _offsets(state.pending),
        "start": _offsets(state.start),
        "reread": state.reread,
    }


def _offsets(positions: "Positions") -> dict[str, dict[str, str]]:
    return {
        topic: {str(partition): str(offset) for partition, offset in partitions.items()}
        for topic, partitions in positions.items()
    }
