"""One conversation with a cluster: it ends in time, and says what librdkafka only mutters."""

import logging
import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future, wait
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
from airflow_mm2_offsets.kafka.config import BOOTSTRAP_SERVERS, Setting

if TYPE_CHECKING:
    from confluent_kafka.admin._metadata import ClusterMetadata

log = logging.getLogger(__name__)

ClientT = TypeVar("ClientT", AdminClient, Consumer)

_NOT_FOUND = frozenset(
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
        self._heard = _Heard()
        settings: dict[str, Any] = {**config, "error_cb": self._heard.hear}
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
        if self._heard.authentication_failed:
            raise self.unreachable()

    def touch(self) -> None:
        """Note that an answer came, or that another question comes: the time starts anew."""
        self._started = time.monotonic()
        self._heard.complaint = None

    def failure(self, error: KafkaError, what: str) -> Mm2OffsetsError:
        """Return the error to raise for what a broker, or librdkafka, said about ``what``."""
        if error.code() in _NO_ANSWER:
            self._heard.complaint = self._heard.complaint or error
            return self.unreachable()
        if error.code() in _NOT_FOUND:
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
        complaint = self._heard.complaint
        reason = complaint.str() if complaint else "librdkafka gave no reason"
        if self._heard.authentication_failed:
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


class _Heard:
    """What librdkafka complained about last.

    It knows no session: a client that knows what knows the client would live on, with its threads
    and connections, until Python looks for such cycles.
    """

    def __init__(self) -> None:
        self.complaint: KafkaError | None = None

    @property
    def authentication_failed(self) -> bool:
        return self.complaint is not None and self.complaint.code() == _AUTHENTICATION

    def hear(self, error: KafkaError) -> None:
        # "All brokers are down" follows the reason, and must not hide it.
        if error.code() != _ALL_BROKERS_DOWN or self.complaint is None:
            self.complaint = error


class _ToDebug:
    """Takes librdkafka's log: twenty equal lines a second while a broker is down.

    What matters of them reaches the user in the error that is raised.
    """

    def log(self, _level: int, message: str, *args: object) -> None:
        log.debug(message, *args)
