"""Kills a Spark driver by the deployment that a Spark connection names."""

import json
import subprocess
import time
from typing import Any
from urllib.parse import quote

from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.providers.common.compat.sdk import AirflowNotFoundException

from airflow_mm2_offsets.connect.exchange import ExchangeError, Server
from airflow_mm2_offsets.errors import ConfigurationError, StopError
from airflow_mm2_offsets.spark.control import Driver
from airflow_mm2_offsets.spark.processes import end_driver

COMMAND_SECONDS = 120
TERMINAL_SECONDS = 60
REST_SECONDS = 30
"""Until the last byte of an answer of the standalone master's REST API."""
RUNNING_STATES = frozenset({"SUBMITTED", "RUNNING", "RELAUNCHING", "UNKNOWN"})
"""Of a standalone cluster's driver (``DriverState``); all others are final."""


class SparkKillHook(SparkSubmitHook):
    """Airflow's own Spark hook, for a driver that some other task, or nobody here, submitted.

    ========================== ======================== ====================================
    connection                 what is killed           how
    ========================== ======================== ====================================
    ``yarn``                   the application          ``yarn application -kill``
    ``k8s://``, cluster mode   the driver's pod         ``spark-submit --kill namespace:pod``
    ``spark://``, cluster mode the driver, by its id    the master's REST API
    any other                  the driver's processes,  TERM, then KILL
                               if they run here
    ========================== ======================== ====================================

    Args:
        spark_conn_id: Id of the connection that the job was submitted with.
    """

    def __init__(self, spark_conn_id: str = "spark_default") -> None:
        """Read the connection.

        Raises:
            ConfigurationError: It does not exist, or Airflow's hook can't use it.
        """
        try:
            self.get_connection(spark_conn_id)  # without one Airflow's hook would turn to YARN
        except AirflowNotFoundException as error:
            raise ConfigurationError(
                f"connection {spark_conn_id} does not exist; name the one that the job was "
                f"submitted with"
            ) from error
        try:
            super().__init__(conn_id=spark_conn_id)
        except (NameError, RuntimeError, ValueError) as error:  # as it says a library is missing
            raise ConfigurationError(f"connection {spark_conn_id}: {error}") from error
        self._master: str = self._connection["master"]

    def kill(self, driver: Driver | None, driver_id: str | None = None) -> bool:
        """Kill a driver; one that is gone already is no error.

        Args:
            driver: The driver as it described itself; None for a job without stop control.
            driver_id: What the cluster calls it: an application of YARN, ``namespace:pod``, or
                ``driver-...`` of a standalone cluster. By default as ``driver`` has it.

        Returns:
            Whether its end was seen; False where the cluster has only taken the order.

        Raises:
            StopError: It can't be killed, or not from here.
        """
        if self._is_yarn:
            application = self._known(driver_id or (driver.application_id if driver else None))
            self._run(["yarn", "application", "-kill", application])
            return False
        pod = driver_id or (driver.kubernetes_driver if driver else None)
        if self._is_kubernetes and pod:
            self._driver_id = pod
            self._run(self._build_spark_driver_kill_command())
            return False
        if driver_id and self._master.startswith("spark://"):
            self._kill_standalone(driver_id)
        elif driver is not None:
            end_driver(driver)
        else:
            self._known(None)
        return True

    def _kill_standalone(self, driver_id: str) -> None:
        # spark-submit --kill would succeed, whatever came of it.
        if not self._connection["rest_endpoint"]:
            raise StopError(
                f"{driver_id} can be killed by the REST API of {self._master} alone: enable it "
                f'(spark.master.rest.enabled), and put "deploy-mode": "cluster" and "rest-port" '
                f"into the extra of {self._conn_id}"
            )
        self._ask_master("POST", f"kill/{driver_id}")
        deadline = time.monotonic() + TERMINAL_SECONDS
        while (state := self._standalone_state(driver_id)) in RUNNING_STATES:
            if time.monotonic() > deadline:
                raise StopError(f"{driver_id} is {state} still, {TERMINAL_SECONDS} s after a kill")
            time.sleep(1)
        self.log.info("Driver %s of %s is %s", driver_id, self._master, state)

    def _standalone_state(self, driver_id: str) -> str:
        text = self._ask_master("GET", f"status/{driver_id}")
        try:
            answer: dict[str, Any] = json.loads(text)
            return str(answer["driverState"])
        except (ValueError, KeyError) as error:
            raise StopError(
                f"{self._master} does not know {driver_id}, or answered nonsense: "
                f"{text.strip()[:500]}"
            ) from error

    def _ask_master(self, method: str, what: str) -> str:
        # Airflow's own command is a curl, which keeps an answer of any size.
        server = Server(url=self._connection["rest_endpoint"])
        try:
            answer = server.ask(
                f"/v1/submissions/{quote(what)}", seconds=REST_SECONDS, method=method
            )
        except ExchangeError as error:
            raise StopError(
                f"the REST API of {self._master} did not answer at {server.url}: {error}; see that "
                f'"rest-port" in the extra of {self._conn_id} is its port'
            ) from error
        return answer.body.decode(errors="replace")

    def _known(self, name: str | None) -> str:
        if name:
            return name
        raise StopError(
            f"nothing says what {self._master} calls the driver: give the operator its driver_id, "
            f"or the control location of a job under StopControl"
        )

    def _run(self, command: list[str]) -> str:
        self.log.info("Running %s", self._mask_cmd(command))
        try:
            done = subprocess.run(  # noqa: S603 - Airflow's own command, or YARN's
                command, capture_output=True, text=True, check=True, timeout=COMMAND_SECONDS
            )
        except subprocess.CalledProcessError as error:
            said = f"{error}: {error.stderr.strip()[-500:]}"
            raise StopError(f"{self._mask_cmd(command)} failed: {said}") from error
        except (OSError, subprocess.TimeoutExpired) as error:
            raise StopError(f"{self._mask_cmd(command)} failed: {error}") from error
        return done.stdout
