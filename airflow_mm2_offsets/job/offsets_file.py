"""Starting offsets as a file: text that is too long for an argument of a program.

The failover writes the file (``spark/offsets_file.py``) and gives the job ``@`` and its location;
the job reads it by ``starting_offsets``. A digest in the file's name says what it holds.
"""

from __future__ import annotations

import re
from contextlib import closing
from hashlib import sha256
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MARK = "@"
"""What the location of a file begins with, where else offsets would be."""
_NAME = re.compile(r"\.offsets-(?P<digest>[0-9a-f]{16})\.json\Z")
_MAX_STEM_BYTES = 180
"""The most bytes of a file's name before ``.offsets-``. Names may have 255 bytes, and a temporary
file's has 38 more than that of the file that it becomes."""
_CONNECTION = re.compile(r"(?P<scheme>s3[an]?|gs|gcs)://[^/@]*@")
"""Airflow's spelling of a bucket with the id of a connection."""


def starting_offsets(spark: SparkSession, text: str, folder: str | None = None) -> str:
    """Return what Spark's ``startingOffsets`` takes: ``text``, or what the file that it names has.

    Args:
        spark: The job's session.
        text: ``earliest``, ``latest`` or Spark's JSON; or ``@`` and the location of a file with
            that JSON. Without the connection's id and with ``s3a`` for ``s3``, where Spark does not
            know ``s3``, Airflow's spelling of the location is Spark's.
        folder: The folder of that file as Spark spells it, where this does not suffice.

    Raises:
        ValueError: The file's name does not end as such a file's does, or the file was changed.
        Py4JJavaError: The file can't be read.
    """
    if not text.startswith(MARK):
        return text
    location = text[len(MARK) :]
    jvm = cast("Any", spark._jvm)  # noqa: SLF001 - the only way to Hadoop
    conf: Any = cast("Any", spark)._jsc.hadoopConfiguration()  # noqa: SLF001
    if folder is None:
        place = _spark_spelling(location, knows_s3=conf.get("fs.s3.impl") is not None)
    else:
        place = f"{folder.rstrip('/')}/{location.rpartition('/')[2]}"
    digest = digest_in_name(place)  # first: no other file is opened
    path = jvm.org.apache.hadoop.fs.Path(place)
    with closing(path.getFileSystem(conf).open(path)) as stream:
        content = str(jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
    check_digest(place, content, digest)
    return content


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
            f"characters is {digest}. Clear the failover's task that translates, with all after it"
        )


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:16]


def _spark_spelling(location: str, *, knows_s3: bool) -> str:
    """Return a location as Spark spells it."""
    location = _CONNECTION.sub(r"\g<scheme>://", location)
    scheme, colon, rest = location.partition("://")
    if scheme == "s3" and not knows_s3:
        return f"s3a{colon}{rest}"
    return f"gs{colon}{rest}" if scheme == "gcs" else location
