"""Describes the topics and consumer groups of a cluster in memory; ``clients`` calls it."""

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

from confluent_kafka import (
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
)
from confluent_kafka import TopicPartition as PartitionOffset
from confluent_kafka.admin import AclOperation, ConfigResource  # type: ignore[attr-defined]

from airflow_mm2_offsets.core import TopicPartition
from airflow_mm2_offsets.testing.clusters import InMemoryCluster, InMemoryTopic

UNKNOWN_TOPIC = KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)
_DEFAULTS = {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}


class DescribingAdmin:
    """The requests of an admin client that describe topics' settings and groups."""

    _cluster: InMemoryCluster

    @abstractmethod
    def _outage(self) -> KafkaException | None:
        """Return the error of a cluster that does not run."""

    def describe_configs(
        self, resources: Iterable[ConfigResource], **_: object
    ) -> dict[ConfigResource, "Future[Any]"]:
        """Answer the settings of topics."""
        outage = self._outage()
        return {each: failed(outage) if outage else self._settings(each.name) for each in resources}

    def describe_cluster(self, **_: object) -> "Future[Any]":
        """Answer what is allowed: only that is asked for."""
        outage = self._outage()
        allowed = SimpleNamespace(authorized_operations=[AclOperation.DESCRIBE])
        return failed(outage) if outage else done(allowed)

    def list_consumer_groups(self, **_: object) -> "Future[Any]":
        """Answer the ids and states of all groups."""
        if outage := self._outage():
            return failed(outage)
        names = {*self._cluster.groups, *self._cluster.group_offsets}
        groups = [
            SimpleNamespace(group_id=name, state=_state(self._cluster, name))
            for name in sorted(names)
        ]
        return done(SimpleNamespace(valid=groups, errors=[]))

    def describe_consumer_groups(
        self, names: Iterable[str], **_: object
    ) -> dict[str, "Future[Any]"]:
        """Answer the members of groups; each with partitions has one."""
        outage = self._outage()
        return {
            name: failed(outage) if outage else done(_group(self._cluster, name)) for name in names
        }

    def list_consumer_group_offsets(
        self, requests: Sequence[ConsumerGroupTopicPartitions], **_: object
    ) -> dict[str, "Future[Any]"]:
        """Answer what a group has committed."""
        (request,) = requests
        if outage := self._outage():
            return {request.group_id: failed(outage)}
        offsets = self._cluster.group_offsets.get(request.group_id, {})
        return {
            request.group_id: done(
                ConsumerGroupTopicPartitions(
                    request.group_id,
                    [PartitionOffset(*key, *commit) for key, commit in offsets.items()],
                )
            )
        }

    def alter_consumer_group_offsets(
        self, requests: Sequence[ConsumerGroupTopicPartitions], **_: object
    ) -> dict[str, "Future[Any]"]:
        """Commit for a group without members."""
        (request,) = requests
        outage = self._outage()
        if outage is None and self._cluster.groups.get(request.group_id):
            outage = KafkaException(KafkaError(KafkaError.UNKNOWN_MEMBER_ID))
        if outage is not None:
            return {request.group_id: failed(outage)}
        offsets = self._cluster.group_offsets.setdefault(request.group_id, {})
        for each in request.topic_partitions or ():
            key = TopicPartition(each.topic, each.partition)
            offsets[key] = (each.offset, each.metadata or "")
        return {request.group_id: done(request)}

    def _settings(self, name: str) -> "Future[Any]":
        topic = self._cluster.topics.get(name)
        if topic is None:
            return failed(KafkaException(UNKNOWN_TOPIC))
        return done({key: SimpleNamespace(value=value) for key, value in _values(topic).items()})


def _values(topic: InMemoryTopic) -> dict[str, str]:
    kind = "LogAppendTime" if topic.log_append_time else "CreateTime"
    return {**_DEFAULTS, "message.timestamp.type": kind, **topic.settings}


def _state(cluster: InMemoryCluster, name: str) -> ConsumerGroupState:
    if cluster.groups.get(name):
        return ConsumerGroupState.STABLE
    exists = name in cluster.groups or name in cluster.group_offsets
    return ConsumerGroupState.EMPTY if exists else ConsumerGroupState.DEAD


def _group(cluster: InMemoryCluster, name: str) -> SimpleNamespace:
    assignment = SimpleNamespace(topic_partitions=list(cluster.groups.get(name, ())))
    members = [SimpleNamespace(assignment=assignment)] if assignment.topic_partitions else []
    return SimpleNamespace(state=_state(cluster, name), members=members)


def done(result: object) -> "Future[Any]":
    """Return a future that has a result."""
    future: Future[Any] = Future()
    future.set_result(result)
    return future


def failed(error: KafkaException) -> "Future[Any]":
    """Return a future that has failed."""
    future: Future[Any] = Future()
    future.set_exception(error)
    return future
