"""The settings of a real MirrorMaker 2 beside those that we were other."""

from dataclasses import replace

import httpx

from airflow_mm2_offsets.core import ReplicationPolicy, SyncsLocation
from airflow_mm2_offsets.planning.mirror_config import _DEFAULTS, compare_with_connect
from stack.mirror import Stack
from tests.integration.mirrors import mirror

PLUGIN = "org.apache.kafka.connect.mirror.MirrorSourceConnector"


def test_the_defaults_are_those_of_mirrormaker(stack: Stack) -> None:
    """Connect reports the defaults of MirrorMaker 2's settings that the package assumes."""
    url = f"{stack.connect_url}/connector-plugins/{PLUGIN}/config"
    settings = httpx.get(url, timeout=30).raise_for_status().json()
    defaults = {each["name"]: each["default_value"] for each in settings}
    assert {field: defaults[field] for field in _DEFAULTS} == _DEFAULTS
    assert defaults["source.cluster.alias"] is None


def test_a_wrong_replication_policy_is_found(stack: Stack) -> None:
    """A pair whose policy, separator and syncs location differ from the connector is reported."""
    with mirror(stack) as made:
        made.configure(**{"replication.policy.separator": "_"})
        other = replace(made.pair, naming=replace(made.pair.naming, separator="_"))
        assert compare_with_connect(other) == ()
        renamed = replace(other.naming, policy=ReplicationPolicy.DEFAULT, separator=".")
        wrong = replace(other, naming=renamed, syncs_location=SyncsLocation.SOURCE)
        assert [each.field for each in compare_with_connect(wrong)] == [
            "replication.policy.class",
            "replication.policy.separator",
            "offset-syncs.topic.location",
        ]
