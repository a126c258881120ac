"""Logins by Kerberos to real brokers, with tickets of a real KDC: ``nox -s kerberos``.

That session builds a confluent-kafka that can log in so. Its wheels can't: where they are, only
the error that says it is tested.
"""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from airflow_mm2_offsets.config import load_settings
from airflow_mm2_offsets.errors import ConfigurationError
from airflow_mm2_offsets.hooks.mm2 import Mm2OffsetHook
from airflow_mm2_offsets.kafka.client_properties import kerberos
from airflow_mm2_offsets.planning.plan import plan_failover
from stack import jars, kdc
from stack.kerberos import KerberosStack
from tests.integration.conftest import BUILD, TOPICS
from tests.integration.explained import WrongSetup, assert_explained
from tests.integration.kerberized import PRINCIPALS, USER, Kerberized, KerberosGround
from tests.integration.secured import (
    Way,
    check_plan,
    connections,
    grant_translation,
    run_secured,
    settings_file,
)
from tests.integration.wrong_kerberos import WRONG_CLOCK, WRONG_KERBEROS

WORDS = ("librdkafka", "java")


@pytest.fixture(scope="module")
def kerberized(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kerberized]:
    """Brokers that take tickets, with a mirrored topic that the user may translate."""
    if not kerberos.has_gssapi():
        pytest.skip("this build of confluent-kafka can't log in by Kerberos: nox -s kerberos")
    if obstacle := kdc.obstacle():
        pytest.skip(obstacle)
    folder = tmp_path_factory.mktemp("kerberos")
    kafka = jars.fetch(BUILD, progress=print).kafka
    with kdc.Kdc(folder / "kdc", progress=print) as realm:
        login = jars.fetch_connect_login(BUILD, progress=print)
        stack = KerberosStack(folder, kafka, login, realm, progress=print)
        with run_secured(stack, TOPICS) as secured:
            grant_translation(secured, dict.fromkeys(secured.stack.clusters, PRINCIPALS))
            yield Kerberized(stack=stack, secured=secured, keytab=realm.keytab(USER))


@pytest.fixture(autouse=True)
def no_ticket(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Each test begins without a ticket, and finds the realm if it needs brokers."""
    monkeypatch.setenv("KRB5CCNAME", f"FILE:{tmp_path / 'tickets'}")
    if "kerberized" in request.fixturenames:
        running: Kerberized = request.getfixturevalue("kerberized")
        for name, value in running.stack.kdc.env.items():
            monkeypatch.setenv(name, value)


def _way(kerberized: Kerberized) -> Way:
    return Way("Kerberos", kerberized.librdkafka, kerberized.java)


@pytest.mark.parametrize("words", WORDS)
def test_a_settings_file_logs_in(kerberized: Kerberized, words: str, tmp_path: Path) -> None:
    """By a keytab, and in either words, a plan comes from both clusters and is the truth."""
    secured = kerberized.secured
    path = settings_file(secured, secured.logins(getattr(_way(kerberized), words)), tmp_path)
    check_plan(plan_failover(load_settings(path, {}).pair(20), secured.positions), secured)


@pytest.mark.parametrize("words", WORDS)
def test_airflow_connections_log_in(
    kerberized: Kerberized, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The extras of two kafka connections, as people paste them, lead to the same plan."""
    secured = kerberized.secured
    logins = secured.logins(getattr(_way(kerberized), words))
    for name, connection in connections(secured, logins).items():
        monkeypatch.setenv(name, connection)
    check_plan(plan_failover(Mm2OffsetHook(timeout=20).get_conn(), secured.positions), secured)


def test_the_ticket_of_another_program_is_used(kerberized: Kerberized, tmp_path: Path) -> None:
    """``useTicketCache``: the ticket that ``kinit`` left in KRB5CCNAME is enough."""
    secured = kerberized.secured
    kinit = ["kinit", "-k", "-t", str(kerberized.keytab), kerberized.principal]
    subprocess.run(kinit, check=True)
    path = settings_file(secured, secured.logins(kerberized.by_cache), tmp_path)
    check_plan(plan_failover(load_settings(path, {}).pair(20), secured.positions), secured)


@pytest.mark.parametrize("wrong", WRONG_KERBEROS, ids=[each.name for each in WRONG_KERBEROS])
def test_a_wrong_login_is_explained(
    kerberized: Kerberized, wrong: WrongSetup[KerberosGround]
) -> None:
    """Cause, property and next step are named; no key is, not even in a traceback."""
    if wrong.name == WRONG_CLOCK and shutil.which("faketime") is None:
        pytest.skip("the KDC's clock is set by faketime: apt-get install faketime")
    key = kerberized.keytab.read_bytes()[-16:]
    with ExitStack() as undo:
        ground = KerberosGround(kerberized=kerberized, undo=undo)
        topic = kerberized.secured.mirrored.topic
        secrets = [key.hex(), kerberized.stack.clusters["source"].password]
        assert_explained(wrong, ground, topic, secrets)


@pytest.mark.skipif(kerberos.has_gssapi(), reason="this build can log in by Kerberos")
@pytest.mark.parametrize(
    "login", ["sasl.mechanism=GSSAPI", f"sasl.jaas.config={kerberos.MODULE} required;"]
)
def test_a_build_that_can_not_log_in_is_refused_at_once(login: str, tmp_path: Path) -> None:
    """Before any client is made, the error names the property and how to build one that can."""
    lines = ["source.bootstrap.servers=127.0.0.1:1", "target.bootstrap.servers=127.0.0.1:1"]
    lines += [f"source.{each}" for each in ("security.protocol=SASL_SSL", login)]
    path = tmp_path / "mm2-offsets.properties"
    path.write_text("\n".join(lines))
    with pytest.raises(ConfigurationError) as caught:
        load_settings(path, {}).pair(20)
    assert "sasl.mechanism" in str(caught.value)
    assert kerberos.build_line() in str(caught.value)
