"""Every jar by its Maven coordinates and SHA-256: stack/jar_lists, a file for each set of jars.

The Ivy files beside this one say what is wanted. ``make jar-lists`` lets Ivy find all that is
needed for it, and writes the lists; ``stack.jars`` downloads what they name.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

FOLDER = Path(__file__).parent / "jar_lists"


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Jar:
    """A jar of Maven Central.

    Attributes:
        organisation: Maven's group id.
        name: Maven's artifact id.
        revision: The version.
        sha256: The SHA-256 of its bytes, in hexadecimal.
    """

    organisation: str
    name: str
    revision: str
    sha256: str

    @classmethod
    def parse(cls, line: str) -> Self:
        """Read a line ``organisation:name:revision sha256``."""
        coordinates, sha256 = line.split()
        organisation, name, revision = coordinates.split(":")
        return cls(organisation=organisation, name=name, revision=revision, sha256=sha256)

    @property
    def file(self) -> str:
        """The name of its file."""
        return f"{self.name}-{self.revision}.jar"

    def __str__(self) -> str:
        """Return the line of a list."""
        return f"{self.organisation}:{self.name}:{self.revision} {self.sha256}"


def list_file(jar_set: str) -> Path:
    """Return the list of a set, which has the name of its configuration in an Ivy file."""
    return FOLDER / f"{jar_set}.txt"


def read(jar_set: str) -> tuple[Jar, ...]:
    """Return the jars of a set."""
    lines = list_file(jar_set).read_text().splitlines()
    return tuple(Jar.parse(line) for line in lines if not line.startswith("#"))


def write(jar_set: str, jars: Iterable[Jar], *, wanted_by: Path) -> None:
    """Write the list of a set.

    Args:
        jar_set: Its name.
        jars: All that it needs.
        wanted_by: The Ivy file that says what is wanted.
    """
    head = f"# What {jar_set} of stack/{wanted_by.name} needs; `make jar-lists` writes it.\n"
    list_file(jar_set).write_text(head + "".join(f"{jar}\n" for jar in sorted(jars)))


def sha256_of(file: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
