"""Logins to real brokers, each way, in librdkafka's words and in Java's, on each side its own."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from airflow_mm2_offsets.cli.app import app
from airflow_mm2_offsets.config import load_settings
from airflow_mm2_offsets.connect.client import ConnectClient
from airflow_mm2_offsets.errors import ConnectError
from airflow_mm2_offsets.hooks.mm2 import Mm2OffsetHook
from airflow_mm2_offsets.planning.plan import plan_failover
from stack.mirror import Broker
from tests.integration.secured import (
    WAYS,
    Properties,
    Secured,
    Way,
    check_plan,
    connections,
    grant_translation,
    scram,
    settings_file,
)

WORDS = ("librdkafka", "java")


@pytest.fixture(scope="module", autouse=True)
def granted(secured: Secured) -> None:
    """Both principals of each cluster have the rights of a translation, and no more."""
    grant_translation(
        secured, {name: each.principals for name, each in secured.stack.clusters.items()}
    )


def _logins(secured: Secured, way: Way, words: str) -> dict[Broker, Properties]:
    return secured.logins(way.librdkafka if words == "librdkafka" else way.java)


@pytest.mark.parametrize("words", WORDS)
@pytest.mark.parametrize("way", WAYS, ids=[way.name for way in WAYS])
def test_a_settings_file_logs_in(secured: Secured, way: Way, words: str, tmp_path: Path) -> None:
    """Each way, and in either words, a plan comes from both clusters and is the truth."""
    path = settings_file(secured, _logins(secured, way, words), tmp_path)
    pair = load_settings(path, {}).pair(20)
    check_plan(plan_failover(pair, secured.positions), secured)


@pytest.mark.parametrize("words", WORDS)
@pytest.mark.parametrize("way", WAYS, ids=[way.name for way in WAYS])
def test_airflow_connections_log_in(
    secured: Secured, way: Way, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The extras of two kafka connections, as people paste them, lead to the same plan."""
    for name, connection in connections(secured, _logins(secured, way, words)).items():
        monkeypatch.setenv(name, connection)
    hook = Mm2OffsetHook(timeout=20)
    assert len(hook.get_index())
    check_plan(plan_failover(hook.get_conn(), secured.positions), secured)


def test_each_side_may_log_in_another_way(secured: Secured) -> None:
    """The source by SCRAM and the target by certificate, as MirrorMaker 2 itself does here."""
    by_password, _, by_certificate, _ = WAYS
    logins = {
        "source": _logins(secured, by_password, "librdkafka")["source"],
        "target": _logins(secured, by_certificate, "librdkafka")["target"],
    }
    check_plan(plan_failover(secured.pair_by(logins), secured.positions), secured)  # type: ignore[arg-type]


def test_the_command_line_translates(
    secured: Secured, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """``translate`` prints the truth, from a file in Java's words."""
    path = settings_file(secured, _logins(secured, WAYS[0], "java"), tmp_path)
    topic, positions = next(iter(secured.positions.items()))
    line = [f"{topic}:{number}:{position}" for number, position in positions.items()]
    app(["translate", *line, "--config", str(path), "--json"], standalone_mode=False)
    answered = json.loads(capsys.readouterr().out)
    plan = plan_failover(secured.pair(scram), secured.positions)
    check_plan(plan, secured)
    assert answered["partitions"] == plan.to_json()["partitions"]


def test_a_wrong_password_for_connect_is_one_clear_error(secured: Secured) -> None:
    """Connect's own refusal: the error names the worker and the user, and never the password."""
    user, password = secured.stack.connect_login or ("", "")
    right = ConnectClient(url=secured.stack.connect_url, username=user, password=password)
    assert right.check()
    pair = replace(secured.pair(scram), connect=replace(right, password="wrong-secret"))  # noqa: S106 - to see that it is never shown
    with pytest.raises(ConnectError) as caught:
        plan_failover(pair, secured.positions)
    message = str(caught.value)
    assert f"Connect at {secured.stack.connect_url}, " in message
    assert f": HTTP 401, asked as user {user}: " in message
    assert "check the username and the password for Connect" in message
    assert not {"wrong-secret", password} & {*message.split()}
    assert "wrong-secret" not in f"{message} {caught.value!r}"
    assert not caught.value.retryable
