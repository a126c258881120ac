"""What runs inside a user's Spark job: neither Airflow nor a Kafka client is needed there."""

from pathlib import Path


def py_files() -> str:
    """Return the file to give to ``spark-submit --py-files``.

    The job then says ``from mm2_stop_control import StopControl``.
    """
    return str(Path(__file__).with_name("mm2_stop_control.py"))
