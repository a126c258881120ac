"""Kafka's access control lists (ACLs): what a refused request lacks, and the command to grant it.

Names of operations and options are those of ``kafka-acls`` and of
``org.apache.kafka.common.acl.AclOperation``. Read implies Describe (``StandardAuthorizerData``).
"""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from confluent_kafka import KafkaError

from airflow_mm2_offsets.kafka.config import BOOTSTRAP_SERVERS

ADMIN_FILE = "admin.properties"
"""What commands call the client properties of an administrator."""


class Operation(StrEnum):
    """What a principal may do."""

    READ = "Read"
    DESCRIBE = "Describe"
    DESCRIBE_CONFIGS = "DescribeConfigs"


class Resource(StrEnum):
    """What it may do that to."""

    TOPIC = "topic"
    GROUP = "group"
    CLUSTER = "cluster"


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Acl:
    """A right that a principal needs."""

    resource: Resource
    name: str
    """The topic's or the group's; ``*`` stands for all."""
    operation: Operation
    is_prefix: bool = False
    """Whether it is for all names that begin with ``name``."""

    def __str__(self) -> str:
        """Return it as messages name it: ``Read on topic orders``."""
        if self.resource is Resource.CLUSTER:
            return f"{self.operation} on the cluster"
        return f"{self.operation} on {self.resource} {self.name}{'*' if self.is_prefix else ''}"

    def command(self, principal: str, servers: str) -> str:
        """Return the ``kafka-acls`` command that grants it.

        Args:
            principal: As the broker names it: ``User:airflow``.
            servers: ``bootstrap.servers`` for an administrator.
        """
        words = ["kafka-acls", "--bootstrap-server", servers, "--command-config", ADMIN_FILE]
        words += ["--add", "--allow-principal", principal, "--operation", self.operation.value]
        words.append(f"--{self.resource}")
        if self.resource is not Resource.CLUSTER:
            words.append(self.name)
        if self.is_prefix:
            words += ["--resource-pattern-type", "prefixed"]
        return shlex.join(words)


_RESOURCES: Mapping[int, Resource] = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED: Resource.TOPIC,
    KafkaError.GROUP_AUTHORIZATION_FAILED: Resource.GROUP,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: Resource.CLUSTER,
}
_ANY = {Resource.TOPIC: "NAME", Resource.GROUP: "*", Resource.CLUSTER: "kafka-cluster"}
"""The name where the refused request named none, or several."""


def missing_acl(code: int, operation: Operation, name: str | None) -> Acl | None:
    """Return the right whose lack a broker reports; None if its error is about something else.

    Args:
        code: Kafka's error code.
        operation: What the request needs: a broker does not tell.
        name: The topic or the group of the request, if it named one.
    """
    resource = _RESOURCES.get(code)
    if resource is None:
        return None
    return Acl(resource=resource, name=name or _ANY[resource], operation=operation)


def describe_missing(acl: Acl, config: Mapping[str, object]) -> str:
    """Return who lacks a right, and how an administrator grants it, as a sentence."""
    principal = principal_of(config)
    command = acl.command(principal or "User:NAME", str(config[BOOTSTRAP_SERVERS]))
    return (
        f"{principal or 'the principal of this connection'} lacks {acl}; an administrator grants "
        f"it: {command}"
    )


def principal_of(config: Mapping[str, object]) -> str | None:
    """Return the principal of a login by user and password; None where only the broker knows.

    A token's or a certificate's principal depends on the broker's settings.
    """
    mechanism = str(config.get("sasl.mechanism") or config.get("sasl.mechanisms") or "").upper()
    user = config.get("sasl.username")
    if not user or not (mechanism == "PLAIN" or mechanism.startswith("SCRAM-")):
        return None
    return f"User:{user}"
