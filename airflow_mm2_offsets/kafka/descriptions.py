"""Asks a cluster for topics, their settings, and consumer groups; ``KafkaCluster`` calls it."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from confluent_kafka import ConsumerGroupState, KafkaError, KafkaException, TopicCollection, Uuid
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclOperation,
    AdminClient,
    ConfigResource,
    ResourceType,
)

from airflow_mm2_offsets.core.acls import Operation
from airflow_mm2_offsets.errors import TopicNotFoundError
from airflow_mm2_offsets.kafka.session import ClientSession

if TYPE_CHECKING:
    from concurrent.futures import Future

    from confluent_kafka.admin._topic import TopicDescription

_NO_TOPIC_ID = str(Uuid(0, 0))
_URL_SAFE = str.maketrans("+/", "-_")
_WITHOUT_MEMBERS = frozenset({ConsumerGroupState.EMPTY, ConsumerGroupState.DEAD})


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicInfo:
    """A topic that exists."""

    name: str
    partitions: int
    topic_id: str | None
    """Changes when a topic is deleted and created again (KIP-516); None before Kafka 2.8."""
    replicas: int | None = None
    """Of the partition that has the fewest."""


def describe_topics(
    admin: ClientSession[AdminClient], topics: Collection[str]
) -> dict[str, TopicInfo]:
    """Return the topics that exist, by name."""
    futures = admin.ask(partial(admin.client.describe_topics, TopicCollection([*topics])))
    infos = {name: _topic_info(admin, name, future) for name, future in futures.items()}
    return {name: info for name, info in infos.items() if info is not None}


def describe_settings(
    admin: ClientSession[AdminClient], topics: Collection[str]
) -> dict[str, Mapping[str, str]]:
    """Return the effective settings of topics that exist, by topic."""
    resources = [ConfigResource(ResourceType.TOPIC, topic) for topic in sorted(topics)]
    futures = admin.ask(partial(admin.client.describe_configs, resources))
    return {
        resource.name: {
            name: str(entry.value)
            for name, entry in admin.result(
                future, operation=Operation.DESCRIBE_CONFIGS, topic=resource.name
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
    groups = [each for each in _list_groups(admin) if each.state not in _WITHOUT_MEMBERS]
    if not groups:
        return {}
    names = sorted(group.group_id for group in groups)
    futures = admin.ask(partial(admin.client.describe_consumer_groups, names))
    read = {name: _assigned(admin.result(future, group=name)) for name, future in futures.items()}
    return {name: shared for name, names in read.items() if (shared := names & {*topics})}


def list_group_names(admin: ClientSession[AdminClient]) -> frozenset[str]:
    """Return the names of all consumer groups.

    Raises:
        ClusterRefusedError: The user may not see all groups: some could be missing.
    """
    _refuse_partial_listing(admin)
    return frozenset(group.group_id for group in _list_groups(admin))


def find_unreadable(admin: ClientSession[AdminClient], topics: Collection[str]) -> frozenset[str]:
    """Return the topics that the user may not read, or not describe; see ``KafkaCluster``."""
    if not topics:
        return frozenset()
    futures = admin.ask(
        partial(
            admin.client.describe_topics,
            TopicCollection(sorted(topics)),
            include_authorized_operations=True,
        )
    )
    return frozenset(name for name, each in futures.items() if not _is_readable(admin, each))


def _topic_info(
    admin: ClientSession[AdminClient], name: str, future: "Future[TopicDescription]"
) -> TopicInfo | None:
    """Return the topic; None if it does not exist."""
    try:
        description = admin.result(future, topic=name)
    except TopicNotFoundError:
        return None
    topic_id = str(description.topic_id)
    return TopicInfo(
        name=description.name,
        partitions=len(description.partitions),
        # As Kafka writes it (org.apache.kafka.common.Uuid): fit for the name of a file.
        topic_id=None if topic_id == _NO_TOPIC_ID else topic_id.translate(_URL_SAFE),
        replicas=min((len(each.replicas) for each in description.partitions), default=None),
    )


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


def _list_groups(admin: ClientSession[AdminClient]) -> list[Any]:
    """Return all groups; raise the error of a broker that did not list its own."""
    listing = _ask_one(admin, admin.client.list_consumer_groups)
    if listing.errors:
        raise admin.failure(listing.errors[0].args[0])
    return [*listing.valid]


def _ask_one(admin: ClientSession[AdminClient], send: Callable[..., Any]) -> Any:  # noqa: ANN401
    """Return what a method of the admin client answers that returns a single future."""
    return admin.result(admin.ask(lambda **options: {"": send(**options)})[""])


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
    ask = partial(admin.client.describe_cluster, include_authorized_operations=True)
    allowed = _ask_one(admin, ask).authorized_operations or ()
    if AclOperation.DESCRIBE not in allowed:
        raise admin.failure(KafkaError(KafkaError.CLUSTER_AUTHORIZATION_FAILED))
