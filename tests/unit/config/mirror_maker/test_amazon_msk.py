"""The shapes of Amazon MSK's examples: IAM on MSK Connect, and a dedicated MirrorMaker 2."""

import json
from pathlib import Path

import pytest

from airflow_mm2_offsets.config.sources import read_entries
from airflow_mm2_offsets.errors import ConfigurationError
from tests.unit.config.settings_files import load

IAM = {
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "AWS_MSK_IAM",
    "sasl.jaas.config": "software.amazon.msk.auth.iam.IAMLoginModule required;",
    "sasl.client.callback.handler.class": ("software.amazon.msk.auth.iam.IAMClientCallbackHandler"),
}
CLIENTS = ("source.consumer", "source.producer", "source.admin", "target.consumer", "target.admin")


def test_iam_comes_with_every_clients_prefix(tmp_path: Path) -> None:
    """MSK Connect's examples repeat the login for each client; Java's names are handed on."""
    config = {
        "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
        "source.cluster.alias": "left",
        "target.cluster.alias": "right",
        "source.cluster.bootstrap.servers": "b-1.left.invalid:9098",
        "target.cluster.bootstrap.servers": "b-1.right.invalid:9098",
        "replication.factor": "3",
        **{f"{client}.{name}": value for client in CLIENTS for name, value in IAM.items()},
    }
    file = tmp_path / "connector.json"
    file.write_text(json.dumps(config))
    values = {key: entry.value for key, entry in read_entries(file, {}).items()}
    for side in ("source", "target"):
        assert {name: values[f"{side}.{name}"] for name in IAM} == IAM


def test_a_policy_of_ones_own_is_asked_for(tmp_path: Path) -> None:
    """The samples of Amazon MSK have a class that keeps topic names, which can't be run here."""
    text = """clusters = left, right
    left.bootstrap.servers = b-1.left.invalid:9092
    right.bootstrap.servers = b-1.right.invalid:9092
    left->right.enabled = true
    replication.policy.class = com.example.KeepNamesPolicy
    """
    with pytest.raises(
        ConfigurationError,
        match=r"replication.policy.class in .*: is 'com.example.KeepNamesPolicy'; give one of "
        r"identity, default; for a class of your own, set MM2_OFFSETS_REPLICATION_POLICY",
    ):
        load(tmp_path, text)
    assert (
        load(tmp_path, text, MM2_OFFSETS_REPLICATION_POLICY="identity").naming.policy == "identity"
    )
