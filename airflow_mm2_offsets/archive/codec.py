"""Encodes and decodes an archive's file: Parquet, with a JSON header in its metadata.

The first row groups hold syncs, sorted by partition; the last hold each run's watermarks. ``store``
and ``compaction`` call it.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from airflow_mm2_offsets.archive.columns import NUMBERS, SyncColumns
from airflow_mm2_offsets.archive.values import (
    Header,
    HistoryStart,
    PairIdentity,
    Run,
    TopicIncarnation,
    WatermarkPair,
)
from airflow_mm2_offsets.core import TopicPartition, Watermarks

FORMAT = 1
"""The version of the format; a file of another version is not read."""

_HEADER = b"airflow_mm2_offsets.archive"
_WATERMARKS = ("time", "source_low", "source_high", "target_low", "target_high")
_SCHEMA = pa.schema(
    [
        pa.field("topic", pa.dictionary(pa.int32(), pa.string())),
        pa.field("partition", pa.int32()),
        *(pa.field(name, pa.int64()) for name in (*NUMBERS, *_WATERMARKS)),
    ]
)


class FormatError(ValueError):
    """The bytes do not have this format; the message is a phrase that follows the file's name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """The contents of a file."""

    header: Header
    columns: SyncColumns
    watermarks: Callable[[], pa.Table]
    """Reads rows of topic, partition, time and four watermarks: few callers need them."""


def encode(header: Header, columns: SyncColumns, watermarks: pa.Table) -> bytes:
    """Return the bytes of a file; equal content has equal bytes."""
    metadata = _header_to_json(header) | {"syncs": len(columns)}
    schema = _SCHEMA.with_metadata({_HEADER: json.dumps(metadata, sort_keys=True)})
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(
        sink,
        schema,
        compression="zstd",
        use_dictionary=["topic"],
        column_encoding=dict.fromkeys(schema.names[1:], "DELTA_BINARY_PACKED"),
    ) as writer:
        for part in (_sync_table(columns), watermarks):
            writer.write_table(_complete(part).cast(schema))
    return bytes(sink.getvalue())


def decode(data: bytes) -> Segment:
    """Return the contents of a file.

    Raises:
        FormatError: The bytes have another format version, or are not a file of an archive.
    """
    try:
        file = pq.ParquetFile(pa.BufferReader(data), read_dictionary=["topic"])
        metadata = json.loads(file.schema_arrow.metadata[_HEADER])
        if metadata["format"] != FORMAT:
            raise FormatError(
                f"is of format version {metadata['format']}, and this release reads {FORMAT}; "
                f"read it with the release that wrote it"
            )
        if file.schema.names != _SCHEMA.names:
            raise FormatError(f"has other columns: {', '.join(file.schema.names)}")
        syncs, watermarks = _row_groups(file.metadata, metadata["syncs"])
        rows = file.read_row_groups(syncs, columns=["topic", "partition", *NUMBERS])
        return Segment(
            header=_header_from_json(metadata),
            columns=_columns(rows),
            watermarks=partial(
                file.read_row_groups, watermarks, columns=["topic", "partition", *_WATERMARKS]
            ),
        )
    except (pa.ArrowException, OSError, KeyError, TypeError) as error:
        raise FormatError(f"is not a file of an archive ({error!r})") from error


def _row_groups(metadata: pq.FileMetaData, syncs: int) -> tuple[list[int], list[int]]:
    """Return the row groups that hold the syncs, and those that hold the watermarks."""
    rows = 0
    groups: tuple[list[int], list[int]] = [], []
    for number in range(metadata.num_row_groups):
        groups[rows >= syncs].append(number)
        rows += metadata.row_group(number).num_rows
    return groups


def watermarks_table(watermarks: Mapping[TopicPartition, WatermarkPair], time: int) -> pa.Table:
    """Return the watermarks that a run at ``time`` saw."""
    rows = [
        (*topic_partition, time, *_low_high(source), *_low_high(target))
        for topic_partition, (source, target) in sorted(watermarks.items())
    ]
    names = ["topic", "partition", *_WATERMARKS]
    by_name = zip(names, zip(*rows, strict=True), strict=True) if rows else ((n, ()) for n in names)
    return pa.table({name: pa.array(values, _SCHEMA.field(name).type) for name, values in by_name})


def _low_high(watermarks: Watermarks | None) -> tuple[int | None, int | None]:
    return (watermarks.low, watermarks.high) if watermarks else (None, None)


def _sync_table(columns: SyncColumns) -> pa.Table:
    topics = pa.array([each.topic for each in columns.partitions], pa.string())
    numbers = np.array([each.partition for each in columns.partitions], dtype=np.int32)
    return pa.table(
        {
            "topic": topics.dictionary_encode().take(pa.array(columns.partition_index)),
            "partition": numbers[columns.partition_index],
            **{name: getattr(columns, name) for name in NUMBERS},
        }
    )


def _complete(part: pa.Table) -> pa.Table:
    """Return ``part`` with the columns that it lacks, empty."""
    return pa.table(
        [
            part.column(field.name)
            if field.name in part.column_names
            else pa.nulls(len(part), field.type)
            for field in _SCHEMA
        ],
        names=_SCHEMA.names,
    )


def _columns(table: pa.Table) -> SyncColumns:
    topic = table.column("topic").unify_dictionaries().combine_chunks()
    if isinstance(topic, pa.ChunkedArray):
        topic = topic.chunk(0) if topic.num_chunks else pa.array([], _SCHEMA.field("topic").type)
    names = topic.dictionary.to_pylist()
    topics = np.from_dlpack(topic.indices)
    partitions = _numbers(table, "partition")
    changes = np.flatnonzero((np.diff(topics) != 0) | (np.diff(partitions) != 0)) + 1
    starts = np.concatenate(([0], changes)) if len(topics) else changes
    lengths = np.diff(starts, append=len(topics))
    return SyncColumns(
        partitions=[
            TopicPartition(names[topic], partition)
            for topic, partition in zip(
                topics[starts].tolist(), partitions[starts].tolist(), strict=True
            )
        ],
        partition_index=np.repeat(np.arange(len(starts), dtype=np.int32), lengths),
        offset=_numbers(table, "offset"),
        upstream=_numbers(table, "upstream"),
        downstream=_numbers(table, "downstream"),
    )


def _numbers(table: pa.Table, name: str) -> "np.ndarray[Any, Any]":
    # pyarrow's to_numpy() imports pandas if it is installed, which takes longer than all else.
    return np.from_dlpack(table.column(name).combine_chunks())


def _header_to_json(header: Header) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "source_cluster": header.pair.source,
        "target_cluster": header.pair.target,
        "syncs_topic": header.pair.syncs_topic,
        "generation": list(header.incarnation),
        "runs": [
            [run.first, run.stop, run.time, run.whole, {k: list(v) for k, v in run.topics.items()}]
            for run in header.runs
        ],
        "floors": [
            [*each, *start.incarnation, start.offset, start.settled_below]
            for each, start in sorted(header.history_starts.items())
        ],
    }


def _header_from_json(metadata: Mapping[str, Any]) -> Header:
    return Header(
        pair=PairIdentity(
            source=metadata["source_cluster"],
            target=metadata["target_cluster"],
            syncs_topic=metadata["syncs_topic"],
        ),
        incarnation=TopicIncarnation(*metadata["generation"]),
        runs=tuple(
            Run(
                first=first,
                stop=stop,
                time=time,
                whole=whole,
                topics={topic: (ids[0], ids[1]) for topic, ids in topics.items()},
            )
            for first, stop, time, whole, topics in metadata["runs"]
        ),
        history_starts={
            TopicPartition(topic, partition): HistoryStart(
                TopicIncarnation(number, topic_id), offset, settled_below
            )
            for topic, partition, number, topic_id, offset, settled_below, *_ in metadata["floors"]
        },
    )
