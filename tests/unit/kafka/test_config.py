"""Client configurations."""

import pytest

from airflow_mm2_offsets.errors import ConfigurationError
from airflow_mm2_offsets.kafka.config import admin_config, consumer_config

EXTRA = {"bootstrap.servers": "a:9092", "group.id": "theirs", "enable.auto.commit": True}


def test_the_input_stays_as_it_is() -> None:
    """Making configurations does not change the connection's extra."""
    extra = dict(EXTRA)
    admin_config("source", extra)
    consumer_config("source", extra, "read_committed", prefetch=1)
    assert extra == EXTRA


def test_an_admin_client_gets_nothing_of_consumers() -> None:
    """Properties that librdkafka warns about in an admin client are left out."""
    assert admin_config("source", EXTRA) == {"bootstrap.servers": "a:9092"}


def test_a_consumer_never_commits_nor_uses_the_group_of_the_connection() -> None:
    """Reading cannot disturb a group, whatever the connection says."""
    config = consumer_config("source", EXTRA, "read_committed", prefetch=1)
    assert config["group.id"] == "airflow-mm2-offsets-never-joined"
    assert config["enable.auto.commit"] is False
    assert config["enable.partition.eof"] is True
    assert config["isolation.level"] == "read_committed"


@pytest.mark.parametrize(
    ("prefetch", "messages", "kibibytes"),
    [(1, 1, 16), (100, 100, 100), (100_000, 100_000, 1024), (10**9, 1_000_000, 1024)],
)
def test_no_more_is_fetched_than_wanted(prefetch: int, messages: int, kibibytes: int) -> None:
    """What is fetched ahead fits what is wanted, at about 1 KiB a record, and has bounds."""
    config = consumer_config("source", EXTRA, "read_committed", prefetch=prefetch)
    assert config["queued.min.messages"] == messages
    assert config["max.partition.fetch.bytes"] == kibibytes * 1024


@pytest.mark.parametrize("extra", [{}, {"bootstrap.servers": ""}])
def test_missing_servers_are_named(extra: dict[str, object]) -> None:
    """The error names the connection and the key that is missing."""
    with pytest.raises(ConfigurationError, match=r"conn kafka_a: bootstrap\.servers is missing"):
        admin_config("conn kafka_a", extra)


@pytest.mark.parametrize("value", [{"a": 1}, ["x"], None])
def test_a_value_that_is_no_scalar_is_named_but_not_shown(value: object) -> None:
    """The error names connection and key, and keeps the value to itself."""
    extra = {"bootstrap.servers": "a:9092", "sasl.password": value}
    with pytest.raises(ConfigurationError, match=r"^source: sasl\.password is a \w+; give"):
        consumer_config("source", extra, "read_uncommitted", prefetch=1)
