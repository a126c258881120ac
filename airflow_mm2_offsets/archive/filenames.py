"""The names of an archive's files, and the offsets that they cover; ``store`` reads them.

A name holds the offsets and the digest of its file's bytes. So writing the same contents again
changes nothing, and a damaged file is recognized.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from itertools import groupby

from airflow_mm2_offsets.archive.values import Header, TopicIncarnation

_NAME = re.compile(
    r"syncs-(?P<number>\d{6})-(?P<first>\d{19})-(?P<stop>\d{19})-(?P<digest>[0-9a-f]{64})"
    r"-(?P<topic_id>[\w-]*)\.parquet",
    re.ASCII,
)


@dataclass(frozen=True, slots=True, order=True)
class FileName:
    """A file that covers ``[first, stop)`` of one incarnation of the syncs topic."""

    incarnation: TopicIncarnation
    first: int
    stop: int
    digest: str
    """SHA-256 of the file's bytes."""

    @classmethod
    def parse(cls, name: str) -> "FileName | None":
        """Return the parts of ``name``; None if it is not the name of an archive's file."""
        if not (match := _NAME.fullmatch(name)):
            return None
        return cls(
            TopicIncarnation(int(match["number"]), match["topic_id"]),
            int(match["first"]),
            int(match["stop"]),
            match["digest"],
        )

    @classmethod
    def of(cls, header: Header, data: bytes) -> "FileName":
        """Return the name of the file that holds ``data``."""
        return cls(header.incarnation, header.first, header.stop, sha256(data).hexdigest())

    def __str__(self) -> str:
        """Return the name."""
        number, topic_id = self.incarnation
        offsets = f"{self.first:019d}-{self.stop:019d}"
        return f"syncs-{number:06d}-{offsets}-{self.digest}-{topic_id}.parquet"

    def matches(self, data: bytes) -> bool:
        """Tell whether ``data`` was written under this name."""
        return sha256(data).hexdigest() == self.digest


def covered(names: Iterable[FileName]) -> dict[TopicIncarnation, int]:
    """Return the offset up to which each incarnation is covered from 0 on without a gap."""
    ends: dict[TopicIncarnation, int] = {}
    for name in sorted(names):
        end = ends.setdefault(name.incarnation, 0)
        if name.first <= end < name.stop:
            ends[name.incarnation] = name.stop
    return ends


def gaps(names: Iterable[FileName]) -> list[str]:
    """Return a phrase for each range that no file covers though later files exist."""
    phrases = []
    last = 0
    for incarnation, group in groupby(sorted(names), key=lambda name: name.incarnation):
        if incarnation.number > last + 1:
            phrases.append(f"all of incarnation {last + 1}")
        last = incarnation.number
        end = 0
        for name in group:
            if name.first > end:
                phrases.append(f"offsets {end} to {name.first - 1} of incarnation {last}")
            end = max(end, name.stop)
    return phrases
