"""The records of MirrorMaker 2's offset-syncs topic, heartbeats and checkpoints, as bytes.

The layout is that of ``org.apache.kafka.connect.mirror.OffsetSync`` (KIP-382): big-endian, no
version header, STRING is an INT16 length and UTF-8. ``kafka`` decodes,
``testing`` encodes.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from airflow_mm2_offsets.errors import WireFormatError

_LENGTH = struct.Struct(">h")
_PARTITION = struct.Struct(">i")
_OFFSETS = struct.Struct(">qq")
_HEARTBEAT = struct.Struct(">hq")
_CHECKPOINT = struct.Struct(">hqq")
_SIGN = 0x80  # in the first byte of a negative number


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """MirrorMaker 2 was alive at ``timestamp``: ``org.apache.kafka.connect.mirror.Heartbeat``."""

    source_alias: str
    target_alias: str
    timestamp: int
    """Milliseconds since 1970."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """MirrorMaker 2's own translation of a group's commit.

    Its layout is that of ``org.apache.kafka.connect.mirror.Checkpoint`` (KIP-382).
    """

    group: str
    topic: str
    """The topic's name on the target."""
    partition: int
    upstream: int
    """What the group had committed on the source."""
    downstream: int
    """Where it continues on the target."""
    metadata: str = ""
    """What the group had committed with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetSync:
    """Source record ``upstream`` of a partition was written to target offset ``downstream``."""

    topic: str
    """The topic's name on the source cluster."""
    partition: int
    upstream: int
    """An offset on the source cluster."""
    downstream: int
    """An offset on the target cluster."""


def decode_offset_sync(key: bytes | None, value: bytes | None) -> OffsetSync:
    """Decode one record of the offset-syncs topic.

    Raises:
        WireFormatError: Key or value is absent, too short, too long, not UTF-8, or holds a
            negative number.
    """
    topic, partition = decode_key(key)
    upstream, downstream = _OFFSETS.unpack(check_value(value))
    return OffsetSync(topic=topic, partition=partition, upstream=upstream, downstream=downstream)


def encode_offset_sync(sync: OffsetSync) -> tuple[bytes, bytes]:
    """Return the key and the value of ``sync``, as MirrorMaker 2 writes them."""
    key = _encode_string(sync.topic) + _PARTITION.pack(sync.partition)
    return key, _OFFSETS.pack(sync.upstream, sync.downstream)


def decode_heartbeat(key: bytes | None, value: bytes | None) -> Heartbeat:
    """Decode one record of a heartbeats topic: two STRINGs; INT16 version 0 and INT64 timestamp.

    Raises:
        WireFormatError: Key or value is absent or has another layout.
    """
    source_alias, after = _decode_string(key or b"", 0)
    target_alias, end = _decode_string(key or b"", after)
    if end != len(key or b"") or value is None or len(value) != _HEARTBEAT.size:
        raise WireFormatError(
            f"a heartbeat has two aliases and {_HEARTBEAT.size} bytes, not {key!r} and {value!r}"
        )
    version, timestamp = _HEARTBEAT.unpack(value)
    if version != 0 or timestamp < 0:
        raise WireFormatError(f"a heartbeat of version {version} with timestamp {timestamp}")
    return Heartbeat(source_alias=source_alias, target_alias=target_alias, timestamp=timestamp)


def encode_heartbeat(heartbeat: Heartbeat) -> tuple[bytes, bytes]:
    """Return the key and the value of ``heartbeat``, as MirrorMaker 2 writes them."""
    key = b"".join(map(_encode_string, (heartbeat.source_alias, heartbeat.target_alias)))
    return key, _HEARTBEAT.pack(0, heartbeat.timestamp)


def decode_checkpoint(key: bytes | None, value: bytes | None) -> Checkpoint:
    """Decode one record of a checkpoints topic.

    The key is STRING group, STRING topic, INT32 partition; the value INT16 version 0, INT64
    upstream, INT64 downstream, STRING metadata.

    Raises:
        WireFormatError: Key or value is absent, has another layout, or holds a negative number.
    """
    key, value = key or b"", value or b""
    group, after_group = _decode_string(key, 0)
    topic, after_topic = _decode_string(key, after_group)
    if len(key) != after_topic + _PARTITION.size or len(value) < _CHECKPOINT.size:
        raise WireFormatError(
            f"a checkpoint has a group, a topic, a partition and {_CHECKPOINT.size} bytes with a "
            f"text, not {key!r} and {value!r}"
        )
    (partition,) = _PARTITION.unpack_from(key, after_topic)
    version, upstream, downstream = _CHECKPOINT.unpack_from(value)
    metadata, end = _decode_string(value, _CHECKPOINT.size)
    if version != 0 or end != len(value) or min(partition, upstream, downstream) < 0:
        raise WireFormatError(
            f"a checkpoint of version {version}, partition {partition}, offsets {upstream} and "
            f"{downstream}, {len(value) - end} bytes too long"
        )
    return Checkpoint(
        group=group,
        topic=topic,
        partition=partition,
        upstream=upstream,
        downstream=downstream,
        metadata=metadata,
    )


def encode_checkpoint(checkpoint: Checkpoint) -> tuple[bytes, bytes]:
    """Return the key and the value of ``checkpoint``, as MirrorMaker 2 writes them."""
    names = b"".join(map(_encode_string, (checkpoint.group, checkpoint.topic)))
    offsets = _CHECKPOINT.pack(0, checkpoint.upstream, checkpoint.downstream)
    value = offsets + _encode_string(checkpoint.metadata)
    return names + _PARTITION.pack(checkpoint.partition), value


def _encode_string(text: str) -> bytes:
    data = text.encode()
    return _LENGTH.pack(len(data)) + data


def _decode_string(data: bytes, offset: int) -> tuple[str, int]:
    """Return a STRING and the offset after it."""
    begin = offset + _LENGTH.size
    length = _LENGTH.unpack_from(data, offset)[0] if len(data) >= begin else -1
    if length < 0 or len(data) < begin + length:
        raise WireFormatError(f"{data!r} has no whole text at byte {offset}")
    try:
        return data[begin : begin + length].decode(), begin + length
    except UnicodeDecodeError as error:
        raise WireFormatError(f"{data!r} is not UTF-8: {error}") from error


def decode_key(key: bytes | None) -> tuple[str, int]:
    """Return the source topic's name and the partition; raise as ``decode_offset_sync`` does."""
    if key is None:
        raise WireFormatError("the key is absent")
    if len(key) < _LENGTH.size:
        raise WireFormatError(f"the key has {len(key)} bytes, too few for a topic's length")
    (length,) = _LENGTH.unpack_from(key)
    end = _LENGTH.size + length
    size = end + _PARTITION.size
    if length <= 0 or len(key) != size:
        raise WireFormatError(
            f"the key has {len(key)} bytes; a topic's name of {length} bytes and a partition take "
            f"{size}"
        )
    try:
        topic = key[_LENGTH.size : end].decode()
    except UnicodeDecodeError as error:
        raise WireFormatError(f"the topic's name is not UTF-8: {error}") from error
    (partition,) = _PARTITION.unpack_from(key, end)
    if partition < 0:
        raise WireFormatError(f"partition {partition} of {topic} is negative")
    return topic, partition


def decode_values(values: bytes | bytearray) -> Iterator[tuple[int, int]]:
    """Yield the upstream and the downstream offset of each of many checked values in a row."""
    return _OFFSETS.iter_unpack(values)


def check_value(value: bytes | None) -> bytes:
    """Return ``value`` if it holds two offsets; raise as ``decode_offset_sync`` does."""
    if value is None or len(value) != _OFFSETS.size:
        raise WireFormatError(
            f"the value has {len(value or b'')} bytes; two offsets take {_OFFSETS.size}"
        )
    if (value[0] | value[8]) & _SIGN:
        upstream, downstream = _OFFSETS.unpack(value)
        raise WireFormatError(f"offsets {upstream} and {downstream}: one is negative")
    return value
