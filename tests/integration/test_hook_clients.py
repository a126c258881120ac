"""What the real clients get of a connection, and what they make visible of it."""

import logging

import pytest

from airflow_mm2_offsets.errors import ClusterUnreachableError
from airflow_mm2_offsets.hooks.mm2 import Mm2OffsetHook
from tests.support.mock_broker import free_address
from tests.unit.hooks.conftest import names as names  # noqa: PLC0414 - a fixture
from tests.unit.hooks.properties import KAFKA, SECRET
from tests.unit.operators.clusters import define


def test_an_allowed_callback_reaches_the_client(names: pytest.MonkeyPatch) -> None:
    """A callback named in a connection's text is resolved by Airflow and called for the token."""
    path = f"{__name__}.make_token"
    names.setenv("AIRFLOW__APACHE_KAFKA__CALLBACK_ALLOWLIST", path)
    extra = {
        "bootstrap.servers": free_address(),
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "oauth_cb": path,
    }
    define(names, "kafka_source", conn_type="kafka", extra=extra)
    source = Mm2OffsetHook(timeout=2.0).get_conn().source
    with pytest.raises(ClusterUnreachableError) as caught:
        source.describe()
    assert TOKENS == [SECRET]
    assert SECRET not in f"{caught.value} {source!r}"


TOKENS: list[str] = []


def make_token(_config: str) -> tuple[str, float]:
    TOKENS.append(SECRET)
    return SECRET, 4e9


def test_secrets_are_neither_shown_nor_logged(
    names: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """No repr and no log line, not even at debug level, holds a password or a key."""
    caplog.set_level(logging.DEBUG)
    for properties in ({"ssl.key.pem": ""}, {}):  # the key of the second is no key
        kafka = {**KAFKA, "bootstrap.servers": free_address(), **properties}
        define(names, "kafka_source", conn_type="kafka", extra=kafka)
        connect = {"connect_url": f"http://{free_address()}"}
        define(names, "mm2_default", extra=connect, login="airflow", password=SECRET)
        hook = Mm2OffsetHook(timeout=0.3)
        pair = hook.get_conn()
        outcome = hook.test_connection()
        assert outcome[0] is False
        shown = f"{pair!r} {pair.source!r} {pair.connect!r} {hook!r} {vars(hook)} {outcome}"
        assert SECRET not in shown
    assert SECRET not in caplog.text
    assert SECRET not in "".join(capfd.readouterr())
