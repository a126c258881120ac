"""What is said of librdkafka's reports; each report here was recorded from librdkafka 2.16."""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest
from confluent_kafka import KafkaError

from airflow_mm2_offsets.core.acls import Acl, Operation, Resource
from airflow_mm2_offsets.kafka import ticket_probe
from airflow_mm2_offsets.kafka.acls import describe_missing, missing_acl
from airflow_mm2_offsets.kafka.explain import explain
from tests.support.mock_broker import free_address, silent_broker

SASL = {
    "bootstrap.servers": "east-1:9092",
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "SCRAM-SHA-512",
    "sasl.username": "airflow",
    "sasl.password": "hunter2",
}
OAUTH = {**SASL, "sasl.mechanism": "OAUTHBEARER", "sasl.oauthbearer.method": "oidc"}
TOKEN = "Failed to acquire SASL OAUTHBEARER token: "  # noqa: S105 - a report's beginning
KEY_FAILED = "Failed to create admin client: ssl.key.pem failed: "
KERBEROS = {**SASL, "sasl.mechanism": "GSSAPI"}
KEYTAB = {
    "sasl.kerberos.keytab": "/etc/me.keytab",
    "sasl.kerberos.principal": "me@EXAMPLE.COM",
}
GSSAPI = (
    "sasl_ssl://east-1:9092/bootstrap: Failed to initialize SASL authentication: SASL handshake "
    "failed (start (-1)): SASL(-1): generic failure: GSSAPI Error: "
)
NO_TICKET = (
    f"{GSSAPI}No credentials were supplied, or the credentials were unavailable or inaccessible "
    f"(No Kerberos credentials available (default cache: FILE:/tmp/krb5cc_0)) (after 0ms)"
)
NO_GSSAPI = "No provider for SASL mechanism GSSAPI: recompile librdkafka with libsasl2"

LOGIN_ERROR = "sasl_ssl://east-1:9092/bootstrap: SASL authentication error: "
MECHANISM_ERROR = (
    "sasl_ssl://east-1:9092/bootstrap: SASL SCRAM-SHA-512 mechanism handshake failed: "
)
OFFERED = "broker's supported mechanisms: "

REPORTS: list[tuple[str, Mapping[str, str], str, str]] = [
    (
        (
            "sasl_ssl://east-1:9092/bootstrap: SASL SCRAM-SHA-512 mechanism handshake failed: "
            "Broker: Unsupported SASL mechanism: broker's supported mechanisms: PLAIN,OAUTHBEARER"
        ),
        SASL,
        "sasl.mechanism",
        "it offers PLAIN,OAUTHBEARER",
    ),
    (
        (
            "sasl_ssl://east-1:9092/bootstrap: SASL authentication error: Authentication failed "
            "during authentication due to invalid credentials with SASL mechanism SCRAM-SHA-512"
        ),
        SASL,
        "sasl.username",
        "does not accept user or password by SCRAM-SHA-512",
    ),
    (NO_GSSAPI, KERBEROS, "sasl.mechanism", "by Kerberos"),
    (NO_TICKET, KERBEROS, "sasl.kerberos.keytab", "no valid Kerberos ticket"),
    (
        (
            f"{GSSAPI}Unspecified GSS failure.  Minor code may provide more information (Server "
            f"kafka-east/east-1@EXAMPLE.COM not found in Kerberos database) (after 67ms)"
        ),
        KERBEROS,
        "sasl.kerberos.service.name",
        "knows no service kafka-east/east-1@EXAMPLE.COM",
    ),
    (
        (
            "Failed to create admin client: Invalid sasl.kerberos.kinit.cmd value: Property not "
            'available: "sasl.kerberos.keytab"'
        ),
        KERBEROS,
        "sasl.kerberos.keytab",
        "sasl.kerberos.keytab is missing",
    ),
    (
        (
            "sasl_ssl://east-1:9092/bootstrap: SASL authentication error: Authentication failed "
            "during authentication due to invalid credentials with SASL mechanism GSSAPI"
        ),
        KERBEROS,
        "sasl.kerberos.service.name",
        "does not accept the Kerberos ticket",
    ),
    (NO_GSSAPI, {}, "sasl.mechanism", "sasl.mechanism is missing"),
    (
        "sasl.username and sasl.password must be set",
        {"sasl.username": "airflow"},
        "sasl.password",
        "sasl.password missing",
    ),
    (
        f"{TOKEN}Failed to connect to 127.0.0.1:1 after 0 ms: Could not connect to server",
        OAUTH,
        "sasl.oauthbearer.token.endpoint.url",
        "gives no token",
    ),
    (
        f"{TOKEN}error adding trust anchors from file: /etc/pki/tls/certs/ca-bundle.crt",
        OAUTH,
        "https.ca.location",
        "certificate can't be verified",
    ),
    ("", {**OAUTH, "sasl.oauthbearer.method": "default"}, "sasl.oauthbearer.method", "nothing"),
    (
        f"{KEY_FAILED}not in PEM format?: error:04800068:PEM routines::bad password read",
        {},
        "ssl.key.password",
        "is missing",
    ),
    (
        (
            f"{KEY_FAILED}not in PEM format?: error:11800074:PKCS12 routines::pkcs12 cipherfinal "
            "error: maybe wrong password"
        ),
        {"ssl.key.password": "hunter2"},
        "ssl.key.password",
        "is wrong",
    ),
    (
        f"{KEY_FAILED}error:05800074:x509 certificate routines::key values mismatch",
        {"ssl.key.pem": "..."},
        "ssl.key.pem",
        "does not belong to",
    ),
    (
        "Private key check failed: error:0A0000B1:SSL routines::no certificate assigned",
        {},
        "ssl.certificate.location",
        "no certificate for it",
    ),
    (
        (
            "ssl://east-1:9092/bootstrap: Receive failed: error:0A00045C:SSL routines::tlsv13 "
            "alert certificate required: SSL alert number 116"
        ),
        SASL,
        "ssl.certificate.location",
        "none is set",
    ),
    (
        (
            "ssl://east-1:9092/bootstrap: Receive failed: error:0A000418:SSL routines::tlsv1 alert "
            "unknown ca: SSL alert number 48"
        ),
        {**SASL, "ssl.certificate.pem": "...", "ssl.key.pem": "..."},
        "ssl.certificate.location",
        "does not accept the client's certificate",
    ),
    (
        (
            "no-such-host:9092/bootstrap: Failed to resolve 'no-such-host:9092': Name or service "
            "not known (after 0ms in state CONNECT)"
        ),
        SASL,
        "bootstrap.servers",
        "no-such-host:9092 is not known",
    ),
    (
        "east-1:9092/bootstrap: Disconnected: connection closed by peer",
        {"bootstrap.servers": f"{free_address()}"},
        "security.protocol",
        "may demand a login",
    ),
    (
        (
            "ssl://east-1:9092/bootstrap: Send failed: error:80000020:system library::Broken pipe: "
            "tls_retry_write_records failure (after 0ms in state UP)"
        ),
        {"bootstrap.servers": f"{free_address()}", "security.protocol": "SSL"},
        "security.protocol",
        "may demand a login",
    ),
]


@pytest.fixture
def kinit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The program that is run as ``kinit``; the test writes it."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "kinit"
    program.touch(mode=0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return program


@pytest.mark.parametrize(("report", "config", "setting", "cause"), REPORTS)
def test_a_report_leads_to_a_property(
    report: str, config: Mapping[str, str], setting: str, cause: str
) -> None:
    """The property to correct, the cause and a next step are named, without a secret."""
    advice = explain(report, {"bootstrap.servers": free_address(), **config})
    assert advice.settings[0] == setting
    assert cause in advice.cause
    assert advice.step
    assert "hunter2" not in f"{advice.cause}{advice.step}"


def test_an_address_that_a_broker_advertises_is_not_blamed_on_the_settings() -> None:
    """A numbered broker has told its address itself; the bootstrap servers answered."""
    report = "127.0.0.2:9/3: Connect to ipv4#127.0.0.2:9 failed: Connection refused"
    advice = explain(report, SASL)
    assert advice.settings == ()
    assert "broker 3 advertises 127.0.0.2:9" in advice.cause
    assert "advertised.listeners" in advice.step


@pytest.mark.parametrize(
    ("report", "config", "blamed"),
    [
        (f"{LOGIN_ERROR}Authentication failed: Invalid username or password", SASL, True),
        (f"{LOGIN_ERROR}Authentication failed", OAUTH, False),
        (f"{MECHANISM_ERROR}Broker: Unsupported SASL mechanism: {OFFERED}PLAIN", SASL, True),
        (f"{MECHANISM_ERROR}Local: Broker transport failure: {OFFERED}(n/a)", SASL, False),
        (NO_TICKET, KERBEROS, False),
        ("sasl_ssl://east-1:9092/bootstrap: Failed to resolve 'east-1:9092'", SASL, False),
        ("sasl_ssl://east-1:9092/bootstrap: Disconnected", SASL, False),
        ("", SASL, False),
    ],
)
def test_only_a_brokers_own_answer_blames_the_settings(
    report: str, config: Mapping[str, str], *, blamed: bool
) -> None:
    """A token, a ticket, a name and a connection may be there at the next try."""
    config = {**config, "bootstrap.servers": free_address()}
    assert explain(report, config).blames_settings is blamed


def test_an_unknown_report_has_a_next_step() -> None:
    """A report that no rule knows leaves the general advice."""
    advice = explain("something new", SASL)
    assert advice.cause == ""
    assert "check" in advice.step


def test_a_server_that_says_nothing_is_told_from_a_closed_port() -> None:
    """Only where somebody takes the connection, silence is the cause."""
    with silent_broker() as servers:
        assert "answers nothing" in explain("", {"bootstrap.servers": servers}).cause
    assert explain("", {"bootstrap.servers": free_address()}).cause == ""


@pytest.mark.parametrize("content", [None, "junk"], ids=["missing", "junk"])
def test_a_file_is_named_with_what_is_wrong(tmp_path: Path, content: str | None) -> None:
    """OpenSSL's own words ("BIO lib") do not tell a missing file from a damaged one."""
    path = tmp_path / "ca.pem"
    if content:
        path.write_text(content)
    report = "ssl.ca.location failed: error:05880020:x509 certificate routines::BIO lib"
    advice = explain(report, {"ssl.ca.location": str(path)})
    assert str(path) in advice.cause
    assert ("no usable PEM" if content else "does not exist") in advice.cause
    assert advice.settings == ("ssl.ca.location",)


@pytest.mark.parametrize(
    ("words", "settings", "step"),
    [
        (
            "Pre-authentication failed: Key table file '/etc/me.keytab' not found",
            ("sasl.kerberos.keytab",),
            "the file lies where this process runs",
        ),
        (
            "Keytab contains no suitable keys for me@EXAMPLE.COM",
            ("sasl.kerberos.keytab", "sasl.kerberos.principal"),
            "klist -k /etc/me.keytab",
        ),
        (
            "Client 'me@EXAMPLE.COM' not found in Kerberos database",
            ("sasl.kerberos.principal",),
            "correct sasl.kerberos.principal",
        ),
        ("Preauthentication failed", ("sasl.kerberos.keytab",), "get a new keytab"),
        ("Clock skew too great", (), "correct the clock"),
        ("Cannot contact any KDC for realm 'EXAMPLE.COM'", (), "check that the KDC runs"),
        (
            "something new",
            ("sasl.kerberos.keytab", "sasl.kerberos.principal"),
            "kinit -V -k -t /etc/me.keytab me@EXAMPLE.COM",
        ),
    ],
)
@pytest.mark.parametrize("report", [NO_TICKET, "", "Failed to get metadata: timed out"])
def test_kinit_says_why_there_is_no_ticket(
    kinit: Path, report: str, words: str, settings: tuple[str, ...], step: str
) -> None:
    """A report of librdkafka has no word of ``kinit``; one that waits for it leaves no report."""
    kinit.write_text(f'#!/bin/sh\necho "kinit: {words} while getting credentials" >&2\nexit 1\n')
    advice = explain(report, {**KERBEROS, **KEYTAB})
    assert advice.settings == settings
    assert f"for me@EXAMPLE.COM: kinit: {words}" in advice.cause
    assert step in advice.step


def test_kinit_gets_a_cache_of_its_own(kinit: Path, tmp_path: Path) -> None:
    """The tickets of the process stay as they are; a principal is never taken for an option."""
    kinit.write_text(f'#!/bin/sh\necho "$@" >{tmp_path}/arguments\n')
    explain(NO_TICKET, {**KERBEROS, **KEYTAB, "sasl.kerberos.principal": "-V"})
    arguments = (tmp_path / "arguments").read_text()
    assert re.fullmatch(r"-c FILE:\S+/ticket -k -t /etc/me.keytab -- -V\n", arguments)


def test_a_kdc_that_says_nothing_is_named(kinit: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A ``kinit`` that waits is ended, and the KDC is to be looked at."""
    monkeypatch.setattr(ticket_probe, "_SECONDS", 0.1)
    kinit.write_text("#!/bin/sh\nexec sleep 60\n")
    advice = explain("", {**KERBEROS, **KEYTAB})
    assert "kinit got no answer in 0.1 s" in advice.cause
    assert "check that the KDC runs" in advice.step


def test_a_missing_kinit_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The package that has it is named, too."""
    monkeypatch.setenv("PATH", str(tmp_path))
    advice = explain(NO_TICKET, {**KERBEROS, **KEYTAB})
    assert "kinit is not installed here" in advice.cause
    assert "apt-get install krb5-user" in advice.step


def test_a_missing_module_of_libsasl2_is_named() -> None:
    """Debian has it in a package that librdkafka's does not depend on."""
    report = (
        "sasl_ssl://east-1:9092/bootstrap: Failed to initialize SASL authentication: SASL "
        "handshake failed (start (-4)): SASL(-4): no mechanism available: No worthy mechs found"
    )
    assert "libsasl2-modules-gssapi-mit" in explain(report, KERBEROS).step


@pytest.mark.parametrize("config", [{}, {"security.protocol": "SSL"}, SASL])
@pytest.mark.parametrize("report", ["", "Failed to get metadata: timed out"])
def test_only_a_login_by_kerberos_asks_kinit(
    kinit: Path, report: str, config: Mapping[str, str]
) -> None:
    """Other logins, and none, are never blamed on a ticket."""
    kinit.write_text("#!/bin/sh\nexit 1\n")
    config = {**config, **KEYTAB}
    assert "ticket" not in explain(report, {**config, "bootstrap.servers": free_address()}).cause


def test_a_missing_right_comes_with_the_command_that_grants_it() -> None:
    """The command is one that ``kafka-acls`` takes, for the principal of the login."""
    acl = missing_acl(KafkaError.TOPIC_AUTHORIZATION_FAILED, Operation.READ, "orders")
    assert acl == Acl(resource=Resource.TOPIC, name="orders", operation=Operation.READ)
    assert describe_missing(acl, SASL) == (
        "User:airflow lacks Read on topic orders; an administrator grants it: kafka-acls "
        "--bootstrap-server east-1:9092 --command-config admin.properties --add --allow-principal "
        "User:airflow --operation Read --topic orders (airflow-mm2-offsets acls prints all that a "
        "task needs)"
    )
    assert describe_missing(acl, OAUTH).startswith("the principal of this connection lacks Read")
    assert missing_acl(KafkaError.OFFSET_OUT_OF_RANGE, Operation.READ, "orders") is None


@pytest.mark.parametrize(
    ("acl", "end"),
    [
        (
            Acl(resource=Resource.TOPIC, name="a b-", operation=Operation.DESCRIBE, is_prefix=True),
            "--operation Describe --topic 'a b-' --resource-pattern-type prefixed",
        ),
        (
            Acl(resource=Resource.GROUP, name="*", operation=Operation.DESCRIBE),
            "--operation Describe --group '*'",
        ),
        (
            Acl(resource=Resource.CLUSTER, name="kafka-cluster", operation=Operation.DESCRIBE),
            "--operation Describe --cluster",
        ),
    ],
)
def test_commands_are_quoted_for_a_shell(acl: Acl, end: str) -> None:
    """A name with a blank or a star reaches ``kafka-acls`` as it is."""
    assert acl.command("User:a", "east:9092").endswith(f"--allow-principal User:a {end}")
