"""Logins to real brokers, each way, in librdkafka's words and in Java's, on each side its own."""

import json
from pathlib import Path

import pytest

from airflow_mm2_offsets.cli.app import app
from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.config import load_settings
from airflow_mm2_offsets.core import FailoverPlan, Status
from airflow_mm2_offsets.hooks.mm2 import Mm2OffsetHook
from airflow_mm2_offsets.kafka.client_properties import format_properties
from airflow_mm2_offsets.planning.acls import acls_of
from airflow_mm2_offsets.planning.plan import plan_failover
from stack.acls import grant, revoke_all
from stack.mirror import Broker
from tests.integration.mirrored_topics import holds, is_true
from tests.integration.secured import WAYS, Properties, Secured, Way, scram

WORDS = ("librdkafka", "java")


@pytest.fixture(scope="module", autouse=True)
def granted(secured: Secured) -> None:
    """Both principals of each cluster have the rights of a translation, and no more."""
    for name, cluster in secured.stack.clusters.items():
        servers = getattr(secured.stack, name)
        revoke_all(servers)
        rights = acls_of(secured.open_pair, "translate", [secured.mirrored.topic])
        grant(servers, cluster.principals, [each.acl for each in rights if each.side == name])


def _logins(secured: Secured, way: Way, words: str) -> dict[Broker, Properties]:
    return secured.logins(way.librdkafka if words == "librdkafka" else way.java)


def _check(plan: FailoverPlan, secured: Secured) -> None:
    """Compare with the truth, which comes from all records of both clusters."""
    answers = [each.translation for each in plan.partitions]
    assert all(holds(each, secured.mirrored) for each in answers)
    exact = [each for each in answers if each.status is Status.EXACT]
    assert exact
    assert all(is_true(each, secured.mirrored) for each in exact)
    assert any(each.target != each.position for each in answers)


def _names(pair: ClusterPair) -> dict[str, str]:
    naming = pair.naming
    return {
        "source.alias": naming.source_alias,
        "target.alias": naming.target_alias,
        "replication.policy": naming.policy.value,
        "offset-syncs.topic.location": pair.syncs_location.value,
    }


def _settings_file(secured: Secured, logins: dict[Broker, Properties], folder: Path) -> Path:
    settings = _names(secured.open_pair)
    for name, login in logins.items():
        settings |= {f"{name}.{key}": value for key, value in login.items()}
    path = folder / "mm2-offsets.properties"
    path.write_text(format_properties(settings))
    return path


@pytest.mark.parametrize("words", WORDS)
@pytest.mark.parametrize("way", WAYS, ids=[way.name for way in WAYS])
def test_a_settings_file_logs_in(secured: Secured, way: Way, words: str, tmp_path: Path) -> None:
    """Each way, and in either words, a plan comes from both clusters and is the truth."""
    path = _settings_file(secured, _logins(secured, way, words), tmp_path)
    pair = load_settings(path, {}).pair(20)
    _check(plan_failover(pair, secured.positions), secured)


@pytest.mark.parametrize("words", WORDS)
@pytest.mark.parametrize("way", WAYS, ids=[way.name for way in WAYS])
def test_airflow_connections_log_in(
    secured: Secured, way: Way, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The extras of two kafka connections, as people paste them, lead to the same plan."""
    for name, login in _logins(secured, way, words).items():
        connection = {"conn_type": "kafka", "extra": login}
        monkeypatch.setenv(f"AIRFLOW_CONN_KAFKA_{name.upper()}", json.dumps(connection))
    extra = {
        key.replace(".", "_").replace("-", "_"): value
        for key, value in _names(secured.open_pair).items()
    }
    monkeypatch.setenv("AIRFLOW_CONN_MM2_DEFAULT", json.dumps({"conn_type": "mm2", "extra": extra}))
    hook = Mm2OffsetHook(timeout=20)
    assert len(hook.get_index())
    _check(plan_failover(hook.get_conn(), secured.positions), secured)


def test_each_side_may_log_in_another_way(secured: Secured) -> None:
    """The source by SCRAM and the target by certificate, as MirrorMaker 2 itself does here."""
    by_password, _, by_certificate, _ = WAYS
    logins = {
        "source": _logins(secured, by_password, "librdkafka")["source"],
        "target": _logins(secured, by_certificate, "librdkafka")["target"],
    }
    _check(plan_failover(secured.pair_by(logins), secured.positions), secured)  # type: ignore[arg-type]


def test_the_command_line_translates(
    secured: Secured, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """``translate`` prints the truth, from a file in Java's words."""
    path = _settings_file(secured, _logins(secured, WAYS[0], "java"), tmp_path)
    topic, positions = next(iter(secured.positions.items()))
    line = [f"{topic}:{number}:{position}" for number, position in positions.items()]
    app(["translate", *line, "--config", str(path), "--json"], standalone_mode=False)
    answered = json.loads(capsys.readouterr().out)
    plan = plan_failover(secured.pair(scram), secured.positions)
    _check(plan, secured)
    assert answered["partitions"] == plan.to_json()["partitions"]
