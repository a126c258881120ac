"""What Airflow's database keeps of a trigger."""

import json
from typing import Any

import pytest
from airflow.providers.common.compat.module_loading import import_string

from airflow_mm2_offsets.core import check_positions
from airflow_mm2_offsets.moves.jobs import Home, SparkJob
from airflow_mm2_offsets.triggers.cancelled import CancelledJobTrigger
from airflow_mm2_offsets.triggers.checkpoint import SparkStartedTrigger
from airflow_mm2_offsets.triggers.drill import DagRunEndedTrigger, DrillStoppedTrigger
from airflow_mm2_offsets.triggers.polling import PollingTrigger
from airflow_mm2_offsets.triggers.replication import ReplicatedTrigger
from airflow_mm2_offsets.triggers.stop import SparkStoppedTrigger
from tests.unit.triggers.times import TIMES

JOB = SparkJob(
    name="orders",
    homes=(
        Home(cluster="eu", folder="s3://eu/orders"),
        Home(cluster="us", folder="s3://us/orders"),
    ),
    kill_after=60.0,
)


@pytest.mark.parametrize(
    "trigger",
    [
        ReplicatedTrigger(mm2_conn_id="mm2", positions={"orders": {0: 2**53 + 1}}, **TIMES),
        SparkStartedTrigger(checkpoint="s3://a@b/c", starting_offsets=None, after_batch=7, **TIMES),
        SparkStartedTrigger(checkpoint="/c", starting_offsets='{"orders":{"0":1}}', **TIMES),
        SparkStoppedTrigger(
            job=JOB.to_json(),
            run_name="failover:manual__1",
            policy="disaster",
            folder="s3://us/orders/2",
            request_id="failover:manual__1#7",
            quiet_period=6.0,
            heartbeat_timeout=30.0,
            **TIMES,
        ),
        DrillStoppedTrigger(
            folder="/drill",
            spark_folder="",
            request_id="drill",
            quiet_period=6.0,
            heartbeat_timeout=None,
            **TIMES,
        ),
        CancelledJobTrigger(
            checkpoint="/b", quiet_period=6.0, request_id="c", cancelled_by="d", **TIMES
        ),
        SparkStartedTrigger(checkpoint="/c", starting_offsets=None, min_records=9, **TIMES),
        DagRunEndedTrigger(dag_id="orders_stream", run_id="manual__1+00:00", **TIMES),
    ],
)
def test_a_trigger_survives_serialization(trigger: PollingTrigger) -> None:
    """Class and arguments, through JSON and an import by name, make an equal trigger."""
    path, arguments = trigger.serialize()
    again = import_string(path)(**json.loads(json.dumps(arguments)))
    assert type(again) is type(trigger)
    assert _comparable(again) == _comparable(trigger)
    assert again.deadline == TIMES["deadline"]


def _comparable(trigger: PollingTrigger) -> dict[str, Any]:
    arguments = trigger.serialize()[1]
    if "positions" in arguments:  # JSON makes text of a partition's number
        arguments["positions"] = check_positions(arguments["positions"])
    return arguments
