"""What becomes of an error that a broker answers with."""

import pytest
from confluent_kafka import KafkaError

from airflow_mm2_offsets.errors import (
    ClusterRefusedError,
    ClusterUnreachableError,
    Mm2OffsetsError,
    TopicNotFoundError,
)
from airflow_mm2_offsets.kafka.clients import make_admin


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, ClusterRefusedError),
        (KafkaError.OFFSET_OUT_OF_RANGE, ClusterRefusedError),
        (KafkaError.UNKNOWN_TOPIC_OR_PART, TopicNotFoundError),
        (KafkaError.REQUEST_TIMED_OUT, ClusterUnreachableError),
    ],
)
def test_each_answer_has_its_error(code: int, kind: type[Mm2OffsetsError]) -> None:
    """A refusal, a missing topic and silence are different errors, with cluster and reason."""
    session = make_admin("target", {"bootstrap.servers": "a:9092"}, 1.0)
    error = session.failure(KafkaError(code, "the reason"), topic="orders")
    assert type(error) is kind
    assert str(error).startswith("target (")
    assert "the reason" in str(error)
