"""What spark-submit needs to run a job here: its Kafka source, and loopback addresses."""

from collections.abc import Mapping, Sequence
from pathlib import Path

_DEFAULTS = """\
spark.jars {jars}
spark.ui.enabled false
spark.driver.host 127.0.0.1
spark.driver.bindAddress 127.0.0.1
spark.driver.memory 512m
spark.sql.shuffle.partitions 2
"""


def configure(
    folder: Path, jars: Sequence[Path], python: Path, *, conf: Mapping[str, str] | None = None
) -> Mapping[str, str]:
    """Write a ``spark-defaults.conf`` and return the environment that points to it.

    Args:
        folder: Where to write it.
        jars: The jars of Spark's Kafka source.
        python: The interpreter of the virtual environment that holds PySpark.
        conf: Further settings, such as those of a storage.
    """
    folder.mkdir(parents=True, exist_ok=True)
    text = _DEFAULTS.format(jars=",".join(str(jar) for jar in jars))
    text += "".join(f"{key} {value}\n" for key, value in (conf or {}).items())
    (folder / "spark-defaults.conf").write_text(text)
    return {
        "SPARK_CONF_DIR": str(folder),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": str(python),
        "PYSPARK_DRIVER_PYTHON": str(python),
    }
