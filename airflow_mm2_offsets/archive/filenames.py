"""The names of an archive's files, and what the names alone tell.

A name holds what its file covers and the digest of its bytes: writing the same again changes
nothing, and a file that does not hold what was written is known by it.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from itertools import groupby

from airflow_mm2_offsets.archive.values import Generation, Header

_NAME = re.compile(
    r"syncs-(?P<number>\d{6})-(?P<first>\d{19})-(?P<stop>\d{19})-(?P<digest>[0-9a-f]{64})"
    r"-(?P<topic_id>[\w-]*)\.parquet",
    re.ASCII,
)


@dataclass(frozen=True, slots=True, order=True)
class FileName:
    """A file that covers ``[first, stop)`` of one generation of the syncs topic."""

    generation: Generation
    first: int
    stop: int
    digest: str
    """SHA-256 of the file's bytes."""

    @classmethod
    def parse(cls, name: str) -> "FileName | None":
        """Return what ``name`` says; None where it is not the name of an archive's file."""
        if not (found := _NAME.fullmatch(name)):
            return None
        return cls(
            Generation(int(found["number"]), found["topic_id"]),
            int(found["first"]),
            int(found["stop"]),
            found["digest"],
        )

    @classmethod
    def of(cls, header: Header, data: bytes) -> "FileName":
        """Return the name of the file that holds ``data``."""
        return cls(header.generation, header.first, header.stop, sha256(data).hexdigest())

    def __str__(self) -> str:
        """Return the name."""
        number, topic_id = self.generation
        offsets = f"{self.first:019d}-{self.stop:019d}"
        return f"syncs-{number:06d}-{offsets}-{self.digest}-{topic_id}.parquet"

    def matches(self, data: bytes) -> bool:
        """Tell whether ``data`` is what was written under this name."""
        return sha256(data).hexdigest() == self.digest


def covered(names: Iterable[FileName]) -> dict[Generation, int]:
    """Return up to which offset each generation is covered from 0 on without a gap."""
    reached: dict[Generation, int] = {}
    for name in sorted(names):
        end = reached.setdefault(name.generation, 0)
        if name.first <= end < name.stop:
            reached[name.generation] = name.stop
    return reached


def gaps(names: Iterable[FileName]) -> list[str]:
    """Return what no file covers though later ones exist, each as a phrase."""
    found = []
    last = 0
    for generation, group in groupby(sorted(names), key=lambda name: name.generation):
        if generation.number > last + 1:
            found.append(f"all of generation {last + 1}")
        last = generation.number
        end = 0
        for name in group:
            if name.first > end:
                found.append(f"offsets {end} to {name.first - 1} of generation {last}")
            end = max(end, name.stop)
    return found
