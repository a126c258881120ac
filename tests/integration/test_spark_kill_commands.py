"""SparkKillHook: which command kills which deployment's driver."""

import os
import traceback
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.providers.apache.spark.hooks import spark_submit

from airflow_mm2_offsets.errors import ConfigurationError, StopError
from airflow_mm2_offsets.hooks import spark_kill
from airflow_mm2_offsets.hooks.spark_kill import SparkKillHook
from airflow_mm2_offsets.spark.control import Driver
from tests.unit.operators.clusters import define

DRIVER = Driver(
    application_id="application_1_2",
    query_id="q",
    run_id="r",
    host="far-away",
    pid=7,
    heartbeat=1,
    kubernetes_driver="jobs:orders-driver",
)

Program = Callable[..., None]
Called = Callable[[], str]


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    """Puts a program on the PATH that notes its arguments, and ends as it is told.

    It says one text after the other, and the last one from then on.
    """
    monkeypatch.setattr("airflow_mm2_offsets.hooks.spark_kill.time.sleep", lambda _seconds: None)

    def make(name: str, *says: str, code: int = 0) -> None:
        for number, text in enumerate(says, 1):
            (tmp_path / f"{name}.{number}").write_text(text)
        path = tmp_path / name
        path.write_text(
            f'#!/bin/sh\necho {name} "$@" >> {tmp_path}/called\n'
            f"calls=$(grep -c '^{name} ' {tmp_path}/called)\n"
            f"[ $calls -lt {len(says)} ] || calls={len(says)}\n"
            f"[ $calls -eq 0 ] || cat {tmp_path}/{name}.$calls >&2\nexit {code}\n"
        )
        path.chmod(0o755)

    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return make


@pytest.fixture
def called(tmp_path: Path) -> Called:
    """Returns what was called."""
    return (tmp_path / "called").read_text


def _connect(monkeypatch: pytest.MonkeyPatch, master: str, **extra: Any) -> None:
    define(monkeypatch, "spark_here", conn_type="spark", host=master, extra=extra)


def test_an_application_of_yarn(
    monkeypatch: pytest.MonkeyPatch, program: Program, called: Called
) -> None:
    """The application is killed by its id, and YARN is asked for its end."""
    _connect(monkeypatch, "yarn")
    running, killed = ("\tState : RUNNING\n", "\tState : KILLED\n\tFinal-State : KILLED\n")
    program("yarn", "", running, running, killed)
    assert SparkKillHook("spark_here").kill(DRIVER) is True
    assert called().splitlines() == [
        "yarn application -kill application_1_2",
        *("yarn application -status application_1_2",) * 3,
    ]


def test_a_pod_of_kubernetes(
    monkeypatch: pytest.MonkeyPatch, program: Program, called: Called
) -> None:
    """The pod is deleted by namespace and name; while it terminates, it has not ended."""
    monkeypatch.setattr(spark_submit, "kube_client", SimpleNamespace(), raising=False)
    _connect(monkeypatch, "k8s://https://api:6443")
    terminating = "Application status (driver): \n\t pod name: orders-driver\n\t phase: Running\n"
    program("spark-submit", "", terminating, terminating, "Application not found.\n")
    assert SparkKillHook("spark_here").kill(DRIVER) is True
    submit = "spark-submit --master k8s://https://api:6443"
    assert called().splitlines() == [
        f"{submit} --kill jobs:orders-driver",
        *(f"{submit} --status jobs:orders-driver",) * 3,
    ]


def test_a_cluster_that_does_not_say_whether_a_driver_has_ended(
    monkeypatch: pytest.MonkeyPatch, program: Program
) -> None:
    """The cluster accepted the kill request; the caller must wait longer."""
    _connect(monkeypatch, "yarn")
    program("yarn", "something else")
    assert SparkKillHook("spark_here").kill(DRIVER) is False


def test_a_driver_that_a_cluster_does_not_end(
    monkeypatch: pytest.MonkeyPatch, program: Program
) -> None:
    """An accepted kill request is no proof: the error gives the driver's state."""
    _connect(monkeypatch, "yarn")
    monkeypatch.setattr("airflow_mm2_offsets.hooks.spark_kill.TERMINAL_SECONDS", 0)
    program("yarn", "\tState : RUNNING\n")
    with pytest.raises(StopError, match="application_1_2 is RUNNING still, 0 s after a kill"):
        SparkKillHook("spark_here").kill(DRIVER)


def test_a_driver_in_client_mode_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a local master nor a cluster's can end a driver on another machine."""
    for master in ("local[2]", "spark://master:7077"):
        _connect(monkeypatch, master)
        with pytest.raises(StopError, match="on far-away"):
            SparkKillHook("spark_here").kill(DRIVER)


@pytest.mark.parametrize("master", ["yarn", "spark://master:7077", "local"])
def test_a_kill_without_a_job(monkeypatch: pytest.MonkeyPatch, master: str) -> None:
    """Where no driver has described itself, nothing is killed."""
    _connect(monkeypatch, master)
    with pytest.raises(StopError, match=f"nothing says what {master} calls the driver"):
        SparkKillHook("spark_here").kill(None)


def test_a_command_that_fails_is_an_error(
    monkeypatch: pytest.MonkeyPatch, program: Program
) -> None:
    """The error holds the output of a failed command, and names a missing one."""
    _connect(monkeypatch, "yarn")
    program("yarn", "doesn't exist in RM", code=255)
    with pytest.raises(StopError, match=r"yarn application -kill application_1_2 failed: .* RM"):
        SparkKillHook("spark_here").kill(DRIVER)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(StopError, match="No such file or directory: 'yarn'"):
        SparkKillHook("spark_here").kill(DRIVER)


HIDDEN = "hunter2"


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("exec sleep 60", r"failed: no end after 0\.2 s; see whether"),
        ('echo "can not use $@" >&2; exit 1', r"failed: exit code 1: can not use .*\*{6}"),
        (None, r"failed: .* 'spark-submit'"),
    ],
)
def test_secrets_of_a_command_that_fails_do_not_show(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, script: str | None, said: str
) -> None:
    """No secret is in the error, nor in its causes, which Airflow logs too."""
    monkeypatch.setattr(spark_submit, "kube_client", SimpleNamespace(), raising=False)
    monkeypatch.setattr(spark_kill, "COMMAND_SECONDS", 0.2 if script == "exec sleep 60" else 60)
    _connect(monkeypatch, "k8s://https://api:6443")
    hook = SparkKillHook("spark_here")
    command = ["spark-submit", "--conf", f"spark.ssl.keyPassword={HIDDEN}"]
    monkeypatch.setattr(hook, "_build_spark_driver_kill_command", lambda: command)
    if script is not None:
        (tmp_path / "spark-submit").write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "spark-submit").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path) if script is None else f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(StopError, match=said) as caught:
        hook.kill(DRIVER)
    assert HIDDEN not in "".join(traceback.format_exception(caught.value))


def test_kubernetes_without_its_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """A library that Airflow's hook lacks is an error of the connection."""
    _connect(monkeypatch, "k8s://https://api:6443")
    monkeypatch.setattr(spark_submit, "kube_client", None, raising=False)
    with pytest.raises(ConfigurationError, match="connection spark_here: k8s://"):
        SparkKillHook("spark_here")


def test_a_connection_that_does_not_exist() -> None:
    """Airflow's own hook would fall back to YARN and kill a foreign application."""
    with pytest.raises(ConfigurationError, match="connection spark_nowhere does not exist"):
        SparkKillHook("spark_nowhere")
