"""One conversation with a cluster: it ends in time, and says what librdkafka only mutters."""

import logging
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import Future, wait
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from airflow_mm2_offsets.errors import (
    ClusterRefusedError,
    ClusterUnreachableError,
    ConfigurationError,
    Mm2OffsetsError,
    TopicNotFoundError,
)
from airflow_mm2_offsets.kafka.config import (
    BOOTSTRAP_SERVERS,
    Setting,
    admin_config,
    consumer_config,
)

if TYPE_CHECKING:
    from confluent_kafka.admin._metadata import ClusterMetadata

log = logging.getLogger(__name__)

ClientT = TypeVar("ClientT", AdminClient, Consumer)

NOT_FOUND = frozenset(
    {
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError._UNKNOWN_TOPIC,  # noqa: SLF001 - how the library names its local errors
        KafkaError._UNKNOWN_PARTITION,  # noqa: SLF001
        KafkaError._NOENT,  # noqa: SLF001
    }
)
_AUTHENTICATION = KafkaError._AUTHENTICATION  # noqa: SLF001
_ALL_BROKERS_DOWN = KafkaError._ALL_BROKERS_DOWN  # noqa: SLF001
_NO_ANSWER = frozenset(
    {
        KafkaError._TRANSPORT,  # noqa: SLF001
        KafkaError._TIMED_OUT,  # noqa: SLF001
        KafkaError.REQUEST_TIMED_OUT,
        _ALL_BROKERS_DOWN,
        _AUTHENTICATION,
    }
)


class Session(Generic[ClientT]):
    """A client, the time it is given, and the last thing it complained about."""

    def __init__(
        self,
        cluster: str,
        timeout: float,
        config: Mapping[str, Setting],
        make: Callable[..., ClientT],
    ) -> None:
        """Start a client; nothing is sent yet.

        Args:
            cluster: What the cluster is called in messages.
            timeout: Seconds until an answer must be there.
            config: librdkafka properties.
            make: The client's class.

        Raises:
            ConfigurationError: librdkafka does not take the configuration.
        """
        self._cluster = cluster
        self._servers = config[BOOTSTRAP_SERVERS]
        self._timeout = timeout
        self._started = time.monotonic()
        self._complaint: KafkaError | None = None
        settings: dict[str, Any] = {**config, "error_cb": self._on_error}
        try:
            self.client: ClientT = make(settings, logger=_ToDebug())
        except KafkaException as error:
            raise ConfigurationError(
                f"{cluster}: {error.args[0].str()}; correct the extra of its kafka connection"
            ) from error

    @property
    def remaining(self) -> float:
        """Seconds left, never less than what one last try needs."""
        return max(self._started + self._timeout - time.monotonic(), 0.1)

    @property
    def is_over(self) -> bool:
        """Whether the time is up."""
        return time.monotonic() >= self._started + self._timeout

    def metadata(self, topic: str | None = None) -> "ClusterMetadata":
        """Return the metadata of the cluster, of one topic or of all.

        An admin client that asks for one topic may create it: ask for one with a consumer only.

        Raises:
            ClusterUnreachableError: No broker answered in time, or authentication failed.
            ClusterRefusedError: A broker answered with an error.
        """
        # One long try would hide what librdkafka learns meanwhile; short ones, each twice as
        # long as the last, end early on a wrong password and still wait for a slow cluster.
        patience = 0.1
        while True:
            try:
                metadata: ClusterMetadata = self.client.list_topics(
                    topic, timeout=min(patience, self.remaining)
                )
            except KafkaException as error:
                self._listen()
                if error.args[0].code() not in _NO_ANSWER or self.is_over:
                    raise self.failure(error.args[0], "the list of topics") from error
                patience *= 2
            else:
                return metadata

    def settle(self, futures: Collection[Future[Any]]) -> None:
        """Wait until each future has a result or an error.

        Raises:
            ClusterUnreachableError: Some had neither in time, or authentication failed.
        """
        pending = set(futures)
        while pending:
            pending = wait(pending, timeout=0.1).not_done
            self._listen()
            if pending and self.is_over:
                raise self.unreachable()

    def check(self) -> None:
        """Give up where no waiting helps.

        Raises:
            ClusterUnreachableError: Authentication failed.
        """
        if self._complaint is not None and self._complaint.code() == _AUTHENTICATION:
            raise self.unreachable()

    def touch(self) -> None:
        """Note that an answer came: the time starts anew."""
        self._started = time.monotonic()
        self._complaint = None

    def failure(self, error: KafkaError, what: str) -> Mm2OffsetsError:
        """Return the error to raise for what a broker, or librdkafka, said about ``what``."""
        if error.code() in _NO_ANSWER:
            self._complaint = self._complaint or error
            return self.unreachable()
        if error.code() in NOT_FOUND:
            return TopicNotFoundError(
                f"{self._cluster} ({self._servers}) has no {what}: {error.str()}; check the name "
                "and that it is this cluster"
            )
        return ClusterRefusedError(
            f"{self._cluster} ({self._servers}) refused {what}: {error.str()}; check the rights "
            "of the connection's user"
        )

    def unreachable(self) -> ClusterUnreachableError:
        """Return the error that says who was asked, for how long, and what came of it."""
        reason = self._complaint.str() if self._complaint else "librdkafka gave no reason"
        if self._complaint is not None and self._complaint.code() == _AUTHENTICATION:
            problem = "authentication failed"
            step = "check user, password, mechanism and security.protocol of its kafka connection"
        else:
            problem = "did not answer"
            step = "check that the brokers run, the address, and security.protocol"
        return ClusterUnreachableError(
            f"{self._cluster} ({BOOTSTRAP_SERVERS}={self._servers}): {problem}, tried for "
            f"{time.monotonic() - self._started:.1f} s: {reason}; {step}"
        )

    def _listen(self) -> None:
        # Runs the callbacks; an idle client, which has nothing assigned, gets no record by it.
        self.client.poll(0)
        self.check()

    def _on_error(self, error: KafkaError) -> None:
        # "All brokers are down" follows the reason, and must not hide it.
        if error.code() != _ALL_BROKERS_DOWN or self._complaint is None:
            self._complaint = error


class _ToDebug:
    """Takes librdkafka's log: twenty equal lines a second while a broker is down.

    What matters of them reaches the user in the error that is raised.
    """

    def log(self, _level: int, message: str, *args: object) -> None:
        log.debug(message, *args)


def open_admin(cluster: str, extra: Mapping[str, object], timeout: float) -> Session[AdminClient]:
    """Start a session with an admin client; see ``Session`` for arguments and errors."""
    return Session(cluster, timeout, admin_config(cluster, extra), AdminClient)


@contextmanager
def open_consumer(
    cluster: str, extra: Mapping[str, object], timeout: float, isolation: str, *, prefetch: int
) -> Iterator[Session[Consumer]]:
    """Start a session with a read-only consumer, and close it; see ``consumer_config``."""
    config = consumer_config(cluster, extra, isolation, prefetch=prefetch)
    session = Session(cluster, timeout, config, Consumer)
    with closing(session.client):
        yield session
