"""Configurations of admin clients and consumers."""

import pytest

from airflow_mm2_offsets.errors import ConfigurationError
from airflow_mm2_offsets.kafka.config import admin_config, consumer_config

EXTRA = {"bootstrap.servers": "a:9092", "group.id": "users", "enable.auto.commit": True}


def test_the_input_is_not_modified() -> None:
    """The connection's extra stays the same."""
    extra = dict(EXTRA)
    admin_config("source", extra)
    consumer_config("source", extra, "read_committed", prefetch=1)
    assert extra == EXTRA


def test_an_admin_client_gets_no_consumer_properties() -> None:
    """Properties that librdkafka warns about in an admin client are left out."""
    assert admin_config("source", EXTRA) == {"bootstrap.servers": "a:9092"}


def test_a_consumer_never_commits_nor_joins_the_group_of_the_connection() -> None:
    """The group and the auto-commit of the connection are replaced."""
    config = consumer_config("source", EXTRA, "read_committed", prefetch=1)
    assert config["group.id"] == "airflow-mm2-offsets-never-joined"
    assert config["enable.auto.commit"] is False
    assert config["enable.partition.eof"] is True
    assert config["isolation.level"] == "read_committed"


@pytest.mark.parametrize(
    ("prefetch", "messages", "kibibytes"),
    [(1, 1, 16), (100, 100, 100), (100_000, 100_000, 1024), (10**9, 1_000_000, 1024)],
)
def test_the_prefetch_limits_what_is_fetched(prefetch: int, messages: int, kibibytes: int) -> None:
    """The limits assume about 1 KiB a record, and have a minimum and a maximum."""
    config = consumer_config("source", EXTRA, "read_committed", prefetch=prefetch)
    assert config["queued.min.messages"] == messages
    assert config["max.partition.fetch.bytes"] == kibibytes * 1024


@pytest.mark.parametrize(
    ("extra", "problem"),
    [({}, "missing"), ({"bootstrap.servers": ""}, "missing"), ({"bootstrap.servers": 1}, "not a")],
)
def test_missing_servers_are_named(extra: dict[str, object], problem: str) -> None:
    """The error names the connection and the key, and says what is wrong."""
    with pytest.raises(ConfigurationError, match=rf"conn kafka_a: bootstrap\.servers is {problem}"):
        admin_config("conn kafka_a", extra)


@pytest.mark.parametrize("value", [{"a": 1}, ["x"], None])
def test_a_value_that_is_not_a_scalar_is_refused_without_it(value: object) -> None:
    """The error names the connection and the key, and does not show the value."""
    extra = {"bootstrap.servers": "a:9092", "sasl.password": value}
    with pytest.raises(ConfigurationError, match=r"^source: sasl\.password is a \w+; give"):
        consumer_config("source", extra, "read_uncommitted", prefetch=1)
