"""The records of MirrorMaker 2's offset-syncs topic and of its heartbeats, as bytes.

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
_SIGN = 0x80  # in the first byte of a negative number


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """MirrorMaker 2 was alive at ``timestamp``: ``org.apache.kafka.connect.mirror.Heartbeat``."""

    source_alias: str
    target_alias: str
    timestamp: int
    """Milliseconds since 1970."""


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
    name = sync.topic.encode()
    key = _LENGTH.pack(len(name)) + name + _PARTITION.pack(sync.partition)
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
    names = (heartbeat.source_alias.encode(), heartbeat.target_alias.encode())
    key = b"".join(_LENGTH.pack(len(name)) + name for name in names)
    return key, _HEARTBEAT.pack(0, heartbeat.timestamp)


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
