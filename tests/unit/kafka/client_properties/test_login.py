"""Logins by password, Kerberos and Amazon's IAM, as people paste them from a Java client."""

import inspect
import sys
from importlib import import_module
from types import SimpleNamespace

import pytest

from airflow_mm2_offsets.errors import ConfigurationError
from airflow_mm2_offsets.kafka.client_properties import kerberos, to_librdkafka
from airflow_mm2_offsets.kafka.client_properties.msk_iam import MskIamToken
from tests.unit.kafka.client_properties.material import IAM, KRB5, OAUTH, PLAIN, SCRAM, SECRET

LOGIN = {"sasl.username": "u", "sasl.password": SECRET}
MSK = {
    "bootstrap.servers": "b-1.x.kafka.eu-west-1.amazonaws.com:9098",
    "security.protocol": "SASL_SSL",
}
IAM_HANDLER = "software.amazon.msk.auth.iam.IAMClientCallbackHandler"


@pytest.fixture
def gssapi(monkeypatch: pytest.MonkeyPatch) -> None:
    """A librdkafka that is built with libsasl2."""
    monkeypatch.setattr(kerberos, "has_gssapi", lambda: True)


@pytest.mark.parametrize(
    ("module", "given", "mechanism"),
    [
        (PLAIN, None, "PLAIN"),
        (PLAIN, "plain", "PLAIN"),
        (f"kafkashaded.{PLAIN}", None, "PLAIN"),
        (SCRAM, "SCRAM-SHA-256", "SCRAM-SHA-256"),
        (SCRAM, "SCRAM-SHA-512", "SCRAM-SHA-512"),
    ],
)
def test_a_login_by_password(module: str, given: str | None, mechanism: str) -> None:
    """User and password come out of the JAAS text, which tells the mechanism if it is one."""
    java = {"sasl.jaas.config": f"{module} required username=u password='{SECRET}';"}
    if given:
        java["sasl.mechanism"] = given
    assert to_librdkafka("source", java) == LOGIN | {"sasl.mechanism": mechanism}


def test_the_same_login_may_be_given_twice() -> None:
    """Under both names it is one login; two different ones are refused, for one would be lost."""
    java = {"sasl.jaas.config": f"{PLAIN} required username=u password='{SECRET}';"}
    assert to_librdkafka("source", java | LOGIN) == LOGIN | {"sasl.mechanism": "PLAIN"}
    other = {"sasl.jaas.config": f"{PLAIN} required username=u password=other;"}
    with pytest.raises(ConfigurationError, match=r"and sasl\.password give different") as raised:
        to_librdkafka("source", other | LOGIN)
    assert SECRET not in str(raised.value)


@pytest.mark.parametrize(
    ("java", "setting", "message"),
    [
        ({"sasl.jaas.config": SECRET}, "sasl.jaas.config", "does not have the form"),
        (
            {"sasl.jaas.config": f"{PLAIN} required username={SECRET};"},
            "sasl.jaas.config",
            "lacks password; add it",
        ),
        (
            {"sasl.jaas.config": f"{PLAIN} required;"},
            "sasl.jaas.config",
            "lacks username and password",
        ),
        (
            {"sasl.jaas.config": f"{SCRAM} required username=u password={SECRET};"},
            "sasl.mechanism",
            "is missing; .* ScramLoginModule: give SCRAM-SHA-256 or SCRAM-SHA-512",
        ),
        (
            {
                "sasl.jaas.config": f"{PLAIN} required username=u password={SECRET};",
                "sasl.mechanism": "SCRAM-SHA-512",
            },
            "sasl.mechanism",
            "is SCRAM-SHA-512, but .* names PlainLoginModule: give PLAIN",
        ),
        (
            {
                "sasl.jaas.config": f"{SCRAM} required username=u password={SECRET} "
                "tokenauth=true;",
                "sasl.mechanism": "SCRAM-SHA-512",
            },
            "sasl.jaas.config",
            "delegation token",
        ),
        (
            {"sasl.jaas.config": f"com.acme.Login required password={SECRET};"},
            "sasl.jaas.config",
            r"com\.acme\.Login, a login module that only Java can run; give one of PlainLogin",
        ),
        (
            {"sasl.jaas.config": f"{SECRET}! required;"},
            "sasl.jaas.config",
            "no name of a Java class",
        ),
        (
            {"sasl.login.callback.handler.class": "com.acme.Handler"},
            "sasl.login.callback.handler.class",
            "com.acme.Handler, a class that only Java can run; give client credentials",
        ),
        (
            {"sasl.client.callback.handler.class": "com.acme.Handler"},
            "sasl.client.callback.handler.class",
            "only Java can run",
        ),
        (
            {
                "security.protocol": "SASL_SSL",
                "sasl.jaas.config": f"{KRB5} required keyTab='/k' principal=p;",
            },
            "sasl.mechanism",
            "is GSSAPI .* built without it, .*--no-binary confluent-kafka",
        ),
        ({"security.protocol": "SASL_PLAINTEXT"}, "sasl.mechanism", "is GSSAPI"),
        (
            {"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"},
            "sasl.mechanism",
            "nothing says where tokens come from",
        ),
    ],
)
def test_a_login_that_can_not_be_translated(
    java: dict[str, str], setting: str, message: str
) -> None:
    """One sentence names the property and what to give instead, and shows no secret."""
    with pytest.raises(ConfigurationError, match=f"^source: {setting}: .*{message}") as raised:
        to_librdkafka("source", java)
    assert raised.value.fields["setting"] == setting
    assert SECRET not in str(raised.value)
    assert raised.value.__cause__ is None
    assert raised.value.__suppress_context__


@pytest.mark.usefixtures("gssapi")
def test_kerberos_with_a_keytab() -> None:
    """Krb5LoginModule's options become librdkafka's; Java's path of kinit is no command."""
    java = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "GSSAPI",
        "sasl.kerberos.kinit.cmd": "/usr/bin/kinit",
        "sasl.jaas.config": f"{KRB5} required useKeyTab=true storeKey=true keyTab='/etc/me.keytab' "
        "principal='me@EXAMPLE.COM' serviceName=kafka-east;",
    }
    assert to_librdkafka("source", java) == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "GSSAPI",
        "sasl.kerberos.keytab": "/etc/me.keytab",
        "sasl.kerberos.principal": "me@EXAMPLE.COM",
        "sasl.kerberos.service.name": "kafka-east",
    }


@pytest.mark.usefixtures("gssapi")
def test_kerberos_with_a_ticket_cache() -> None:
    """With a ticket of somebody else's kinit, librdkafka runs none: 0 switches it off."""
    java = {
        "sasl.jaas.config": f"{KRB5} required useTicketCache=true;",
        "sasl.kerberos.service.name": "kafka",
        "security.protocol": "SASL_PLAINTEXT",
    }
    config = to_librdkafka("source", java)
    assert config["sasl.kerberos.min.time.before.relogin"] == "0"
    assert config["sasl.kerberos.service.name"] == "kafka"


@pytest.mark.usefixtures("gssapi")
@pytest.mark.parametrize(
    ("options", "message"),
    [("keyTab='/k'", "without a principal"), ("ticketCache='/tmp/c'", "variable KRB5CCNAME")],
)
def test_kerberos_that_lacks_something(options: str, message: str) -> None:
    """The next step is named."""
    with pytest.raises(ConfigurationError, match=message):
        to_librdkafka("source", {"sasl.jaas.config": f"{KRB5} required {options};"})


@pytest.mark.usefixtures("gssapi")
@pytest.mark.parametrize("principal", ["me$(id)", "me;id", "me`id`", "me id", 'me"'])
def test_a_principal_is_one_word_for_a_shell(principal: str) -> None:
    """Librdkafka runs kinit by a shell, with the principal as it is."""
    with pytest.raises(ConfigurationError, match=r"principal: holds .* shell"):
        to_librdkafka("source", {"sasl.kerberos.principal": principal})


@pytest.mark.parametrize(
    ("options", "token"),
    [
        ("", MskIamToken(region="eu-west-1")),
        ("awsProfileName=dev", MskIamToken(region="eu-west-1", profile="dev")),
        (
            "awsRoleArn='arn:aws:iam::1:role/r' awsRoleSessionName=s awsDebugCreds=true",
            MskIamToken(region="eu-west-1", role_arn="arn:aws:iam::1:role/r", session_name="s"),
        ),
    ],
)
def test_amazons_iam_is_a_callback(options: str, token: MskIamToken) -> None:
    """The mechanism becomes OAUTHBEARER, which MSK takes too, with tokens that are signed here."""
    java = MSK | {
        "sasl.mechanism": "AWS_MSK_IAM",
        "sasl.jaas.config": f"{IAM} required {options};",
        "sasl.client.callback.handler.class": IAM_HANDLER,
    }
    assert to_librdkafka("source", java) == MSK | {
        "sasl.mechanism": "OAUTHBEARER",
        "oauth_cb": token,
    }


@pytest.mark.parametrize(
    "java",
    [
        {"sasl.mechanism": "AWS_MSK_IAM"},
        {"sasl.mechanism": "OAUTHBEARER"},
        {
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.jaas.config": f"{OAUTH} required;",
            "sasl.login.callback.handler.class": (
                "software.amazon.msk.auth.iam.IAMOAuthBearerLoginCallbackHandler"
            ),
        },
    ],
)
def test_amazons_iam_in_fewer_words(java: dict[str, str]) -> None:
    """The mechanism alone is enough for brokers of MSK; the OAuth handler means the same."""
    assert to_librdkafka("source", MSK | java)["oauth_cb"] == MskIamToken(region="eu-west-1")


def test_the_region_may_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind a name of one's own, AWS_REGION says it; without, the error does."""
    java = {"bootstrap.servers": "kafka.invalid:9098", "sasl.mechanism": "AWS_MSK_IAM"}
    for variable in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(variable, raising=False)
    with pytest.raises(ConfigurationError, match=r"names no region .* AWS_REGION"):
        to_librdkafka("source", java)
    monkeypatch.setenv("AWS_REGION", "us-east-2")
    assert to_librdkafka("source", java)["oauth_cb"] == MskIamToken(region="us-east-2")


def test_iam_needs_the_signer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the library the error names the extra, and an unknown option its alternatives."""
    monkeypatch.setattr(
        "airflow_mm2_offsets.kafka.client_properties.msk_iam.find_spec", lambda _name: None
    )
    with pytest.raises(ConfigurationError, match=r"airflow-mm2-offsets\[msk\]"):
        to_librdkafka("source", MSK | {"sasl.mechanism": "AWS_MSK_IAM"})
    jaas = f"{IAM} required awsRole=x;"
    with pytest.raises(ConfigurationError, match=r"has awsRole, which .*awsRoleArn"):
        to_librdkafka("source", MSK | {"sasl.jaas.config": jaas})


def test_a_token_is_signed_when_it_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The signer gets the region and the credentials; its milliseconds become seconds."""
    asked: list[tuple[str, ...]] = []

    def sign(kind: str) -> object:
        def answer(*arguments: str) -> tuple[str, int]:
            asked.append((kind, *arguments))
            return "token", 1_700_000_000_500

        return answer

    signer = SimpleNamespace(
        generate_auth_token=sign("default"),
        generate_auth_token_from_profile=sign("profile"),
        generate_auth_token_from_role_arn=sign("role"),
    )
    monkeypatch.setitem(sys.modules, "aws_msk_iam_sasl_signer.MSKAuthTokenProvider", signer)
    assert MskIamToken(region="r")() == ("token", 1_700_000_000.5)
    MskIamToken(region="r", profile="p")("config")
    MskIamToken(region="r", role_arn="a")("config")
    MskIamToken(region="r", role_arn="a", session_name="s")("config")
    assert asked == [
        ("default", "r"),
        ("profile", "r", "p"),
        ("role", "r", "a"),
        ("role", "r", "a", "s"),
    ]


def test_the_signer_has_what_is_called() -> None:
    """Amazon's library has these three functions, with these arguments."""
    provider = import_module("aws_msk_iam_sasl_signer.MSKAuthTokenProvider")
    for name, arguments in (
        ("generate_auth_token", ["r"]),
        ("generate_auth_token_from_profile", ["r", "p"]),
        ("generate_auth_token_from_role_arn", ["r", "a", "s"]),
    ):
        inspect.signature(getattr(provider, name)).bind(*arguments)
