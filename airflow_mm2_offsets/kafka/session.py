"""A client with a deadline that reports librdkafka's last error; see ``kafka.clients``."""

import logging
import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future, wait
from typing import TYPE_CHECKING, Any, Generic, TypeVar, Unpack

from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from airflow_mm2_offsets.core.acls import Operation
from airflow_mm2_offsets.errors import (
    ClusterRefusedError,
    ClusterUnreachableError,
    ConfigurationError,
    ErrorFields,
    Mm2OffsetsError,
    TopicNotFoundError,
)
from airflow_mm2_offsets.kafka.acls import describe_missing, missing_acl
from airflow_mm2_offsets.kafka.config import BOOTSTRAP_SERVERS, Setting
from airflow_mm2_offsets.kafka.explain import explain

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


class ClientSession(Generic[ClientT]):
    """A client, its deadline, and the last error that librdkafka reported."""

    def __init__(
        self,
        cluster: str,
        timeout: float,
        config: Mapping[str, Setting],
        make: Callable[..., ClientT],
    ) -> None:
        """Start a client; nothing is sent yet.

        Args:
            cluster: The cluster's name in error messages.
            timeout: Seconds until an answer must have arrived.
            config: librdkafka properties.
            make: The client's class.

        Raises:
            ConfigurationError: librdkafka rejects the configuration.
        """
        self._cluster: ErrorFields = {"cluster": cluster, "servers": str(config[BOOTSTRAP_SERVERS])}
        self._timeout = timeout
        self._started = time.monotonic()
        self._config = config
        self._last_error = _LastError()
        self._logger = _DebugLogger()
        settings: dict[str, Any] = {**config, "error_cb": self._last_error.record}
        try:
            self.client: ClientT = make(settings, logger=self._logger)
        except KafkaException as error:
            raise _misconfigured(cluster, config, error.args[0].str()) from error

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
        # One long try would hide the errors that librdkafka reports meanwhile. Short tries, each
        # twice as long as the last, end early on a wrong password, and wait for a slow cluster.
        try_seconds = 0.1
        while True:
            try:
                metadata: ClusterMetadata = self.client.list_topics(
                    topic, timeout=min(try_seconds, self.remaining)
                )
            except KafkaException as error:
                self._run_callbacks()
                if error.args[0].code() not in _NO_ANSWER or self.is_over:
                    raise self.failure(error.args[0]) from error
                try_seconds *= 2
            else:
                return metadata

    def wait_all(self, futures: Collection[Future[Any]]) -> None:
        """Wait until each future has a result or an error.

        Raises:
            ClusterUnreachableError: Some had neither in time, or authentication failed.
        """
        pending = set(futures)
        while pending:
            pending = wait(pending, timeout=0.1).not_done
            self._run_callbacks()
            if pending and self.is_over:
                raise self.unreachable()

    def check(self) -> None:
        """Raise an error that does not go away with time.

        Raises:
            ClusterUnreachableError: Authentication failed.
        """
        if self._last_error.authentication_failed:
            raise self.unreachable()

    def reset_deadline(self) -> None:
        """Start the time again: an answer came, or another request begins."""
        self._started = time.monotonic()
        self._last_error.error = None

    def failure(
        self,
        error: KafkaError,
        *,
        operation: Operation = Operation.DESCRIBE,
        group: str | None = None,
        **subject: Unpack[ErrorFields],
    ) -> Mm2OffsetsError:
        """Return the error to raise for what a broker, or librdkafka, reported.

        Args:
            error: The report.
            operation: What the request must be allowed to do.
            group: The consumer group that it is about, if any.
            subject: The topic and the partition that it is about, if any.
        """
        if error.code() in _NO_ANSWER:
            self._last_error.error = self._last_error.error or error
            return self.unreachable()
        fields: ErrorFields = {**self._cluster, **subject}
        if error.code() in _NOT_FOUND:
            problem = f"does not exist: {error.str()}; check the name and that it is this cluster"
            return TopicNotFoundError(problem, **fields)
        acl = missing_acl(error.code(), operation, group or subject.get("topic"))
        step = describe_missing(acl, self._config) if acl else "see the broker's log for the reason"
        return ClusterRefusedError(f"refused: {error.str()}; {step}", **fields)

    def unreachable(self) -> ClusterUnreachableError:
        """Return the error that names the brokers, how long they were tried, and the reason."""
        error = self._last_error.error
        report = error.str() if error else ""
        if error is None or error.code() == _ALL_BROKERS_DOWN:
            # librdkafka only logs that a broker closed a connection before it answered anything.
            report = self._logger.last_failure or report
        advice = explain(report, self._config)
        reason = f"{advice.cause} ({report})" if advice.cause and report else advice.cause or report
        failed = self._last_error.authentication_failed
        problem = "authentication failed" if failed else "did not answer"
        unreachable = ClusterUnreachableError(
            f"{problem}, tried for {time.monotonic() - self._started:.1f} s: "
            f"{reason or 'librdkafka gave no reason'}; {advice.step}",
            **self._cluster,
        )
        if advice.settings:
            unreachable.fields["setting"] = advice.settings[0]  # the message names them all
        return unreachable

    def _run_callbacks(self) -> None:
        # An idle client has no partition assigned, so poll returns no record.
        self.client.poll(0)
        self.check()


class _LastError:
    """The last error that librdkafka reported.

    It does not refer to the session: a reference cycle would keep the client, its threads and its
    sockets alive until the garbage collector runs.
    """

    def __init__(self) -> None:
        self.error: KafkaError | None = None

    @property
    def authentication_failed(self) -> bool:
        return self.error is not None and self.error.code() == _AUTHENTICATION

    def record(self, error: KafkaError) -> None:
        # "All brokers are down" follows the reason, and must not hide it.
        if error.code() != _ALL_BROKERS_DOWN or self.error is None:
            self.error = error


class _DebugLogger:
    """Logs librdkafka's messages at DEBUG: twenty equal lines a second while a broker is down.

    The error that is raised names the reason.
    """

    def __init__(self) -> None:
        self.last_failure = ""
        """The last broken connection, as librdkafka describes it."""

    def log(self, _level: int, message: str, *args: object) -> None:
        log.debug(message, *args)
        text = message % args
        if text.startswith("FAIL "):
            self.last_failure = text.partition("]: ")[2]


def _misconfigured(cluster: str, config: Mapping[str, Setting], report: str) -> ConfigurationError:
    advice = explain(report, config)
    problem = f"{report}; correct the extra of its kafka connection"
    if advice.cause:
        problem = f"{advice.cause} ({report}); {advice.step}"
    error = ConfigurationError(problem, cluster=cluster)
    if advice.settings:
        error.fields["setting"] = advice.settings[0]
    return error
