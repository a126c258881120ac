"""Which logins two clusters can't have together."""

import pytest

from airflow_mm2_offsets.clusters import ClusterPair, checked_logins
from airflow_mm2_offsets.core import Naming, ReplicationPolicy
from airflow_mm2_offsets.errors import ConfigurationError
from airflow_mm2_offsets.kafka.cluster import KafkaCluster

NAMING = Naming(source_alias="east", target_alias="west", policy=ReplicationPolicy.IDENTITY)
KERBEROS = {
    "bootstrap.servers": "localhost:1",
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "GSSAPI",
}


def _pair(*principals: str) -> ClusterPair:
    source, target = (
        KafkaCluster(name=name, config=KERBEROS | {"sasl.kerberos.principal": principal})
        for name, principal in zip(("source", "target"), principals, strict=True)
    )
    return ClusterPair(source=source, target=target, naming=NAMING)


def test_two_principals_of_kerberos_are_refused() -> None:
    """They would share one ticket: the last one's."""
    with pytest.raises(ConfigurationError, match=r"source: a@EAST and target: a@WEST"):
        checked_logins(_pair("a@EAST", "a@WEST"))
    same = _pair("a@EAST", "a@EAST")
    assert checked_logins(same) is same
