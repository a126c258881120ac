"""Reads a file of Kafka client properties inside a Spark job: a command line would show logins.

The user's job calls ``kafka_options``, ``job/reconcile/main.py`` the two functions below it.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from pyspark import SparkFiles

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

NOT_FOR_SPARK = frozenset(
    {
        *("key.deserializer", "value.deserializer", "key.serializer", "value.serializer"),
        *("enable.auto.commit", "auto.offset.reset", "interceptor.classes", "group.id"),
    }
)
"""Spark sets these itself, and refuses them (``KafkaSourceProvider.validateGeneralOptions``)."""


def kafka_options(spark: SparkSession, path: str) -> dict[str, str]:
    """Return the options of Spark's Kafka source that a file of client properties gives.

    Args:
        spark: The job's session.
        path: A file of Kafka's Java client properties where the driver runs, or one that
            ``spark-submit --files`` has brought there.

    Raises:
        Py4JJavaError: The file can't be read.
    """
    return spark_options(read_properties(spark, find_file(path)))


def spark_options(properties: Mapping[str, str]) -> dict[str, str]:
    """Return Kafka client properties as options of Spark's Kafka source."""
    return {f"kafka.{key}": to for key, to in properties.items() if key not in NOT_FOR_SPARK}


def find_file(path: str) -> str:
    """Return where a file is: here, or where ``spark-submit --files`` has put it."""
    name = Path(path).name
    local = next((file for file in (path, name) if Path(file).exists()), None)
    return local or SparkFiles.get(name)


def read_properties(spark: SparkSession, path: str) -> dict[str, str]:
    """Return the properties in a file, as Java reads it."""
    jvm = cast("Any", spark._jvm)  # noqa: SLF001 - Java's own reader
    properties = jvm.java.util.Properties()
    with closing(jvm.java.io.FileInputStream(path)) as stream:
        properties.load(stream)
    return {name: properties.getProperty(name) for name in properties.stringPropertyNames()}
