"""A connector's offsets as Connect takes and tells them; ``offsets`` changes them."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from airflow_mm2_offsets.core import TopicPartition
from airflow_mm2_offsets.errors import ConfigurationError

Entries: TypeAlias = Sequence[Mapping[str, Any]]
"""Offsets as Connect tells them: each with its ``partition`` and its ``offset``."""


class SourcePartition(NamedTuple):
    """What Connect keeps one offset of (``MirrorUtils.wrapPartition``)."""

    alias: str
    """Of the source. Where it was renamed, Connect keeps the offsets of both aliases."""
    partition: TopicPartition


def parse_entries(value: object, source_alias: str) -> list[dict[str, Any]]:
    """Return offsets as Connect takes them.

    Args:
        value: A backup (``read_stopped_offsets``), or topic to partition to last copied offset,
            None for a partition to forget; either may be JSON text. Partitions and offsets may be
            text.
        source_alias: ``source.cluster.alias`` of the connector, for the second form.

    Raises:
        ConfigurationError: It is something else.
    """
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError as error:
            raise ConfigurationError(f"the offsets are no JSON: {error}") from None
    try:
        if isinstance(value, Mapping):
            return [
                _entry(source_alias, str(topic), int(number), last)
                for topic, offsets in value.items()
                for number, last in offsets.items()
            ]
        if isinstance(value, Sequence) and not isinstance(value, str):
            return [_checked(entry) for entry in value]
    except (KeyError, TypeError, ValueError, AttributeError):
        pass
    raise ConfigurationError(
        "the offsets have another form; give topic to partition to the last copied offset, or the "
        "backup of ReadConnectorOffsetsOperator"
    )


def overlay(backup: Entries, altered: Entries) -> list[dict[str, Any]]:
    """Return a backup with some partitions' offsets altered; one whose offset is None is gone."""
    merged = {_key(each["partition"]): dict(each) for each in (*backup, *altered)}
    return [each for each in merged.values() if each["offset"] is not None]


def _entry(alias: str, topic: str, number: int, last: object) -> dict[str, Any]:
    offset = None if last is None else {"offset": int(str(last))}
    return {
        "partition": {"cluster": alias, "topic": topic, "partition": number},
        "offset": offset,
    }


def _checked(entry: Mapping[str, Any]) -> dict[str, Any]:
    partition, offset = entry["partition"], entry["offset"]
    made = _entry(
        str(partition["cluster"]),
        str(partition["topic"]),
        int(partition["partition"]),
        None if offset is None else offset["offset"],
    )
    if partition.keys() != made["partition"].keys():
        raise KeyError("partition")
    return made


def by_partition(entries: Entries) -> dict[SourcePartition, int | None]:
    """Return the last copied offset of each partition."""
    return {
        SourcePartition(
            alias=each["partition"]["cluster"],
            partition=TopicPartition(each["partition"]["topic"], each["partition"]["partition"]),
        ): each["offset"] and each["offset"]["offset"]
        for each in entries
    }


def _key(partition: Mapping[str, Any]) -> str:
    return json.dumps(dict(partition), sort_keys=True)


def keyed(entries: Entries) -> dict[str, str | None]:
    """Return offsets as text by partition as text; a forgotten one is left out."""
    return {
        _key(each["partition"]): json.dumps(dict(each["offset"]), sort_keys=True)
        for each in entries
        if each["offset"] is not None
    }
