"""A client with a deadline that reports librdkafka's last error; see ``kafka.clients``."""

import math
import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future, wait
from typing import TYPE_CHECKING, Any, Generic, TypeVar, Unpack

from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from airflow_mm2_offsets.core.acls import Operation
from airflow_mm2_offsets.errors import (
    ClusterUnreachableError,
    ConfigurationError,
    ErrorFields,
    Mm2OffsetsError,
)
from airflow_mm2_offsets.kafka.config import Setting
from airflow_mm2_offsets.kafka.error_codes import NO_ANSWER, is_unanswered
from airflow_mm2_offsets.kafka.redaction import Redactor
from airflow_mm2_offsets.kafka.reported_errors import ReportedErrors
from airflow_mm2_offsets.kafka.reports import ALL_BROKERS_DOWN, DebugLogger, LastError

if TYPE_CHECKING:
    from confluent_kafka.admin._metadata import ClusterMetadata

ClientT = TypeVar("ClientT", AdminClient, Consumer)
KeyT = TypeVar("KeyT")
ResultT = TypeVar("ResultT")

ASK_AGAIN = 0.1
"""Seconds until a request is sent again."""


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
        self._timeout = timeout
        self._started = time.monotonic()
        self._last_error = LastError()
        redactor = Redactor(config)
        self._errors = ReportedErrors(cluster, config, redactor)
        self._logger = DebugLogger(redactor)
        settings: dict[str, Any] = {**config, "error_cb": self._last_error.record}
        try:
            self.client: ClientT = make(settings, logger=self._logger)
        except KafkaException as error:
            # librdkafka's own words may quote a value: no chain.
            raise self._errors.misconfigured(error.args[0].str()) from None
        except TypeError as error:  # a text in the place of a callback
            raise ConfigurationError(
                f"{error}; only Airflow's connections may name callbacks, and its administrator "
                f"allows them",
                cluster=cluster,
            ) from None

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
                self.run_callbacks()
                if error.args[0].code() not in NO_ANSWER or self.is_over:
                    raise self.failure(error.args[0]) from error
                try_seconds *= 2
            else:
                return metadata

    def ask(
        self,
        send: Callable[..., Mapping[KeyT, Future[ResultT]]],
        *,
        patience: float = math.inf,
    ) -> Mapping[KeyT, Future[ResultT]]:
        """Send a request, again while no broker can answer it; return its futures, all done.

        Args:
            send: A method of the admin client; it is given its ``request_timeout`` in seconds.
            patience: Seconds after which it is not sent again, though time is left.

        Raises:
            ClusterUnreachableError: No answer came in time, or authentication failed.
        """
        patient_until = time.monotonic() + patience
        while True:
            futures = send(request_timeout=min(self.remaining, patience))
            self._wait_all(futures.values())
            is_last = self.is_over or time.monotonic() >= patient_until
            if is_last or not any(is_unanswered(each) for each in futures.values()):
                return futures
            time.sleep(ASK_AGAIN)

    def _wait_all(self, futures: Collection[Future[Any]]) -> None:
        pending = set(futures)
        while pending:
            pending = wait(pending, timeout=0.1).not_done
            self.run_callbacks()
            if pending and self.is_over:
                raise self.unreachable()

    def result(
        self,
        future: Future[ResultT],
        *,
        operation: Operation = Operation.DESCRIBE,
        group: str | None = None,
        **subject: Unpack[ErrorFields],
    ) -> ResultT:
        """Return the result of a future that ``ask`` returned.

        Raises:
            Mm2OffsetsError: The one that ``failure`` returns; it has the same arguments.
        """
        try:
            return future.result()
        except KafkaException as error:
            report = error.args[0]
            raise self.failure(report, operation=operation, group=group, **subject) from error

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
        if error.code() in NO_ANSWER:
            self._last_error.error = self._last_error.error or error
            return self.unreachable()
        return self._errors.refusal(error, operation=operation, group=group, **subject)

    def unreachable(self) -> ClusterUnreachableError:
        """Return the error that names the brokers, how long they were tried, and the reason."""
        error = self._last_error.error
        report = error.str() if error else ""
        if error is None or error.code() == ALL_BROKERS_DOWN:
            # librdkafka only logs that a broker closed a connection before it answered anything.
            report = self._logger.last_failure or report
        return self._errors.unreachable(
            report,
            seconds=time.monotonic() - self._started,
            login_failed=self._last_error.authentication_failed,
        )

    def run_callbacks(self) -> None:
        """Hear what librdkafka has reported; only for a client without an assigned partition.

        Raises:
            ClusterUnreachableError: Authentication failed.
        """
        # An idle client has no partition assigned, so poll returns no record.
        self.client.poll(0)
        self.check()
