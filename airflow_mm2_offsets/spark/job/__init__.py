"""What runs inside a user's Spark job: neither Airflow nor a Kafka client is needed there."""

from pathlib import Path

from airflow_mm2_offsets.spark.job.core_zip import core_zip

_FILES = (
    "mm2_stop_control.py",
    "mm2_stop_jvm.py",
    "mm2_offsets_sql.py",
    "mm2_offsets_decode.py",
    "mm2_offsets_logs.py",
    "mm2_offsets_lookup.py",
    "mm2_offsets_tables.py",
)


def py_files() -> str:
    """Return the files to give to ``spark-submit --py-files``, with a comma between them.

    The job then says ``from mm2_stop_control import StopControl``, or ``from mm2_offsets_sql import
    translate``.
    """
    files = [Path(__file__).with_name(name) for name in _FILES]
    return ",".join(map(str, [*files, core_zip()]))
