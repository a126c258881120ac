"""A run that ``test_observability`` follows through what Airflow exports of it."""

from typing import Any

from airflow.sdk import DAG, Context

from airflow_mm2_offsets.operators.checkpoint import ReadSparkCheckpointOperator
from airflow_mm2_offsets.operators.translate import TranslateOffsetsOperator
from airflow_mm2_offsets.sensors.checkpoint import SparkStartedSensor
from airflow_mm2_offsets.testing import simulated_mm2

FOLDER = "{{ dag_run.conf.folder }}"


class TranslateInMemory(TranslateOffsetsOperator):
    """Without Kafka Connect, so that the planning below writes a line to the log."""

    def execute(self, context: Context) -> dict[str, Any]:
        """Translate between two clusters that are made here."""
        with simulated_mm2() as mm2:
            mm2.use_connection("mm2_default")
            mm2.source.create_topic("orders", partitions=2)
            for partition in (0, 1):
                mm2.source.produce("orders", partition, [b"order"] * 100)
            mm2.mirror()
            mm2.connect.is_running = False
            return super().execute(context)


with DAG("observed", schedule=None, params={"policy": "planned", "folder": ""}):
    wait = SparkStartedSensor(
        task_id="wait_started",
        checkpoint=f"{FOLDER}/checkpoint",
        deferrable=True,
        poke_interval=0.5,
    )
    wait >> TranslateInMemory(task_id="translate", positions={"orders": {"0": "0", "1": "0"}})
    wait >> ReadSparkCheckpointOperator(task_id="read_positions", checkpoint=f"{FOLDER}/nothing")
