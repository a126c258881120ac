"""Writes where a query starts into its new checkpoint location; ``homecoming`` calls it.

Spark's Kafka source reads ``sources/N/0`` before it looks at ``startingOffsets``
(``KafkaMicroBatchStream.getOrCreateInitialPartitionOffsets``). So whichever driver begins there,
with whatever options, begins at these offsets.
"""

from collections.abc import Mapping

from upath import UPath

from airflow_mm2_offsets.core.positions import Positions
from airflow_mm2_offsets.errors import CheckpointError, HandoverError
from airflow_mm2_offsets.spark import offset_log
from airflow_mm2_offsets.spark.logs import read_logs
from airflow_mm2_offsets.spark.offsets import format_offsets
from airflow_mm2_offsets.storage import read_text, write_text


def plan_start(earlier: UPath, positions: Positions) -> dict[str, str]:
    """Return the text of each Kafka source's first file, by the source's name.

    Args:
        earlier: The earlier checkpoint of the same query: it tells which source reads which topics.
        positions: Where the query starts.

    Raises:
        HandoverError: The topics are not those of the earlier checkpoint, each in one source.
        CheckpointError: The earlier checkpoint can't be read.
    """
    logs = read_logs(earlier)
    sources = logs.sources(logs.newest)
    topics = {
        name: set(offset_log.kafka_positions([sources[name]], str(earlier)))
        for name in logs.starts.keys() & sources.keys()
    }
    read = [topic for of_source in topics.values() for topic in sorted(of_source)]
    if not topics or sorted(read) != sorted(positions):
        raise HandoverError(
            f"the plan starts the topics {', '.join(sorted(positions))}, and the sources of the "
            f"job's earlier checkpoint {earlier} read {', '.join(sorted(read)) or 'none of Kafka'}:"
            f" the new start can't be written for every source; give a new, empty home folder"
        )
    return {
        name: _text({topic: positions[topic] for topic in sorted(of_source)})
        for name, of_source in topics.items()
    }


def write_start(checkpoint: UPath, starts: Mapping[str, str]) -> None:
    """Write the first file of each source, and read it back.

    Raises:
        CheckpointError: The storage refuses, or a file reads back differently.
    """
    for name, text in starts.items():
        path = checkpoint / "sources" / name / "0"
        write_text(path, text, CheckpointError)
        if read_text(path, CheckpointError) != text:
            raise CheckpointError(
                "what was written does not read back; check its storage", file=str(path)
            )


def _text(positions: Positions) -> str:
    """Return a file as ``KafkaSourceInitialOffsetWriter`` writes it: a NUL, a version, JSON."""
    return f"\0v1\n{format_offsets(positions)}"
