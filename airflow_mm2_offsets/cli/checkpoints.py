"""``checkpoint show``: what a Spark checkpoint says of its Kafka positions."""

from collections.abc import Iterator
from typing import Annotated

from typer import Argument, Typer

from airflow_mm2_offsets.cli.framing import answering, grouped
from airflow_mm2_offsets.cli.output import Answer
from airflow_mm2_offsets.core import Positions, TopicPartition
from airflow_mm2_offsets.core.summary import table
from airflow_mm2_offsets.spark.checkpoint import Checkpoint, read_checkpoint

EXAMPLE = """\
\b
Example:
  airflow-mm2-offsets checkpoint show s3://bucket/checkpoints/orders"""

checkpoint = Typer(no_args_is_help=True, rich_markup_mode=None)

_HEADER = ("partition", "first batch began", "committed", "pending batch ends")


@checkpoint.callback()
def _group() -> None:
    """Read a Spark job's checkpoint."""


@checkpoint.command(epilog=EXAMPLE)
@grouped
@answering
def show(
    *,
    url: Annotated[
        str, Argument(metavar="URL", help="The checkpointLocation, on any storage of fsspec.")
    ],
) -> Answer:
    """Show the next offset to read of each partition."""
    found = read_checkpoint(url)
    return Answer(text=_text(found), data=_to_json(found))


def _text(found: Checkpoint) -> str:
    last = "none yet" if found.committed_batch is None else found.committed_batch
    pending = (
        "none"
        if found.pending_batch is None
        else f"{found.pending_batch}, of {found.reread} records that a new job processes again"
    )
    return (
        f"Query {found.query_id}\nLast committed batch: {last}\nPending batch: {pending}\n\n"
        f"{table(_HEADER, [*_rows(found)])}"
    )


def _rows(found: Checkpoint) -> Iterator[tuple[object, ...]]:
    columns = (found.start, found.positions, found.pending or {})
    places = {
        TopicPartition(topic, partition)
        for positions in columns
        for topic, partitions in positions.items()
        for partition in partitions
    }
    for place in sorted(places):
        topic, partition = place
        cells = (positions.get(topic, {}).get(partition, "-") for positions in columns)
        yield place, *cells


def _to_json(found: Checkpoint) -> dict[str, object]:
    return {
        "location": found.location,
        "query_id": found.query_id,
        "committed_batch": found.committed_batch,
        "positions": _offsets(found.positions),
        "pending_batch": found.pending_batch,
        "pending": None if found.pending is None else _offsets(found.pending),
        "start": _offsets(found.start),
        "reread": found.reread,
    }


def _offsets(positions: Positions) -> dict[str, dict[str, str]]:
    return {
        topic: {str(partition): str(offset) for partition, offset in partitions.items()}
        for topic, partitions in positions.items()
    }
