"""Secrets in locations are hidden wherever a person reads them."""

import pytest

from airflow_mm2_offsets.errors import ConfigurationError
from airflow_mm2_offsets.logins import without_login


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("ftp://user:hunter2@host/x", "ftp://user:***@host/x"),
        ("s3://AKIA:hun/ter2@bucket/x", "s3://AKIA:***@bucket/x"),
        ("s3://AKIA:hun@ter2@bucket/x@y", "s3://AKIA:***@bucket/x@y"),
        ("https://hunter2@host/x", "https://***@host/x"),
        ("s3://AKIA:443/hunter2@bucket/x", "s3://AKIA:***@bucket/x"),
        ("user:hunter2@east:9092 is down", "user:***@east:9092 is down"),
        ("bootstrap.servers=u:hunter2@a:1,u:hunter2@b:2", "bootstrap.servers=u:***@a:1,u:***@b:2"),
        ("https://host/x?sv=1&sig=hunter2", "https://host/x?sv=1&sig=***"),
        ("http://connect:8083?token=hunter2", "http://connect:8083?token=***"),
        ("https://host/x?X-Amz-Signature=hunter2&a=b", "https://host/x?X-Amz-Signature=***&a=b"),
    ],
)
def test_a_secret_of_a_location_is_hidden(text: str, shown: str) -> None:
    """The user, the host and the other fields stay: they tell which location it is."""
    assert without_login(text) == shown
    assert str(ConfigurationError(text)) == shown


def test_the_fields_of_an_error_hide_it_too() -> None:
    """They go into JSON answers and into the events of triggers."""
    error = ConfigurationError("x", file="s3://k:hunter2@b/x", servers="u:hunter2@h:1", cluster="c")
    assert "hunter2" not in str(error.to_json())
    assert error.to_json()["file"] == "s3://k:***@b/x"


@pytest.mark.parametrize(
    "text",
    [
        "hdfs://namenode:8020/user/spark@REALM/checkpoint",
        "abfss://container@account.dfs.core.windows.net/x",
        "sftp://user@host/x",
        "http://connect:8083/connectors/a",
        "orders[0]: position 7 is above 6; see mailto a@b",
        "s3://bucket/key=1/x?versionId=3",
    ],
)
def test_a_location_without_a_secret_is_shown_whole(text: str) -> None:
    """People look for exactly this text."""
    assert without_login(text) == text
