"""Digests of a record's parts, by which ``ranges`` compares records of two clusters."""

from collections.abc import Iterable
from hashlib import blake2b
from typing import NamedTuple

from airflow_mm2_offsets.kafka.drain import Record


class RecordParts(NamedTuple):
    """A record's parts, each as a digest, to tell which of them differ from another record's."""

    key: bytes
    value: bytes
    timestamp: int
    headers: bytes

    def differing(self, other: "RecordParts") -> list[str]:
        """Return the names of the parts that differ."""
        return [name for name in self._fields if getattr(self, name) != getattr(other, name)]


def parts_of(record: Record) -> RecordParts:
    """Return the digests of a record's parts."""
    return RecordParts(
        key=_digest([record.key()]),
        value=_digest([record.value()]),
        timestamp=record.timestamp()[1],
        headers=_digest(_header_parts(record)),
    )


def digest_of(record: Record) -> bytes:
    """Return 16 bytes that are equal for equal key, value and headers."""
    return _digest([record.key(), record.value(), *_header_parts(record)])


def _header_parts(record: Record) -> list[bytes | None]:
    parts: list[bytes | None] = []
    for name, value in record.headers() or ():
        parts += [name.encode(), value]
    return parts


def _digest(parts: Iterable[bytes | None]) -> bytes:
    digest = blake2b(digest_size=16)
    for part in parts:
        # The length separates neighbours; -1 tells an absent value from an empty one.
        digest.update((-1 if part is None else len(part)).to_bytes(8, "big", signed=True))
        digest.update(part or b"")
    return digest.digest()
