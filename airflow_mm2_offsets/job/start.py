"""Where a Spark job starts: it may get its offsets as text, or a file of them."""

from __future__ import annotations

import re
from contextlib import closing
from typing import TYPE_CHECKING, Any, NoReturn, cast

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from airflow_mm2_offsets.job.files import HadoopFiles, read_repeatedly
from airflow_mm2_offsets.job.offsets_file import MARK, WRITE_AGAIN, check_digest, digest_in_name

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CONNECTION = re.compile(r"(?P<scheme>s3[an]?|gs|gcs)://[^/@]*@")
"""Airflow's spelling of a bucket with the id of a connection."""
_REFUSED = (Py4JJavaError, PySparkException)
"""What Hadoop raises; PySpark makes its own exceptions of some of Java's."""


def starting_offsets(
    spark: SparkSession, text: str, folder: str | None = None, *, checkpoint: str | None = None
) -> str:
    """Return what Spark's ``startingOffsets`` takes: ``text``, or what the file that it names has.

    Args:
        spark: The job's session.
        text: ``earliest``, ``latest`` or Spark's JSON; or ``@`` and the location of a file with
            that JSON. Without the connection's id and with ``s3a`` for ``s3``, where Spark does not
            know ``s3``, Airflow's spelling of the location is Spark's.
        folder: The folder of that file as Spark spells it, where this does not suffice.
        checkpoint: The query's ``checkpointLocation``. Once the query has begun there, Spark takes
            the offsets of the checkpoint, and no file is read: the job may be started again without
            it.

    Raises:
        ValueError: The file's name does not end as such a file's does, or the file was changed.
        OSError: The file, or the checkpoint, can't be read.
    """
    if not text.startswith(MARK):
        return text
    if checkpoint is not None and _has_begun(spark, checkpoint):
        return "earliest"  # any value will do: Spark uses it only with a new checkpoint
    location = text[len(MARK) :]
    conf: Any = cast("Any", spark)._jsc.hadoopConfiguration()  # noqa: SLF001 - the only way to Hadoop
    if folder is None:
        place = _spark_spelling(location, knows_s3=conf.get("fs.s3.impl") is not None)
    else:
        place = f"{folder.rstrip('/')}/{location.rpartition('/')[2]}"
    digest = digest_in_name(place)  # first: no other file is opened
    content = _read(spark, conf, place)
    check_digest(place, content, digest)
    return content


def _has_begun(spark: SparkSession, checkpoint: str) -> bool:
    """Tell whether Spark has planned a batch, and the checkpoint says where that begins."""

    def look() -> bool:
        with closing(HadoopFiles(spark, checkpoint)) as files:
            # A first batch that is not committed begins where the source's own file says.
            return bool(files.numbers_in(f"{checkpoint}/offsets")) and any(
                files.numbers_in(f"{checkpoint}/{folder}") for folder in ("commits", "sources/0")
            )

    try:
        return read_repeatedly(look)
    except _REFUSED as error:
        _refuse(error, f"the checkpoint {checkpoint}", "check the location and the job's rights")


def _read(spark: SparkSession, conf: Any, place: str) -> str:  # noqa: ANN401 - a Java object
    jvm = cast("Any", spark._jvm)  # noqa: SLF001 - the only way to Hadoop

    def read() -> str:
        path = jvm.org.apache.hadoop.fs.Path(place)
        with closing(path.getFileSystem(conf).open(path)) as stream:
            return str(jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))

    try:
        return read_repeatedly(read)
    except _REFUSED as error:
        step = (
            f"check that the job may read there (where Spark spells the folder otherwise, give it "
            f"as folder); if the file is gone, {WRITE_AGAIN}"
        )
        _refuse(error, f"{place}, the file of the starting offsets,", step)


def _refuse(error: Exception, what: str, step: str) -> NoReturn:
    # Java's own line: str(error) has its whole stack.
    reason = error.java_exception.toString() if isinstance(error, Py4JJavaError) else str(error)
    raise OSError(f"{what} can't be read: {reason}; {step}") from error


def _spark_spelling(location: str, *, knows_s3: bool) -> str:
    """Return a location as Spark spells it."""
    location = _CONNECTION.sub(r"\g<scheme>://", location)
    scheme, colon, rest = location.partition("://")
    if scheme == "s3" and not knows_s3:
        return f"s3a{colon}{rest}"
    return f"gs{colon}{rest}" if scheme == "gcs" else location
