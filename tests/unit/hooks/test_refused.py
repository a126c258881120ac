"""The hook refuses every wrong connection, each in one way."""

import re
from importlib.metadata import version

import pytest
from packaging.version import Version

from airflow_mm2_offsets.errors import ConfigurationError
from airflow_mm2_offsets.hooks.mm2 import Mm2OffsetHook
from tests.unit.hooks.properties import KAFKA, SECRET
from tests.unit.operators.clusters import define


def _refusal(hook: Mm2OffsetHook | None = None) -> str:
    with pytest.raises(ConfigurationError) as caught:
        (hook or Mm2OffsetHook()).get_conn()
    cause: BaseException | None = caught.value
    while cause is not None:
        assert SECRET not in f"{cause} {cause!r}"
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)
    return str(caught.value)


@pytest.mark.parametrize(
    ("field", "value", "step"),
    [
        ("replication_policy", "Identity", "give one of identity, default"),
        ("replication_policy", ["identity"], "give a text"),
        ("offset_syncs_topic_location", "both", "give one of source, target"),
        ("source_alias", 1, "give a text"),
        ("target_alias", ["a"], "give a text"),
        ("replication_policy_separator", 5, "give a text"),
        ("source_kafka_conn_id", 5, "give a text"),
        ("connect_url", 8083, "give a text"),
    ],
)
def test_a_wrong_value_is_named(
    names: pytest.MonkeyPatch, field: str, value: object, step: str
) -> None:
    """The one error names the connection, the field, the value and what to give."""
    define(names, "mm2_default", extra={field: value})
    shown = "a list" if isinstance(value, list) else repr(value)
    # As the setting of a reader's error, the field ends with a colon.
    assert _refusal().replace(": is ", " is ") == (
        f"connection mm2_default: {field} is {shown}; {step}"
    )


def test_settings_in_place_of_a_name_are_not_shown(names: pytest.MonkeyPatch) -> None:
    """A whole Kafka configuration in the place of a connection id may hold a password."""
    settings = {"bootstrap.servers": "k:9092", "sasl.password": SECRET}
    define(names, "mm2_default", extra={"source_kafka_conn_id": settings})
    assert _refusal() == "connection mm2_default: source_kafka_conn_id is a dict; give a text"


@pytest.mark.parametrize(
    "url", ["connect:8083", "ftp://connect", f"http://airflow:{SECRET}@connect:8083", "http://a:b"]
)
def test_a_wrong_connect_url_is_named(names: pytest.MonkeyPatch, url: str) -> None:
    """The error names connection and field; a login in the URL is not shown."""
    define(names, "mm2_default", extra={"connect_url": url})
    assert _refusal().startswith("connection mm2_default: connect_url: the Connect URL ")


@pytest.mark.parametrize("side", ["source", "target"])
@pytest.mark.parametrize("has_id", [True, False])
def test_a_missing_kafka_connection_is_named(
    names: pytest.MonkeyPatch, side: str, *, has_id: bool
) -> None:
    """The error names the field, whether it holds the id or the default applies."""
    conn_id = "elsewhere" if has_id else f"kafka_{side}"
    names.delenv(f"AIRFLOW_CONN_KAFKA_{side.upper()}")
    define(names, "mm2_default", extra={f"{side}_kafka_conn_id": conn_id} if has_id else {})
    assert _refusal() == (
        f"connection {conn_id}, {side}_kafka_conn_id of mm2_default, does not exist; create it "
        "under Admin, Connections, or name another one"
    )


def test_a_missing_mm2_connection_is_named() -> None:
    """The error says which connection is missing and what to do."""
    refusal = _refusal(Mm2OffsetHook("nowhere"))
    assert refusal.startswith("connection nowhere does not exist; create it")


def test_a_connection_of_another_type_is_named(names: pytest.MonkeyPatch) -> None:
    """An id of the wrong kind of connection is refused by its type, its password unseen."""
    define(names, "mm2_default", conn_type="http", password=SECRET)
    assert _refusal() == "connection mm2_default is of type 'http'; give one of type 'mm2'"
    define(names, "mm2_default")
    define(names, "kafka_target", conn_type="http", password=SECRET)
    assert _refusal() == (
        "connection kafka_target, target_kafka_conn_id of mm2_default, is of type 'http'; give "
        "one of type 'kafka'"
    )


@pytest.mark.parametrize("conn_id", ["mm2_default", "kafka_source"])
@pytest.mark.parametrize("extra", [f'{{"sasl.password": "{SECRET}', f'["{SECRET}"]', f'"{SECRET}"'])
def test_an_extra_that_is_no_object_is_refused(
    names: pytest.MonkeyPatch, conn_id: str, extra: str
) -> None:
    """Broken JSON never counts as an empty form, and its text is not shown."""
    define(names, conn_id, conn_type="mm2" if conn_id == "mm2_default" else "kafka", extra=extra)
    # Airflow 3.1 does not even find such a connection.
    assert re.match(
        f"connection {conn_id}(: its extra is not a JSON object|.* does not exist); c", _refusal()
    )


@pytest.mark.parametrize("servers", [None, "", ["a:9092"], 9092])
def test_servers_that_are_missing_or_no_text_are_named(
    names: pytest.MonkeyPatch, servers: object
) -> None:
    """The error names the cluster, its connection and the property."""
    extra = {**KAFKA, "bootstrap.servers": servers}
    if servers is None:
        del extra["bootstrap.servers"]
    define(names, "kafka_source", conn_type="kafka", extra=extra)
    assert _refusal().startswith("source cluster (kafka_source): bootstrap.servers is ")


@pytest.mark.parametrize("value", [{"a": SECRET}, [SECRET], None])
def test_a_property_that_is_no_scalar_is_named(names: pytest.MonkeyPatch, value: object) -> None:
    """The error names the property and keeps its value to itself."""
    define(names, "kafka_source", conn_type="kafka", extra={**KAFKA, "sasl.password": value})
    assert _refusal().startswith("source cluster (kafka_source): sasl.password is a ")


@pytest.mark.skipif(
    Version(version("apache-airflow-providers-apache-kafka")) < Version("2.0"),
    reason="before 2.0 the Kafka provider takes any callback",
)
def test_a_callback_that_is_not_allowed_is_refused(names: pytest.MonkeyPatch) -> None:
    """Airflow's refusal of a callback names the connection and where it was expected."""
    define(names, "kafka_source", conn_type="kafka", extra={**KAFKA, "oauth_cb": "os.system"})
    refusal = _refusal()
    assert refusal.startswith(
        "connection kafka_source, source_kafka_conn_id of mm2_default, gives no configuration: "
        "Refusing to resolve Kafka callback oauth_cb='os.system'"
    )


def test_fields_that_nothing_reads_are_named_all_at_once(names: pytest.MonkeyPatch) -> None:
    """A misspelt field would leave its setting at the default; its value is not shown."""
    extra = {"replication_polcy": SECRET, "conect_url": SECRET, "x": 1, "target_alias": "b"}
    define(names, "mm2_default", extra=extra)
    refusal = _refusal()
    assert refusal.startswith(
        "connection mm2_default: conect_url is not a field of an mm2 connection; did you mean "
        "connect_url?; replication_polcy is not a field of an mm2 connection; did you mean "
        "replication_policy?; x is not a field of an mm2 connection; the fields are connect_url, "
    )
    ok, text = Mm2OffsetHook().test_connection()
    assert (ok, text) == (False, refusal)


@pytest.mark.parametrize("value", [False, 0, [], {}])
def test_a_value_that_python_takes_for_false_is_no_empty_field(
    names: pytest.MonkeyPatch, value: object
) -> None:
    """Only null and the empty text leave a field at its default."""
    field = "replication_policy_internal_topic_separator_enabled"
    define(names, "mm2_default", extra={field: value})
    shown = f"a {type(value).__name__}" if isinstance(value, list | dict) else repr(value)
    assert _refusal() == f"connection mm2_default: {field} is {shown}; give a text"


def test_wrong_client_properties_are_named_all_at_once(names: pytest.MonkeyPatch) -> None:
    """The error names the connection's cluster and each property, with its next step."""
    extra = {**KAFKA, "securty.protocol": "SSL", "ssl.engine.factory.class": SECRET}
    define(names, "kafka_source", conn_type="kafka", extra=extra)
    refusal = _refusal()
    assert refusal.startswith("source cluster (kafka_source): 2 settings are wrong: ")
    assert "securty.protocol: " in refusal
    assert "did you mean security.protocol?" in refusal
    assert "ssl.engine.factory.class: " in refusal


def test_all_that_is_wrong_is_named_at_once(names: pytest.MonkeyPatch) -> None:
    """Fields of the form, both Kafka connections, and Connect's URL."""
    define(
        names,
        "mm2_default",
        extra={
            "source_alais": "a",
            "replication_policy": "none",
            "offset_syncs_topic_location": "here",
            "replication_policy_internal_topic_separator_enabled": "perhaps",
            "target_alias": 7,
            "connect_url": "connect:8083",
            "target_kafka_conn_id": "nowhere",
        },
    )
    define(names, "kafka_source", conn_type="kafka", extra={"bootstrap.servers": ""})
    with pytest.raises(ConfigurationError) as refused:
        Mm2OffsetHook().get_conn()
    message = str(refused.value)
    for problem in (
        "source_alais is not a field of an mm2 connection; did you mean source_alias?",
        "replication_policy: is 'none'",
        "offset_syncs_topic_location: is 'here'",
        "replication_policy_internal_topic_separator_enabled: is 'perhaps'",
        "target_alias is 7; give a text",
        "connect_url: ",
        "connection nowhere, target_kafka_conn_id of mm2_default, does not exist",
        "bootstrap.servers is missing",
    ):
        assert problem in message
