"""The job's file of Kafka client properties, as options of Spark's Kafka source."""

from pathlib import Path

import pytest

from airflow_mm2_offsets.job.client_properties import find_file, spark_options


def test_properties_become_options_without_those_that_spark_refuses() -> None:
    """A file that other programs use as well may hold them (Spark's Kafka integration guide)."""
    refused = {"group.id": "shop", "key.deserializer": "Bytes", "auto.offset.reset": "latest"}
    login = {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}
    assert spark_options(login | refused) == {
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": "PLAIN",
    }


def test_a_file_is_found_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its path; else by its name in the folder of the driver, where ``--files`` puts it."""
    file = tmp_path / "kafka_source.properties"
    file.touch()
    assert find_file(str(file)) == str(file)
    monkeypatch.chdir(tmp_path)
    assert find_file("/elsewhere/kafka_source.properties") == "kafka_source.properties"
