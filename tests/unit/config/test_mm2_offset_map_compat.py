"""Settings of mm2-offset-map, in every form that Spring Boot reads."""

from pathlib import Path

import pytest

from airflow_mm2_offsets.config import Settings, load_settings
from airflow_mm2_offsets.errors import ConfigurationError
from tests.unit.config.settings_files import load

APPLICATION_YAML = """
mm2:
  offset-map:
    source-cluster: east
    target-cluster: west
    bootstrap-servers: t.invalid:2
    source-bootstrap-servers: s.invalid:1
    offset-syncs-topic: mm2-offset-syncs.east.internal
    refresh-interval: 1m
    consumer-properties:
      security.protocol: PLAINTEXT
      client.id: shared
    source-consumer-properties:
      client.id: own
spring:
  application: {name: offsets}
"""


def check_settings(settings: Settings) -> None:
    pair = settings.pair()
    assert pair.source.config == {
        "bootstrap.servers": "s.invalid:1",
        "security.protocol": "PLAINTEXT",
        "client.id": "own",
    }
    assert pair.target.config == {
        "bootstrap.servers": "t.invalid:2",
        "security.protocol": "PLAINTEXT",
        "client.id": "shared",
    }
    assert (pair.naming.source_alias, pair.naming.target_alias) == ("east", "west")
    assert pair.syncs_cluster is pair.target
    assert pair.syncs_topic == "mm2-offset-syncs.east.internal"
    assert settings.refresh_seconds == 60


def test_an_application_yaml_is_read(tmp_path: Path) -> None:
    """Users keep their file. Keys that configure Spring are ignored."""
    check_settings(load(tmp_path, APPLICATION_YAML, "application.yaml"))


def test_properties_and_variables_are_read(tmp_path: Path) -> None:
    """All spellings that Spring Boot binds are read."""
    check_settings(
        load(
            tmp_path,
            """mm2.offset-map.source-cluster=east
            mm2.offsetMap.targetCluster=west
            mm2.offset-map.bootstrap-servers=t.invalid:2
            mm2.offset-map.offset-syncs-topic=mm2-offset-syncs.east.internal
            mm2.offset-map.enabled=true
            mm2.offset-map.consumer-properties[security.protocol]=PLAINTEXT
            mm2.offset-map.consumer-properties.client.id=shared
            """,
            MM2_OFFSETMAP_SOURCEBOOTSTRAPSERVERS="s.invalid:1",
            MM2_OFFSETMAP_REFRESHINTERVAL="PT1M",
            MM2_OFFSET_MAP_SOURCE_CONSUMER_PROPERTIES_CLIENT_ID="own",
        )
    )


def test_the_json_of_the_helm_chart_is_read() -> None:
    """The Helm chart of mm2-offset-map puts all settings into one variable."""
    text = (
        '{"mm2": {"offset-map": {"bootstrap-servers": "t.invalid:2",'
        ' "refresh-interval": 500}}, "spring": {}}'
    )
    with pytest.raises(ConfigurationError, match=r"SPRING_APPLICATION_JSON: is '0.5'; give a num"):
        load_settings(None, {"SPRING_APPLICATION_JSON": text})
    settings = load_settings(None, {"SPRING_APPLICATION_JSON": text.replace("500", '"30s"')})
    # The source's address defaults to the target's.
    assert settings.source == settings.target == {"bootstrap.servers": "t.invalid:2"}
    assert settings.refresh_seconds == 30
