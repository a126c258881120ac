"""A Kafka cluster: its id, topics, watermarks and offsets by time; every room above calls it."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    Consumer,
    KafkaException,
    TopicCollection,
    Uuid,
)
from confluent_kafka import TopicPartition as PartitionOffset
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

from airflow_mm2_offsets.core import TopicPartition, Watermarks
from airflow_mm2_offsets.errors import ConfigurationError, ErrorFields, TopicNotFoundError
from airflow_mm2_offsets.kafka.clients import ClientPool, make_admin, make_consumer, walk_to_brokers
from airflow_mm2_offsets.kafka.config import admin_config
from airflow_mm2_offsets.kafka.descriptions import (
    describe_readers,
    describe_settings,
    find_unreadable,
)
from airflow_mm2_offsets.kafka.network_path import StepResult
from airflow_mm2_offsets.kafka.partition_offsets import read_offsets
from airflow_mm2_offsets.kafka.session import ClientSession

if TYPE_CHECKING:
    from concurrent.futures import Future

    from confluent_kafka.admin._topic import TopicDescription

_NO_TOPIC_ID = str(Uuid(0, 0))
_URL_SAFE = str.maketrans("+/", "-_")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterInfo:
    """The cluster that answered."""

    cluster_id: str | None
    """Kafka's own id of the cluster."""
    brokers: tuple[str, ...]
    """``host:port`` of each broker, as it is advertised."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicInfo:
    """A topic that exists."""

    name: str
    partitions: int
    topic_id: str | None
    """Changes when a topic is deleted and created again (KIP-516); None before Kafka 2.8."""
    replicas: int | None = None
    """Of the partition that has the fewest."""


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
            futures = admin.client.describe_topics(
                TopicCollection(requested), request_timeout=admin.remaining
            )
            admin.wait_all(futures.values())
            infos = {name: _topic_info(admin, name, each) for name, each in futures.items()}
        return {name: info for name, info in infos.items() if info is not None}

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
        specs = {
            PartitionOffset(*each): OffsetSpec.for_timestamp(time) for each, time in times.items()
        }
        with self._admin() as admin:
            # This connects. A request without a connection sometimes waits for 3 s in librdkafka.
            admin.metadata()
            futures = admin.client.list_offsets(specs, request_timeout=admin.remaining)
            admin.wait_all(futures.values())
            offsets = {
                TopicPartition(each.topic, each.partition): _result(
                    admin, future, _subject(each)
                ).offset
                for each, future in futures.items()
            }
        # Kafka answers -1 if all records are older.
        return {each: offset for each, offset in offsets.items() if offset >= 0}

    def _admin(self) -> AbstractContextManager[ClientSession[AdminClient]]:
        make = partial(make_admin, self.name, self.config, self.timeout)
        return self._clients.acquire("admin", make)

    def _consumer(self, isolation: str) -> AbstractContextManager[ClientSession[Consumer]]:
        make = partial(make_consumer, self.name, self.config, self.timeout, isolation)
        return self._clients.acquire(isolation, make)


def _topic_info(
    admin: ClientSession[AdminClient], name: str, future: "Future[TopicDescription]"
) -> TopicInfo | None:
    """Return the topic; None if it does not exist."""
    try:
        description: TopicDescription = _result(admin, future, {"topic": name})
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


def _result(admin: ClientSession[AdminClient], future: "Future[Any]", subject: ErrorFields) -> Any:  # noqa: ANN401 - as the client types it
    try:
        return future.result()
    except KafkaException as error:
        raise admin.failure(error.args[0], **subject) from error


def _subject(partition: PartitionOffset) -> ErrorFields:
    return {"topic": partition.topic, "partition": partition.partition}
