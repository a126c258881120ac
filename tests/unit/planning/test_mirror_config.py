"""MirrorMaker 2's own settings beside ours; Connect's answers are played."""

from dataclasses import replace

import httpx
import pytest

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.connect.client import ConnectClient
from airflow_mm2_offsets.core import Basis, Naming, ReplicationPolicy, SyncsLocation
from airflow_mm2_offsets.errors import ClusterUnreachableError, ConfigurationError, ConnectError
from airflow_mm2_offsets.kafka.cluster import KafkaCluster
from airflow_mm2_offsets.planning.mirror_config import check_names, read_mirror_connectors
from airflow_mm2_offsets.planning.options import DEFAULT_OPTIONS
from airflow_mm2_offsets.planning.plan import plan_failover
from tests.support import pairs
from tests.support.pairs import STOPPED_CONNECT, Pair

MIRROR = "org.apache.kafka.connect.mirror"
LEAST = {"connector.class": f"{MIRROR}.MirrorSourceConnector", "source.cluster.alias": "a"}
NOWHERE = {"bootstrap.servers": "127.0.0.1:1"}
PAIR = ClusterPair(
    source=KafkaCluster(name="source", config=NOWHERE),
    target=KafkaCluster(name="target", config=NOWHERE),
    naming=Naming(source_alias="a", target_alias="target"),
)
IDENTITY = replace(PAIR, naming=replace(PAIR.naming, policy=ReplicationPolicy.IDENTITY))


def connect(**configs: dict[str, str]) -> ConnectClient:
    answers: dict[str, object] = {
        f"/connectors/{name}/config": config for name, config in configs.items()
    }
    answers["/connectors"] = {name: {"info": {"config": each}} for name, each in configs.items()}
    return ConnectClient(
        url="http://connect:8083",
        transport=httpx.MockTransport(
            lambda asked: httpx.Response(200, json=answers[asked.url.path])
        ),
    )


def check(pair: ClusterPair, client: ConnectClient | None) -> None:
    """Compare the pair with the connector that Connect has."""
    pair = replace(pair, connect=client)
    check_names(pair, read_mirror_connectors(pair))


def differences(pair: ClusterPair, **config: str) -> list[str]:
    """Return what differs where the connector has, beside the least, ``config`` (_ for dots)."""
    named = {key.replace("_", "."): value for key, value in config.items()}
    try:
        check(pair, connect(mirror=LEAST | named))
    except ConfigurationError as error:
        return str(error).split("; ")
    return []


def difference(field: str, expected: str, value: str) -> str:
    """Return the sentence on one setting."""
    return (
        f"{field} is '{value}' in connector mirror but '{expected}' in our settings: correct "
        f"the mm2 connection or the settings file"
    )


def test_absent_settings_are_the_defaults_of_mirrormaker() -> None:
    """A connector that names nothing but what it must agrees with our defaults."""
    assert differences(PAIR) == []
    assert differences(IDENTITY) == [
        difference("replication.policy.class", "identity", f"{MIRROR}.DefaultReplicationPolicy")
    ]


@pytest.mark.parametrize(
    "policy", [f"{MIRROR}.IdentityReplicationPolicy", " com.vendor.IdentityReplicationPolicy "]
)
def test_identity_is_known_by_its_class(policy: str) -> None:
    """MirrorMaker 2's own, and those of vendors that bear its name."""
    assert differences(IDENTITY, replication_policy_class=policy) == []
    assert differences(PAIR, replication_policy_class=policy) == [
        difference("replication.policy.class", "default", policy)
    ]


def test_a_policy_that_is_neither_is_a_difference() -> None:
    """How such a policy names topics is unknown."""
    own = {"replication_policy_class": "com.acme.OwnPolicy"}
    for pair, told in ((PAIR, "default"), (IDENTITY, "identity")):
        expected = difference("replication.policy.class", told, "com.acme.OwnPolicy")
        assert differences(pair, **own) == [expected]


def test_every_setting_is_compared_and_all_are_named() -> None:
    """The aliases too, if Connect has only one connector."""
    pair = replace(
        PAIR,
        naming=Naming(
            source_alias="east", target_alias="west", separator="_", internal_separator=False
        ),
        syncs_location=SyncsLocation.TARGET,
    )
    assert differences(pair, **{"emit.offset-syncs.enabled": "False"}) == [
        difference("source.cluster.alias", "east", "a"),
        difference("target.cluster.alias", "west", "target"),
        difference("replication.policy.separator", "_", "."),
        difference("replication.policy.internal.topic.separator.enabled", "false", "true"),
        difference("offset-syncs.topic.location", "target", "source"),
        difference("emit.offset-syncs.enabled", "true", "False"),
    ]


def test_of_several_connectors_the_aliases_decide() -> None:
    """Only the connector of this pair is compared; the error names the connectors there are."""
    others = {"forth": LEAST, "other": LEAST | {"source.cluster.alias": "c"}}
    check(PAIR, connect(**others))
    naming = replace(PAIR.naming, source_alias="d")
    with pytest.raises(ConnectError, match=r"d->target; it has forth .*, other \(c->targ"):
        check(replace(PAIR, naming=naming), connect(**others))


def test_a_value_that_stands_elsewhere_is_not_compared() -> None:
    """Connect tells the reference to a secret store or variable, and not what it stands for."""
    assert differences(PAIR, replication_policy_separator="${env:SEPARATOR}") == []
    assert differences(PAIR, replication_policy_separator="_") != []


@pytest.mark.parametrize("status", [401, 403])
def test_connect_that_refuses_says_so(status: int) -> None:
    """Nothing is taken for equal."""
    refusing = httpx.MockTransport(lambda _: httpx.Response(status, json={"message": "no"}))
    client = ConnectClient(url="http://connect:8083", transport=refusing)
    with pytest.raises(ConnectError, match=f"HTTP {status}, asked without a login: no; "):
        check(PAIR, client)


def test_connect_that_is_down_or_not_given_says_so() -> None:
    """Nothing is taken for equal."""
    with pytest.raises(ClusterUnreachableError, match="the in-memory Connect does not run"):
        check(PAIR, STOPPED_CONNECT.client())
    with pytest.raises(ConfigurationError, match="no Connect URL is given"):
        check(PAIR, None)


def test_a_plan_by_another_policy_than_the_connector_s_is_refused(clusters: Pair) -> None:
    """The topic of that name on the target is another one, though its records may be equal."""
    clusters.write("orders", range(100))
    clusters.copy("orders", range(100))
    clusters.sync("orders", (0, 0), (99, 99))
    config = {"replication.policy.class": f"{MIRROR}.DefaultReplicationPolicy"}
    pair = replace(clusters.pair, connect=pairs.connect(config=config))
    with pytest.raises(ConfigurationError, match=r"replication\.policy\.class"):
        plan_failover(pair, {"orders": {0: 99}}, options=DEFAULT_OPTIONS)


def test_a_plan_whose_records_differ_at_a_sync_is_refused(clusters: Pair) -> None:
    clusters.write("orders", range(100))
    clusters.copy("orders", range(1000, 1100))
    clusters.sync("orders", (0, 0), (99, 99))
    plan = plan_failover(clusters.pair, {"orders": {0: 99}}, options=DEFAULT_OPTIONS)
    (partition,) = plan.partitions
    assert partition.translation.basis is Basis.RECORDS_DIFFER
