"""The settings of a real MirrorMaker 2 beside ours."""

from dataclasses import replace

import httpx
import pytest

from airflow_mm2_offsets.core import ReplicationPolicy, SyncsLocation
from airflow_mm2_offsets.errors import ConfigurationError
from airflow_mm2_offsets.planning.mirror_config import check_names, read_mirror_connectors
from airflow_mm2_offsets.planning.mirror_connector import DEFAULTS
from stack.mirror import Stack
from tests.integration.mirrors import mirror

PLUGIN = "org.apache.kafka.connect.mirror.MirrorSourceConnector"


def test_the_defaults_are_those_of_mirrormaker(stack: Stack) -> None:
    """Connect names the default of each setting of the plugin."""
    url = f"{stack.connect_url}/connector-plugins/{PLUGIN}/config"
    settings = httpx.get(url, timeout=30).raise_for_status().json()
    defaults = {each["name"]: each["default_value"] for each in settings}
    assert {field: defaults[field] for field in DEFAULTS} == DEFAULTS
    assert defaults["source.cluster.alias"] is None


def test_a_connection_that_says_another_policy_is_found_out(stack: Stack) -> None:
    """Topics are renamed by MirrorMaker 2, and our settings say that they keep their names."""
    with mirror(stack) as made:
        made.configure(**{"replication.policy.separator": "_"})
        told = replace(made.pair, naming=replace(made.pair.naming, separator="_"))
        connector = read_mirror_connectors(told)
        check_names(told, connector)
        renamed = replace(told.naming, policy=ReplicationPolicy.DEFAULT, separator=".")
        wrong = replace(told, naming=renamed, syncs_location=SyncsLocation.SOURCE)
        with pytest.raises(ConfigurationError) as raised:
            check_names(wrong, connector)
        assert [each.split(" is ")[0] for each in str(raised.value).split("; ")] == [
            "replication.policy.class",
            "replication.policy.separator",
            "offset-syncs.topic.location",
        ]
