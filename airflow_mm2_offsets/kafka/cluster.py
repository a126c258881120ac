"""A Kafka cluster, and the questions that a translation has for it."""

from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from confluent_kafka import IsolationLevel, KafkaException, TopicCollection, TopicPartition, Uuid
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

from airflow_mm2_offsets.core import Watermarks
from airflow_mm2_offsets.errors import ConfigurationError
from airflow_mm2_offsets.kafka.config import admin_config
from airflow_mm2_offsets.kafka.session import NOT_FOUND, Session, open_admin

if TYPE_CHECKING:
    from confluent_kafka.admin._topic import TopicDescription

_EARLIEST: OffsetSpec = OffsetSpec.earliest()  # type: ignore[no-untyped-call]
_LATEST: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]
_NO_TOPIC_ID = str(Uuid(0, 0))
_URL_SAFE = str.maketrans("+/", "-_")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterInfo:
    """Who answered."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaCluster:
    """A cluster and how to reach it; each question opens its own connection.

    Every method raises ClusterUnreachableError when no answer came within ``timeout`` or
    authentication failed, and ClusterRefusedError when a broker answered with an error.
    """

    name: str
    """What messages call it: ``source``, ``target``."""
    config: Mapping[str, object] = field(repr=False)
    """librdkafka properties, with their secrets."""
    timeout: float = 30.0
    """Seconds until an answer must be there."""
    rest: float = 0.0
    """How long a reader of many records rests, see ``Pace``: for processes that also answer."""

    def __post_init__(self) -> None:
        """Refuse what cannot work before anything is asked.

        Raises:
            ConfigurationError: See ``admin_config``; or ``timeout`` is not above 0.
        """
        admin_config(self.name, self.config)
        if self.timeout <= 0:
            raise ConfigurationError(f"{self.name}: timeout is {self.timeout} s; give more than 0")

    def describe(self) -> ClusterInfo:
        """Return the cluster's id and its brokers."""
        metadata = self._admin().metadata()
        brokers = sorted(metadata.brokers.items())
        return ClusterInfo(
            cluster_id=metadata.cluster_id,
            brokers=tuple(f"{broker.host}:{broker.port}" for _, broker in brokers),
        )

    def topic_names(self) -> frozenset[str]:
        """Return the names of all topics that the user may see."""
        return frozenset(self._admin().metadata().topics)

    def topics(self, names: Iterable[str]) -> dict[str, TopicInfo]:
        """Return what is known of each topic; one that does not exist is absent."""
        wanted = sorted(set(names))
        if not wanted:
            return {}
        admin = self._admin()
        futures = admin.client.describe_topics(
            TopicCollection(wanted), request_timeout=admin.remaining
        )
        admin.settle(futures.values())
        found: dict[str, TopicInfo] = {}
        for name, future in futures.items():
            try:
                found[name] = _topic_info(future.result())
            except KafkaException as error:
                if error.args[0].code() not in NOT_FOUND:
                    raise admin.failure(error.args[0], f"topic {name}") from error
        return found

    def watermarks(
        self, partitions: Iterable[tuple[str, int]], *, isolation: str = "read_uncommitted"
    ) -> dict[tuple[str, int], Watermarks]:
        """Return the first offset and the end of each (topic, partition), asked for in bulk.

        Args:
            partitions: Topics and partitions.
            isolation: ``read_uncommitted``: the end is the log's; ``read_committed``: it is the
                last stable offset, where the first transaction that is still open begins.

        Raises:
            TopicNotFoundError: A topic or a partition does not exist.
        """
        wanted = sorted(set(partitions))
        if not wanted:
            return {}
        admin = self._admin()
        # Asked before it has a connection, librdkafka now and then tries again after 3 s only.
        admin.metadata()
        low = _list_offsets(admin, dict.fromkeys(wanted, _EARLIEST), isolation)
        high = _list_offsets(admin, dict.fromkeys(wanted, _LATEST), isolation)
        admin.settle([*low.values(), *high.values()])
        return {
            place: Watermarks(
                low=_offset(admin, place, low[place]), high=_offset(admin, place, high[place])
            )
            for place in wanted
        }

    def offsets_at(self, times: Mapping[tuple[str, int], int]) -> dict[tuple[str, int], int]:
        """Return the offset of the first record of each partition that is as young as a time.

        Args:
            times: Milliseconds since 1970 for each (topic, partition).

        Returns:
            The offsets; a partition whose records are all older is absent.

        Raises:
            TopicNotFoundError: A topic or a partition does not exist.
        """
        if not times:
            return {}
        admin = self._admin()
        admin.metadata()
        specs = {place: OffsetSpec.for_timestamp(time) for place, time in times.items()}
        found = _list_offsets(admin, specs, "read_uncommitted")
        admin.settle(found.values())
        offsets = {place: _offset(admin, place, future) for place, future in found.items()}
        return {place: offset for place, offset in offsets.items() if offset >= 0}

    def _admin(self) -> Session[AdminClient]:
        return open_admin(self.name, self.config, self.timeout)


def _topic_info(description: "TopicDescription") -> TopicInfo:
    topic_id = str(description.topic_id)
    return TopicInfo(
        name=description.name,
        partitions=len(description.partitions),
        # As Kafka writes it (org.apache.kafka.common.Uuid): fit for the name of a file.
        topic_id=None if topic_id == _NO_TOPIC_ID else topic_id.translate(_URL_SAFE),
    )


def _list_offsets(
    admin: Session[AdminClient], specs: Mapping[tuple[str, int], OffsetSpec], isolation: str
) -> dict[tuple[str, int], Future[Any]]:
    futures = admin.client.list_offsets(
        {TopicPartition(*place): spec for place, spec in specs.items()},
        isolation_level=IsolationLevel[isolation.upper()],
        request_timeout=admin.remaining,
    )
    return {(key.topic, key.partition): future for key, future in futures.items()}


def _offset(admin: Session[AdminClient], place: tuple[str, int], future: Future[Any]) -> int:
    try:
        return int(future.result().offset)
    except KafkaException as error:
        topic, partition = place
        raise admin.failure(error.args[0], f"topic {topic} partition {partition}") from error
