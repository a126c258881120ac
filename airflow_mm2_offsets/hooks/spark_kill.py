"""Kills a Spark driver by the deployment that a Spark connection names."""

import re
import subprocess
import time
from collections.abc import Callable, Container
from functools import partial

from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.providers.common.compat.sdk import AirflowNotFoundException

from airflow_mm2_offsets.errors import ConfigurationError, StopError
from airflow_mm2_offsets.spark.control import Driver
from airflow_mm2_offsets.spark.processes import end_driver

COMMAND_SECONDS = 120
TERMINAL_SECONDS = 120
"""How long to wait until a cluster confirms the end of a driver that it was told to kill."""
RUNNING_YARN_STATES = frozenset({"NEW", "NEW_SAVING", "SUBMITTED", "ACCEPTED", "RUNNING"})
RUNNING_PHASES = frozenset({"Pending", "Running", "Unknown"})
"""Of a pod, also while it is terminating."""
POD_GONE = "gone"


class SparkKillHook(SparkSubmitHook):
    """Airflow's own Spark hook, for a driver that another task or another tool submitted.

    ========================== ======================== ====================================
    connection                 what is killed           how, and how its end is seen
    ========================== ======================== ====================================
    ``yarn``                   the application          ``yarn application -kill``, ``-status``
    ``k8s://``, cluster mode   the driver's pod         ``spark-submit --kill namespace:pod``,
                                                        ``--status``
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
            self.get_connection(spark_conn_id)  # Airflow's hook falls back to YARN
        except AirflowNotFoundException as error:
            raise ConfigurationError(
                f"connection {spark_conn_id} does not exist; name the one that the job was "
                f"submitted with"
            ) from error
        try:
            super().__init__(conn_id=spark_conn_id)
        except (NameError, RuntimeError, ValueError) as error:  # such as a missing library
            raise ConfigurationError(f"connection {spark_conn_id}: {error}") from error
        self._master: str = self._connection["master"]

    def kill(self, driver: Driver | None) -> bool:
        """Kill a driver; return normally if it has ended already.

        Args:
            driver: The driver as it described itself; None: no driver has.

        Returns:
            Whether its end was seen; False if the cluster only accepted the kill request.

        Raises:
            StopError: It can't be killed at all or not from here, or it still runs two minutes
                after the kill.
        """
        application = driver.application_id if driver else None
        pod = driver.kubernetes_driver if driver else None
        if self._is_yarn and application:
            self._run(["yarn", "application", "-kill", application])
            return self._has_ended(
                application, partial(self._yarn_state, application), RUNNING_YARN_STATES
            )
        if self._is_kubernetes and pod:
            self._driver_id = pod
            self._run(self._build_spark_driver_kill_command())
            return self._has_ended(pod, self._pod_phase, RUNNING_PHASES)
        if driver is None or self._is_yarn:
            raise StopError(
                f"nothing says what {self._master} calls the driver: end it there yourself, or run "
                f"the job under StopControl"
            )
        end_driver(driver)
        return True

    def _has_ended(
        self, name: str, read_state: Callable[[], str | None], running: Container[str | None]
    ) -> bool:
        """Wait for a final state; return False if the cluster reports no state."""
        deadline = time.monotonic() + TERMINAL_SECONDS
        while (state := read_state()) in running:
            if time.monotonic() > deadline:
                raise StopError(f"{name} is {state} still, {TERMINAL_SECONDS} s after a kill")
            time.sleep(1)
        self.log.info("Driver %s of %s is %s", name, self._master, state or "in no known state")
        return state is not None

    def _yarn_state(self, application: str) -> str | None:
        text = self._ask(["yarn", "application", "-status", application])
        state = re.search(r"^\s*State : (\w+)", text, re.MULTILINE)
        return state and state[1]

    def _pod_phase(self) -> str | None:
        text = self._ask(self._build_track_driver_status_command())
        if re.search(r"^(Application not|No applications) found", text, re.MULTILINE):
            return POD_GONE
        phase = re.search(r"^\s*phase: (\w+)", text, re.MULTILINE)
        return phase and phase[1]

    def _run(self, command: list[str]) -> str:
        process = self._call(command)
        if process.returncode:
            # A program may repeat its arguments. Mask before cutting, or half a secret would show.
            output = self._mask_cmd(process.stderr.strip())[-500:]
            raise StopError(
                f"{self._mask_cmd(command)} failed: exit code {process.returncode}: {output}"
            )
        return process.stdout

    def _ask(self, command: list[str]) -> str:
        """Return a command's output, also if it fails; empty text if it can't be run."""
        try:
            process = self._call(command)
        except StopError as error:
            self.log.warning("%s", error)
            return ""
        return f"{process.stdout}\n{process.stderr}"

    def _call(self, command: list[str]) -> "subprocess.CompletedProcess[str]":
        masked = self._mask_cmd(command)
        self.log.info("Running %s", masked)
        try:
            return subprocess.run(  # noqa: S603 - Airflow's own command, or YARN's
                command, capture_output=True, text=True, check=False, timeout=COMMAND_SECONDS
            )
        except subprocess.TimeoutExpired:
            # The error and its text hold the command with its secrets: raise neither.
            problem = f"no end after {COMMAND_SECONDS} s; see whether the cluster answers"
        except OSError as error:
            problem = str(error)
        raise StopError(f"{masked} failed: {problem}")
