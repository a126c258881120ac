"""Runs ReconcileOperator with real connections, in a separate process."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from stack import jars, spark
from stack.process import Program, ProgramError
from tests.integration.reconcile_suite import ROOT, ReconcileSuite

SCRIPT = """
import json, sys
from airflow_mm2_offsets.operators.reconcile import ReconcileOperator

class Task:
    def xcom_push(self, key, value):
        print(f"XCOM {key} {json.dumps(value)}")

settings = json.loads(open(sys.argv[1]).read())
ReconcileOperator(task_id="verify", **settings).execute(context={"ti": Task()})
"""


def run_operator(suite: ReconcileSuite, folder: Path, settings: dict[str, object]) -> str:
    """Run the operator, which must fail; return its log."""
    script, settings_file = folder / "verify.py", folder / "settings.json"
    script.write_text(SCRIPT)
    settings_file.write_text(json.dumps(settings))
    program = Program(
        "the operator",
        [sys.executable, script, settings_file],
        log=folder / "operator.log",
        env={
            "AIRFLOW_HOME": str(folder / "airflow"),
            "AIRFLOW__CORE__UNIT_TEST_MODE": "True",
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            **{
                f"AIRFLOW_CONN_{key.upper()}": json.dumps(to)
                for key, to in _connections(suite).items()
            },
            **spark.configure(
                folder / "spark", jars.fetch(ROOT / "build").spark, Path(sys.executable)
            ),
        },
    )
    program.start()
    try:
        with pytest.raises(ProgramError, match="ended with code 1"):
            program.wait_end()
    finally:
        program.kill()
    return program.log.read_text()


def _connections(suite: ReconcileSuite) -> dict[str, dict[str, Any]]:
    servers = {"source": suite.mirror.stack.source, "target": suite.mirror.stack.target}
    naming = suite.mirror.pair.naming
    return {
        **{
            f"kafka_{side}": {"conn_type": "kafka", "extra": {"bootstrap.servers": address}}
            for side, address in servers.items()
        },
        "spark_default": {"conn_type": "spark", "host": "local[1]"},
        "mm2_default": {
            "conn_type": "mm2",
            "extra": {
                "source_alias": naming.source_alias,
                "target_alias": naming.target_alias,
                "replication_policy": "identity",
                "offset_syncs_topic_location": "target",
            },
        },
    }
