"""Asks a cluster for topics' settings and for consumer groups; ``KafkaCluster`` calls it."""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from confluent_kafka import ConsumerGroupState, KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclOperation,
    AdminClient,
    ConfigResource,
    ResourceType,
)

from airflow_mm2_offsets.core.acls import Operation
from airflow_mm2_offsets.kafka.session import ClientSession

if TYPE_CHECKING:
    from airflow_mm2_offsets.errors import ErrorFields

_WITHOUT_MEMBERS = frozenset({ConsumerGroupState.EMPTY, ConsumerGroupState.DEAD})


def describe_settings(
    admin: ClientSession[AdminClient], topics: Collection[str]
) -> dict[str, Mapping[str, str]]:
    """Return the effective settings of topics that exist, by topic."""
    resources = [ConfigResource(ResourceType.TOPIC, topic) for topic in sorted(topics)]
    futures = admin.client.describe_configs(resources, request_timeout=admin.remaining)
    admin.wait_all(futures.values())
    return {
        resource.name: {
            name: str(entry.value)
            for name, entry in _result(
                admin, future, operation=Operation.DESCRIBE_CONFIGS, topic=resource.name
            ).items()
            if entry.value is not None
        }
        for resource, future in futures.items()
    }


def describe_readers(
    admin: ClientSession[AdminClient], topics: Collection[str]
) -> dict[str, frozenset[str]]:
    """Return the groups with members that are assigned a partition of ``topics``, and which.

    Raises:
        ClusterRefusedError: The user may not see all groups: some could be missing.
    """
    _refuse_partial_listing(admin)
    listing = admin.client.list_consumer_groups(request_timeout=admin.remaining)
    admin.wait_all([listing])
    groups = [each for each in _result(admin, listing).valid if each.state not in _WITHOUT_MEMBERS]
    if not groups:
        return {}
    futures = admin.client.describe_consumer_groups(
        sorted(group.group_id for group in groups), request_timeout=admin.remaining
    )
    admin.wait_all(futures.values())
    read = {name: _assigned(_result(admin, future, group=name)) for name, future in futures.items()}
    return {name: shared for name, names in read.items() if (shared := names & {*topics})}


def find_unreadable(admin: ClientSession[AdminClient], topics: Collection[str]) -> frozenset[str]:
    """Return the topics that the user may not read, or not describe; see ``KafkaCluster``."""
    if not topics:
        return frozenset()
    futures = admin.client.describe_topics(
        TopicCollection(sorted(topics)),
        include_authorized_operations=True,
        request_timeout=admin.remaining,
    )
    admin.wait_all(futures.values())
    return frozenset(name for name, each in futures.items() if not _is_readable(admin, each))


def _is_readable(admin: ClientSession[AdminClient], topic: Any) -> bool:  # noqa: ANN401 - a future
    try:
        operations = topic.result().authorized_operations
    except KafkaException as error:
        code = error.args[0].code()
        if code == KafkaError.TOPIC_AUTHORIZATION_FAILED:
            return False
        if code == KafkaError.UNKNOWN_TOPIC_OR_PART:
            return True
        raise admin.failure(error.args[0]) from error
    return operations is None or {AclOperation.READ, AclOperation.DESCRIBE} <= {*operations}


def _assigned(group: Any) -> frozenset[str]:  # noqa: ANN401 - as the client types it
    return frozenset(
        partition.topic
        for member in group.members
        if member.assignment is not None
        for partition in member.assignment.topic_partitions
    )


def _refuse_partial_listing(admin: ClientSession[AdminClient]) -> None:
    """Refuse to list groups without the right to see all: a broker leaves the others out.

    Who may not describe the cluster is not told what else is allowed (KIP-430).
    """
    future = admin.client.describe_cluster(
        include_authorized_operations=True, request_timeout=admin.remaining
    )
    admin.wait_all([future])
    allowed = _result(admin, future).authorized_operations or ()
    if AclOperation.DESCRIBE not in allowed:
        raise admin.failure(KafkaError(KafkaError.CLUSTER_AUTHORIZATION_FAILED))


def _result(
    admin: ClientSession[AdminClient],
    future: Any,  # noqa: ANN401 - as the client types it
    *,
    operation: Operation = Operation.DESCRIBE,
    topic: str | None = None,
    group: str | None = None,
) -> Any:  # noqa: ANN401 - as the client types it
    subject: ErrorFields = {"topic": topic} if topic else {}
    try:
        return future.result()
    except KafkaException as error:
        raise admin.failure(error.args[0], operation=operation, group=group, **subject) from error
