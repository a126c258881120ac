"""Describes the topics and consumer groups of a cluster in memory; ``clients`` calls it."""

from abc import abstractmethod
from collections.abc import Iterable
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

from confluent_kafka import ConsumerGroupState, KafkaError, KafkaException
from confluent_kafka.admin import AclOperation, ConfigResource  # type: ignore[attr-defined]

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
        groups = [
            SimpleNamespace(
                group_id=name,
                state=ConsumerGroupState.STABLE if partitions else ConsumerGroupState.EMPTY,
            )
            for name, partitions in self._cluster.groups.items()
        ]
        return done(SimpleNamespace(valid=groups, errors=[]))

    def describe_consumer_groups(
        self, names: Iterable[str], **_: object
    ) -> dict[str, "Future[Any]"]:
        """Answer the members of groups; each has one."""
        return {name: done(_group(self._cluster, name)) for name in names}

    def _settings(self, name: str) -> "Future[Any]":
        topic = self._cluster.topics.get(name)
        if topic is None:
            return failed(KafkaException(UNKNOWN_TOPIC))
        return done({key: SimpleNamespace(value=value) for key, value in _values(topic).items()})


def _values(topic: InMemoryTopic) -> dict[str, str]:
    kind = "LogAppendTime" if topic.log_append_time else "CreateTime"
    return {**_DEFAULTS, "message.timestamp.type": kind, **topic.settings}


def _group(cluster: InMemoryCluster, name: str) -> SimpleNamespace:
    assignment = SimpleNamespace(topic_partitions=list(cluster.groups[name]))
    return SimpleNamespace(members=[SimpleNamespace(assignment=assignment)])


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
