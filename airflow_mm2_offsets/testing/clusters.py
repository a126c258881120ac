"""A Kafka cluster in memory: its topics, and the methods by which a test changes them."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import count
from weakref import WeakValueDictionary

from airflow_mm2_offsets.core import TopicPartition, Watermarks
from airflow_mm2_offsets.errors import TopicNotFoundError
from airflow_mm2_offsets.kafka.cluster import KafkaCluster
from airflow_mm2_offsets.testing.logs import FIRST_TIMESTAMP, PartitionLog, Record, SourceLog

_numbers = count(1)
_clusters: WeakValueDictionary[str, "InMemoryCluster"] = WeakValueDictionary()
"""By bootstrap.servers, so that a client finds its cluster."""


@dataclass(slots=True, kw_only=True)
class InMemoryTopic:
    """A topic of a cluster in memory."""

    topic_id: str
    partitions: Sequence[PartitionLog]
    log_append_time: bool = False
    """``message.timestamp.type`` is LogAppendTime."""
    replicas: int = 3
    """The replicas that each partition is said to have."""
    settings: dict[str, str] = field(default_factory=dict)
    """``retention.ms`` and the like; a topic in memory deletes nothing by itself."""


@dataclass(slots=True, kw_only=True, weakref_slot=True, eq=False)
class InMemoryCluster:
    """A Kafka cluster in memory; a client sees each change in its next answer."""

    cluster_id: str = field(default_factory=lambda: f"in-memory-{next(_numbers)}")
    log_type: Callable[[], PartitionLog] = field(default=SourceLog, repr=False)
    """Makes a partition's log."""
    topics: dict[str, InMemoryTopic] = field(default_factory=dict, repr=False)
    groups: dict[str, Collection[TopicPartition]] = field(default_factory=dict)
    """The partitions that the members of each consumer group are assigned."""
    group_offsets: dict[str, dict[TopicPartition, tuple[int, str]]] = field(default_factory=dict)
    """What each consumer group has committed: the next offset to read, and the metadata."""
    before_answer: Callable[[], None] = field(default=lambda: None, repr=False)
    """Called before each answer, so that a test can change the cluster while it is read."""
    is_running: bool = True
    """Set to False for an outage: after its timeout a client raises ClusterUnreachableError."""
    leaderless: set[tuple[str, int]] = field(default_factory=set, repr=False)
    """The partitions whose broker is gone while others answer: nothing can be read of them."""
    bootstrap_servers: str = field(init=False)

    def __post_init__(self) -> None:
        """Take an address that only ``in_memory_clients`` resolves."""
        self.bootstrap_servers = f"in-memory-{next(_numbers)}:9092"
        _clusters[self.bootstrap_servers] = self

    def cluster(self, name: str, *, timeout: float = 5.0) -> KafkaCluster:
        """Return the cluster as the package reads it.

        Args:
            name: What messages call it: ``source``, ``target``.
            timeout: Seconds until an answer must be there.
        """
        config = {"bootstrap.servers": self.bootstrap_servers}
        return KafkaCluster(name=name, config=config, timeout=timeout)

    def create_topic(self, topic: str, *, partitions: int = 1) -> None:
        """Create a topic, or add partitions to an existing one."""
        if topic not in self.topics:
            self.topics[topic] = InMemoryTopic(topic_id=f"topic-{next(_numbers)}", partitions=[])
        logs = self.topics[topic].partitions
        missing = partitions - len(logs)
        self.topics[topic].partitions = [*logs, *(self.log_type() for _ in range(missing))]

    def delete_topic(self, topic: str) -> None:
        """Delete a topic; created again, it has another topic id.

        Raises:
            TopicNotFoundError: It does not exist.
        """
        if self.topics.pop(topic, None) is None:
            raise self._not_found(f"topic {topic}")

    def produce(self, topic: str, partition: int, records: Iterable[bytes | Record]) -> int:
        """Append records; the topic and the partition are created where they are missing.

        Args:
            topic: Its name.
            partition: Its number.
            records: ``bytes`` are a value without key; its timestamp rises with its offset.

        Returns:
            The partition's end offset.
        """
        self.create_topic(topic, partitions=partition + 1)
        log = self.log(topic, partition)
        for record in records:
            if isinstance(record, bytes):
                log.write(Record(None, record, FIRST_TIMESTAMP + log.high))
            else:
                log.write(record)
        return log.high

    def skip_offsets(self, topic: str, partition: int, offsets: int) -> None:
        """Add offsets without a record, such as transaction markers."""
        self.log(topic, partition).skip(offsets)

    def delete_records(self, topic: str, partition: int, before: int) -> None:
        """Delete the records below an offset, as retention does."""
        self.log(topic, partition).delete_before(before)

    def watermarks(self, topic: str, partition: int) -> Watermarks:
        """Return a partition's low and high offset.

        Raises:
            TopicNotFoundError: The topic or the partition does not exist.
        """
        log = self.log(topic, partition)
        return Watermarks(low=log.low, high=log.high)

    def records(self, topic: str, partition: int) -> dict[int, Record]:
        """Return a partition's records by offset.

        Raises:
            TopicNotFoundError: The topic or the partition does not exist.
        """
        return dict(self.log(topic, partition).committed_records(0))

    def log(self, topic: str, partition: int) -> PartitionLog:
        """Return a partition's log.

        Raises:
            TopicNotFoundError: The topic or the partition does not exist.
        """
        existing = self.topics.get(topic)
        if existing is None or not 0 <= partition < len(existing.partitions):
            raise self._not_found(f"topic-partition {TopicPartition(topic, partition)}")
        return existing.partitions[partition]

    def _not_found(self, what: str) -> TopicNotFoundError:
        return TopicNotFoundError(
            f"the in-memory cluster {self.cluster_id} has no {what}; create it with create_topic "
            "or produce"
        )


def find_cluster(bootstrap_servers: object) -> InMemoryCluster | None:
    """Return the cluster in memory with this address; None for every other address."""
    return _clusters.get(str(bootstrap_servers))
