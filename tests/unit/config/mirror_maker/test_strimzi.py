"""Strimzi's KafkaMirrorMaker2, by the rules of its operator's ``KafkaMirrorMaker2Connectors``."""

from pathlib import Path

import pytest

from airflow_mm2_offsets.core import ReplicationPolicy, SyncsLocation
from airflow_mm2_offsets.errors import ConfigurationError
from stack.certificates import Authority
from tests.support.mirror_setups import STRIMZI
from tests.unit.config.settings_files import load

V1BETA2 = STRIMZI.replace(
    "          replication.factor: -1\n",
    """          replication.factor: -1
          offset-syncs.topic.location: target
          replication.policy.class: org.apache.kafka.connect.mirror.IdentityReplicationPolicy
""",
    1,
)
V1 = """
apiVersion: v1
kind: ConfigMap
metadata: {name: other}
---
apiVersion: kafka.strimzi.io/v1
kind: KafkaMirrorMaker2
metadata: {name: copies}
spec:
  target:
    alias: rome
    bootstrapServers: rome-kafka-bootstrap.invalid:9093
    groupId: copies
    configStorageTopic: copies-config
    tls: {}
    authentication:
      type: tls
      certificateAndKey: {secretName: copier, certificate: user.crt, key: user.key}
  mirrors:
    - source:
        alias: oslo
        bootstrapServers: oslo-kafka-bootstrap.invalid:9092
        authentication:
          type: custom
          sasl: true
          config: {sasl.mechanism: SCRAM-SHA-256, sasl.username: copier, sasl.password: w}
      sourceConnector: {config: {replication.policy.separator: _}}
"""
PEM = Authority("oslo").issue("copier").chain
PASSWORD = {
    "MM2_OFFSETS_SOURCE_SASL_PASSWORD": "w",
    "MM2_OFFSETS_SOURCE_SSL_CA_LOCATION": "/ca.pem",
}
CERTIFICATE = {
    "MM2_OFFSETS_TARGET_SSL_CERTIFICATE_PEM": PEM,
    "MM2_OFFSETS_TARGET_SSL_KEY_LOCATION": "/user.key",
}


def test_a_list_of_clusters_is_read(tmp_path: Path) -> None:
    """v1beta2: ``clusters``, and their aliases in ``mirrors``."""
    settings = load(tmp_path, V1BETA2, "mm2.yaml", **PASSWORD)
    assert settings.source == {
        "bootstrap.servers": "oslo-kafka-bootstrap.invalid:9093",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "copier",
        "sasl.password": "w",
        "ssl.ca.location": "/ca.pem",
    }
    assert settings.target == {
        "bootstrap.servers": "rome-kafka-bootstrap.invalid:9092",
        "security.protocol": "PLAINTEXT",
    }
    assert settings.naming.policy is ReplicationPolicy.IDENTITY
    assert settings.syncs_location is SyncsLocation.TARGET
    assert (settings.naming.source_alias, settings.naming.target_alias) == ("oslo", "rome")


def test_clusters_in_place_are_read(tmp_path: Path) -> None:
    """v1: ``target`` and ``mirrors[].source``; resources of other kinds are passed over."""
    settings = load(tmp_path, V1, "mm2.yml", **CERTIFICATE)
    assert settings.source["security.protocol"] == "SASL_PLAINTEXT"
    assert settings.source["sasl.mechanism"] == "SCRAM-SHA-256"
    assert settings.target == {
        "bootstrap.servers": "rome-kafka-bootstrap.invalid:9093",
        "security.protocol": "SSL",
        "ssl.certificate.pem": PEM,
        "ssl.key.location": "/user.key",
    }
    assert settings.naming.policy is ReplicationPolicy.DEFAULT
    assert settings.pair().syncs_topic == "mm2-offset-syncs_rome_internal"


def test_secrets_of_kubernetes_are_asked_for_all_at_once(tmp_path: Path) -> None:
    """The resource only names them; the error says which variable gives each."""
    with pytest.raises(ConfigurationError) as raised:
        load(tmp_path, V1BETA2, "mm2.yaml")
    message = str(raised.value)
    assert (
        "it is in the secret copier-login of Kubernetes, under word; set the variable " in message
    )
    assert "MM2_OFFSETS_SOURCE_SASL_PASSWORD" in message
    assert "it is in the secret oslo-ca of Kubernetes; set the variable " in message
    assert (
        "MM2_OFFSETS_SOURCE_SSL_CA_LOCATION (a PEM file) or MM2_OFFSETS_SOURCE_SSL_CA_PEM"
        in message
    )


def test_oauth_of_v1beta2_becomes_librdkafkas(tmp_path: Path) -> None:
    """``type: oauth`` with a client secret; v1 has it as ``type: custom``."""
    text = V1BETA2.replace(
        """        type: scram-sha-512
        username: copier
        passwordSecret: {secretName: copier-login, password: word}
""",
        """        type: oauth
        clientId: copier
        tokenEndpointUri: https://sso.invalid/token
        clientSecret: {secretName: sso, key: word}
""",
    )
    variables = {
        "MM2_OFFSETS_SOURCE_SASL_OAUTHBEARER_CLIENT_SECRET": "w",
        "MM2_OFFSETS_SOURCE_SSL_CA_LOCATION": "/ca.pem",
    }
    source = load(tmp_path, text, "mm2.yaml", **variables).source
    assert source["sasl.mechanism"] == "OAUTHBEARER"
    assert source["sasl.oauthbearer.client.id"] == "copier"
    assert source["sasl.oauthbearer.token.endpoint.url"] == "https://sso.invalid/token"
    with pytest.raises(ConfigurationError, match="secret sso of Kubernetes, under word"):
        load(tmp_path, text, "mm2.yaml")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (V1BETA2.replace("sourceCluster: oslo", "sourceCluster: bari"), "cluster 'bari', which is"),
        (V1BETA2.replace("  mirrors:", "  x:"), "KafkaMirrorMaker2 copies: has no spec.mirrors"),
        (
            V1.replace("    bootstrapServers: rome", "    x: rome"),
            "cluster without bootstrapServers",
        ),
        (V1BETA2.replace("scram-sha-512", "kerberos"), "authentication.type is 'kerberos'; give"),
    ],
)
def test_a_wrong_resource_is_refused(tmp_path: Path, text: str, message: str) -> None:
    """The error names the resource and what to add."""
    with pytest.raises(ConfigurationError, match=message):
        load(tmp_path, text, "mm2.yaml")


def test_a_custom_login_does_not_choose_the_protocol(tmp_path: Path) -> None:
    """The operator writes ``security.protocol`` itself, by ``tls`` and ``sasl``."""
    custom = V1.replace("config: {sasl.m", "config: {security.protocol: SSL, sasl.m")
    assert custom != V1
    assert load(tmp_path, custom, "mm2.yaml", **CERTIFICATE) == load(
        tmp_path, V1, "mm2.yaml", **CERTIFICATE
    )
