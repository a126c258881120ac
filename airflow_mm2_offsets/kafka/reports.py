"""Hears what librdkafka reports beside its answers: errors and log lines; for ``kafka.session``."""

import logging

from confluent_kafka import KafkaError

from airflow_mm2_offsets.kafka.redaction import Redactor

log = logging.getLogger(__name__)

AUTHENTICATION = KafkaError._AUTHENTICATION  # noqa: SLF001 - how the library names its local errors
ALL_BROKERS_DOWN = KafkaError._ALL_BROKERS_DOWN  # noqa: SLF001


class LastError:
    """The last error that librdkafka reported.

    It does not refer to the session: a reference cycle would keep the client, its threads and its
    sockets alive until the garbage collector runs.
    """

    def __init__(self) -> None:
        """Start without one."""
        self.error: KafkaError | None = None

    @property
    def authentication_failed(self) -> bool:
        """Whether the login was refused: to try again brings nothing."""
        return self.error is not None and self.error.code() == AUTHENTICATION

    def record(self, error: KafkaError) -> None:
        """Keep an error; librdkafka calls it as ``error_cb``."""
        # "All brokers are down" follows the reason, and must not hide it.
        if error.code() != ALL_BROKERS_DOWN or self.error is None:
            self.error = error


class DebugLogger:
    """Logs librdkafka's messages at DEBUG: twenty equal lines a second while a broker is down.

    The error that is raised names the reason. With the property ``debug`` on, lines hold what is
    sent, so secrets are hidden.
    """

    def __init__(self, redactor: Redactor) -> None:
        """Log nothing yet."""
        self._hide = redactor.hide
        self.last_failure = ""
        """The last broken connection, as librdkafka describes it."""

    def log(self, _level: int, message: str, *args: object) -> None:
        """Log a line; librdkafka calls it as a ``logging.Logger``."""
        text = message % args if args else message
        if text.startswith("FAIL "):
            self.last_failure = text.partition("]: ")[2]
        if log.isEnabledFor(logging.DEBUG):
            log.debug("%s", self._hide(text))
