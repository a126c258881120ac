"""Waits that hold a worker, or are rescheduled; see ``test_waits_in_worker``."""

from datetime import timedelta
from typing import Any

from airflow.sdk import DAG

from airflow_mm2_offsets.operators.stop import StopSparkStreamingOperator
from airflow_mm2_offsets.sensors.checkpoint import SparkStartedSensor
from airflow_mm2_offsets.sensors.replication import Mm2ReplicatedSensor

FOLDER = "{{ dag_run.conf.folder }}"
RETRIES = {"retries": 2, "retry_delay": timedelta(seconds=1)}

with DAG("sensors", schedule=None, default_args=RETRIES):
    for mode in ("poke", "reschedule"):
        # Airflow retries a task that is due again before its executor has seen it end.
        how: dict[str, Any] = {"mode": mode, "poke_interval": 10 if mode == "reschedule" else 1}
        late = {**how, "checkpoint": f"{FOLDER}/nothing", "timeout": 3}
        SparkStartedSensor(task_id=mode, checkpoint=f"{FOLDER}/checkpoint", **how)
        SparkStartedSensor(task_id=f"{mode}_late", **late)
        SparkStartedSensor(task_id=f"{mode}_skipped", soft_fail=True, **late)
        Mm2ReplicatedSensor(
            task_id=f"{mode}_unconnected",
            mm2_conn_id="nowhere",
            positions='{"orders":{"0":4}}',
            **how,
        )

for dag_id, timeout in (("stops", 300.0), ("stops_in_vain", 5.0)):
    with DAG(dag_id, schedule=None, default_args=RETRIES):
        StopSparkStreamingOperator(
            task_id="stop",
            job={"name": "orders", "homes": {"east": FOLDER}},
            quiet_period=1.0,
            poll_interval=0.5,
            timeout=timeout,
            deferrable=False,
        )
