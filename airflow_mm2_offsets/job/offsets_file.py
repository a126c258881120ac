"""The file of starting offsets that are too long for an argument of a program: its name.

The failover writes the file, passes ``@`` and its location on, and reads it back
(``spark/offsets_file.py``). A digest in the file's name says what it holds.
"""

from __future__ import annotations

import re
from hashlib import sha256

MARK = "@"
"""What the location of a file begins with, where else offsets would be."""
_NAME = re.compile(r"\.offsets-(?P<digest>[0-9a-f]{16})\.json\Z")
_MAX_STEM_BYTES = 180
"""The most bytes of a file's name before ``.offsets-``. Names may have 255 bytes, and a temporary
file's has 38 more than that of the file that it becomes."""
WRITE_AGAIN = (
    "clear the failover's task that translates, with all after it, and it writes the file again; "
    "if the job's own DAG run exists already, then clear that run, too"
)
"""What to do about a file that is gone or damaged: a job that has been given it stays failed."""


def offsets_file_name(stem: str, text: str) -> str:
    """Return the name of the file of these offsets; other offsets have another name.

    Args:
        stem: What the name begins with; a long one is cut. HDFS takes no colon, which the ids of
            DAG runs have.
        text: The offsets.
    """
    safe = "".join(each if each.isalnum() or each in "-_." else "-" for each in stem)
    cut = safe.encode()[:_MAX_STEM_BYTES].decode(errors="ignore")
    return f"{cut}.offsets-{_digest(text)}.json"


def digest_in_name(location: str) -> str:
    """Return the digest in a file's name; raise ValueError unless it is one of offsets."""
    named = _NAME.search(location.rpartition("/")[2])
    if named is None:
        raise ValueError(
            f"{location} is no file of starting offsets: its name does not end with "
            f".offsets-<digest>.json; give what the failover gave, or Spark's JSON text itself"
        )
    return named["digest"]


def check_digest(location: str, text: str, named: str) -> None:
    """Raise ValueError unless a file holds the text whose digest its name has."""
    if named != (digest := _digest(text)):
        raise ValueError(
            f"{location} was changed: its name says {named}, and the digest of its {len(text)} "
            f"characters is {digest}: {WRITE_AGAIN}"
        )


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:16]
