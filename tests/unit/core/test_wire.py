"""The bytes of the offset-syncs topic."""

import struct
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_mm2_offsets.core import OffsetSync, decode_offset_sync, encode_offset_sync
from airflow_mm2_offsets.core.wire import (
    Checkpoint,
    Heartbeat,
    decode_checkpoint,
    decode_heartbeat,
    encode_checkpoint,
    encode_heartbeat,
)
from airflow_mm2_offsets.errors import WireFormatError

OFFSETS = st.integers(0, 2**63 - 1)
SYNCS = st.builds(
    OffsetSync,
    topic=st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=249),
    partition=st.integers(0, 2**31 - 1),
    upstream=OFFSETS,
    downstream=OFFSETS,
)

KEY = b"\x00\x06orders\x00\x00\x00\x03"
VALUE = b"\x00\x00\x00\x00\x00\x00\x04\xd2\x00\x00\x00\x00\x00\x00\x03\xe7"


def test_bytes_are_those_of_java() -> None:
    """orders[3] 1234 -> 999 is the record that Kafka's OffsetSync.recordKey and -Value write.

    Its schemas are STRING and INT32, and INT64 twice, by
    ``org.apache.kafka.common.protocol.types``.
    """
    sync = OffsetSync(topic="orders", partition=3, upstream=1234, downstream=999)
    assert encode_offset_sync(sync) == (KEY, VALUE)
    assert decode_offset_sync(KEY, VALUE) == sync


def test_a_name_is_as_long_as_its_bytes() -> None:
    """The length counts bytes of UTF-8, not characters."""
    sync = OffsetSync(topic="bücher", partition=0, upstream=0, downstream=0)
    key, _ = encode_offset_sync(sync)
    assert key == b"\x00\x07b\xc3\xbccher\x00\x00\x00\x00"


@given(SYNCS)
def test_round_trip(sync: OffsetSync) -> None:
    """What is encoded is decoded to the same."""
    assert decode_offset_sync(*encode_offset_sync(sync)) == sync


@given(SYNCS, st.data())
def test_a_cut_record_is_refused(sync: OffsetSync, data: st.DataObject) -> None:
    """Any part of a key or a value that is missing is an error, never a wrong sync."""
    key, value = encode_offset_sync(sync)
    with pytest.raises(WireFormatError):
        decode_offset_sync(key[: data.draw(st.integers(0, len(key) - 1))], value)
    with pytest.raises(WireFormatError):
        decode_offset_sync(key, value[: data.draw(st.integers(0, len(value) - 1))])


@given(SYNCS, st.binary(min_size=1, max_size=9))
def test_trailing_bytes_are_refused(sync: OffsetSync, more: bytes) -> None:
    """A record that is longer than its layout is of another kind."""
    key, value = encode_offset_sync(sync)
    with pytest.raises(WireFormatError):
        decode_offset_sync(key + more, value)
    with pytest.raises(WireFormatError):
        decode_offset_sync(key, value + more)


@given(st.binary(max_size=40) | st.none(), st.binary(max_size=40) | st.none())
def test_any_bytes_are_a_sync_or_an_error(key: bytes | None, value: bytes | None) -> None:
    """Whatever lies on the topic, only a WireFormatError comes of it."""
    try:
        sync = decode_offset_sync(key, value)
    except WireFormatError:
        return
    assert encode_offset_sync(sync) == (key, value)


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        (None, VALUE, "key is absent"),
        (KEY, None, "0 bytes"),
        (b"\x00", VALUE, "too few"),
        (b"\x00\x00\x00\x00\x00\x00", VALUE, "0 bytes"),
        (b"\xff\xffa\x00\x00\x00\x00", VALUE, "-1 bytes"),
        (b"\x00\x01\xff\x00\x00\x00\x00", VALUE, "not UTF-8"),
        (b"\x00\x01a\xff\xff\xff\xff", VALUE, "partition -1 of a is negative"),
        (KEY, struct.pack(">qq", -1, 0), "-1 and 0"),
        (KEY, struct.pack(">qq", 0, -1), "0 and -1"),
        (KEY, b"\x00\x00" + VALUE, "18 bytes"),
    ],
)
def test_damage_is_named(key: bytes | None, value: bytes | None, says: str) -> None:
    """The error says what is wrong with the record."""
    with pytest.raises(WireFormatError, match=says):
        decode_offset_sync(key, value)


def test_heartbeats_are_those_of_java() -> None:
    """A heartbeat's key is two STRINGs, its value INT16 version 0 and an INT64 timestamp."""
    heartbeat = Heartbeat(source_alias="eu", target_alias="us", timestamp=1234)
    key, value = b"\x00\x02eu\x00\x02us", b"\x00\x00\x00\x00\x00\x00\x00\x00\x04\xd2"
    assert encode_heartbeat(heartbeat) == (key, value)
    assert decode_heartbeat(key, value) == heartbeat
    for wrong in ((None, value), (key, None), (key[:-1], value), (key + b"x", value)):
        with pytest.raises(WireFormatError):
            decode_heartbeat(*wrong)
    with pytest.raises(WireFormatError, match=r"version 1"):
        decode_heartbeat(key, b"\x00\x01" + value[2:])
    with pytest.raises(WireFormatError, match=r"not UTF-8"):
        decode_heartbeat(b"\x00\x01\xff\x00\x00", value)


CHECKPOINT = Checkpoint(
    group="shop", topic="eu.orders", partition=3, upstream=1234, downstream=999, metadata="m"
)


def test_a_checkpoints_bytes_are_those_of_java() -> None:
    """The schemas of ``org.apache.kafka.connect.mirror.Checkpoint``.

    Key: STRING group, STRING topic, INT32 partition. Value: INT16 version, INT64 upstream, INT64
    downstream, STRING metadata.
    """
    key = b"\x00\x04shop\x00\x09eu.orders\x00\x00\x00\x03"
    value = b"\x00\x00" + VALUE + b"\x00\x01m"
    assert encode_checkpoint(CHECKPOINT) == (key, value)
    assert decode_checkpoint(key, value) == CHECKPOINT


@given(st.data())
def test_a_cut_checkpoint_is_refused(data: st.DataObject) -> None:
    """Any part that is missing, and any byte too many, is an error; so is a tombstone."""
    key, value = encode_checkpoint(CHECKPOINT)
    cut_key = key[: data.draw(st.integers(0, len(key) - 1))]
    cut_value = value[: data.draw(st.integers(0, len(value) - 1))]
    for bad in ((cut_key, value), (key, cut_value), (key + b"x", value), (key, value + b"x")):
        with pytest.raises(WireFormatError):
            decode_checkpoint(*bad)
    with pytest.raises(WireFormatError):
        decode_checkpoint(key, None)


@pytest.mark.parametrize("field", ["partition", "upstream", "downstream"])
def test_a_negative_number_of_a_checkpoint_is_refused(field: str) -> None:
    """MirrorMaker 2 writes none: -1 would be taken for an offset."""
    number: dict[str, Any] = {field: -1}
    with pytest.raises(WireFormatError):
        decode_checkpoint(*encode_checkpoint(replace(CHECKPOINT, **number)))
