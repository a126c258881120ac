"""A Kafka cluster: its id, topics, watermarks and offsets by time; every room above calls it."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, Consumer
from confluent_kafka.admin import AdminClient

from airflow_mm2_offsets.core import TopicPartition, Watermarks
from airflow_mm2_offsets.core.group_offsets import GroupCommit
from airflow_mm2_offsets.errors import ConfigurationError
from airflow_mm2_offsets.kafka.clients import ClientPool, make_admin, make_consumer, walk_to_brokers
from airflow_mm2_offsets.kafka.config import admin_config
from airflow_mm2_offsets.kafka.descriptions import (
    TopicInfo,
    describe_readers,
    describe_settings,
    describe_topics,
    find_unreadable,
    list_group_names,
)
from airflow_mm2_offsets.kafka.group_commits import CommitErrors, commit_group_offsets
from airflow_mm2_offsets.kafka.groups import (
    GroupOffsets,
    StableOffsets,
    count_members,
    read_group_offsets,
    read_stable_offsets,
)
from airflow_mm2_offsets.kafka.network_path import StepResult
from airflow_mm2_offsets.kafka.partition_offsets import read_offsets, read_offsets_at
from airflow_mm2_offsets.kafka.session import ClientSession


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterInfo:
    """The cluster that answered."""

    cluster_id: str | None
    """Kafka's own id of the cluster."""
    brokers: tuple[str, ...]
    """``host:port`` of each broker, as it is advertised."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaCluster:
    """A cluster and how to reach it; several threads may use it at once.

    Every method raises ClusterUnreachableError when no answer came within ``timeout`` or
    authentication failed, and ClusterRefusedError when a broker answered with an error.
    """

    name: str
    """Its name in error messages: ``source``, ``target``."""
    config: Mapping[str, object] = field(repr=False)
    """librdkafka properties, with their secrets."""
    timeout: float = 30.0
    """Seconds to wait for an answer."""
    throttle_ratio: float = 0.0
    """How long a reader of many records sleeps; see ``Throttle``. For processes that also serve."""
    _clients: ClientPool = field(default_factory=ClientPool, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Refuse settings that can't work, before any request.

        Raises:
            ConfigurationError: See ``admin_config``; or ``timeout`` is not above 0.
        """
        admin_config(self.name, self.config)
        if self.timeout <= 0:
            raise ConfigurationError(
                f"timeout is {self.timeout} s; give more than 0", cluster=self.name
            )

    def walk(self) -> Iterator[StepResult]:
        """Yield what each step on the way to the brokers finds: DNS, TCP, and TLS if it is used.

        Raises:
            ClusterUnreachableError: A step fails for all servers; the message says which, and why.
        """
        return walk_to_brokers(self.name, self.config, self.timeout)

    def describe(self) -> ClusterInfo:
        """Return the cluster's id and its brokers."""
        with self._admin() as admin:
            metadata = admin.metadata()
        brokers = sorted(metadata.brokers.items())
        return ClusterInfo(
            cluster_id=metadata.cluster_id,
            brokers=tuple(f"{broker.host}:{broker.port}" for _, broker in brokers),
        )

    def topic_names(self) -> frozenset[str]:
        """Return the names of all topics that the user may see."""
        with self._admin() as admin:
            return frozenset(admin.metadata().topics)

    def topics(self, names: Iterable[str]) -> dict[str, TopicInfo]:
        """Return each topic by its name; one that does not exist is absent."""
        requested = sorted(set(names))
        if not requested:
            return {}
        with self._admin() as admin:
            return describe_topics(admin, requested)

    def unreadable(self, names: Iterable[str]) -> frozenset[str]:
        """Return the topics that the user may not read, or not describe.

        One that does not exist counts as readable, and so do all where the brokers do not tell.
        """
        with self._admin() as admin:
            admin.metadata()
            return find_unreadable(admin, frozenset(names))

    def leaderless(self, partitions: Iterable[TopicPartition]) -> frozenset[TopicPartition]:
        """Return the existing partitions that no known broker leads: they can't be read now.

        A cluster notices some seconds late that a broker has died.
        """
        with self._admin() as admin:
            metadata = admin.metadata()
        topics = metadata.topics
        return frozenset(
            each
            for each in partitions
            if each.topic in topics
            and (info := topics[each.topic].partitions.get(each.partition)) is not None
            and info.leader not in metadata.brokers
        )

    def topic_settings(self, names: Collection[str]) -> dict[str, Mapping[str, str]]:
        """Return the effective settings (``retention.ms``...) of topics that exist, by topic."""
        if not names:
            return {}
        with self._admin() as admin:
            admin.metadata()
            return describe_settings(admin, names)

    def readers(self, topics: Collection[str]) -> dict[str, frozenset[str]]:
        """Return the consumer groups whose members read some of ``topics``, and which of them."""
        with self._admin() as admin:
            admin.metadata()
            return describe_readers(admin, topics)

    def group_names(self) -> frozenset[str]:
        """Return the names of all consumer groups; refuse to name only a part of them."""
        with self._admin() as admin:
            admin.metadata()
            return list_group_names(admin)

    def group_members(self, groups: Collection[str]) -> dict[str, int]:
        """Return how many members each group has; one that does not exist has none."""
        if not groups:
            return {}
        with self._admin() as admin:
            admin.metadata()
            return count_members(admin, groups)

    def group_offsets(self, groups: Collection[str]) -> GroupOffsets:
        """Return what groups have committed; a group without a commit is absent."""
        if not groups:
            return {}
        with self._admin() as admin:
            admin.metadata()
            return read_group_offsets(admin, groups)

    def stable_group_offsets(
        self, partitions: Mapping[str, Collection[TopicPartition]]
    ) -> StableOffsets:
        """Return what groups have committed; see ``groups.read_stable_offsets``."""
        if not any(partitions.values()):
            return StableOffsets(offsets={}, pending=frozenset())
        with self._admin() as admin:
            admin.metadata()
            return read_stable_offsets(admin, partitions)

    def commit_group_offsets(
        self, offsets: Mapping[str, Mapping[TopicPartition, GroupCommit]]
    ) -> CommitErrors:
        """Commit for groups without members; see ``group_commits.commit_group_offsets``."""
        if not offsets:
            return {}
        with self._admin() as admin:
            admin.metadata()
            return commit_group_offsets(admin, offsets)

    def watermarks(
        self, partitions: Iterable[TopicPartition], *, isolation: str = "read_uncommitted"
    ) -> dict[TopicPartition, Watermarks]:
        """Return the low and high offset of each partition, all by few requests.

        Args:
            partitions: Topics and partitions.
            isolation: ``read_uncommitted``: high is the log's end; ``read_committed``: it is the
                last stable offset, where the first open transaction begins.

        Raises:
            TopicNotFoundError: A topic or a partition does not exist.
        """
        requested = sorted(set(partitions))
        if not requested:
            return {}
        with self._consumer(isolation) as consumer:
            # Without a connection it would wait silently, whatever librdkafka reports meanwhile.
            consumer.metadata()
            low = read_offsets(consumer, requested, OFFSET_BEGINNING)
            high = read_offsets(consumer, requested, OFFSET_END)
        return {each: Watermarks(low=low[each], high=high[each]) for each in requested}

    def offsets_at(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Return the offset of each partition's first record at or after a time.

        Args:
            times: Milliseconds since 1970 for each (topic, partition).

        Returns:
            The offsets; a partition whose records are all older is absent.

        Raises:
            TopicNotFoundError: A topic or a partition does not exist.
        """
        if not times:
            return {}
        with self._admin() as admin:
            # This connects. A request without a connection sometimes waits for 3 s in librdkafka.
            admin.metadata()
            return read_offsets_at(admin, times)

    def _admin(self) -> AbstractContextManager[ClientSession[AdminClient]]:
        make = partial(make_admin, self.name, self.config, self.timeout)
        return self._clients.acquire("admin", make)

    def _consumer(self, isolation: str) -> AbstractContextManager[ClientSession[Consumer]]:
        make = partial(make_consumer, self.name, self.config, self.timeout, isolation)
        return self._clients.acquire(isolation, make)
