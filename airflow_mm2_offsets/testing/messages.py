"""Messages as confluent-kafka's consumer returns them; ``clients`` makes them of records."""

from confluent_kafka import KafkaError, TopicPartition

from airflow_mm2_offsets.testing.logs import Record


class Message:
    """A message with the methods that ``kafka.drain`` calls."""

    __slots__ = ("_error", "_kind", "_offset", "_partition", "_record", "_topic")

    def __init__(
        self,
        partition: TopicPartition,
        offset: int,
        record: Record,
        kind: int,
        error: KafkaError | None = None,
    ) -> None:
        """Keep a record, or the error in its place."""
        self._topic, self._partition = partition.topic, partition.partition
        self._offset, self._record, self._kind = offset, record, kind
        self._error = error

    def error(self) -> KafkaError | None:
        """Return the error in the place of a record; None for a record."""
        return self._error

    def topic(self) -> str:
        """Return the topic."""
        return self._topic

    def partition(self) -> int:
        """Return the partition."""
        return self._partition

    def offset(self) -> int:
        """Return the offset."""
        return self._offset

    def key(self) -> bytes | None:
        """Return the key."""
        return self._record.key

    def value(self) -> bytes | None:
        """Return the value; None is a tombstone."""
        return self._record.value

    def timestamp(self) -> tuple[int, int]:
        """Return the kind of the timestamp and its milliseconds since 1970."""
        return self._kind, self._record.timestamp

    def headers(self) -> list[tuple[str, bytes | None]] | None:
        """Return the headers; None if there are none."""
        return list(self._record.headers) or None
