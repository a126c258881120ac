"""What becomes of an error that a broker answers with."""

from collections.abc import Sequence
from concurrent.futures import Future

import pytest
from confluent_kafka import KafkaError, KafkaException

from airflow_mm2_offsets.errors import (
    ClusterRefusedError,
    ClusterUnreachableError,
    MissingRightError,
    Mm2OffsetsError,
    TopicNotFoundError,
)
from airflow_mm2_offsets.kafka.clients import make_admin
from tests.support.mock_broker import MockBroker


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, MissingRightError),
        (KafkaError.OFFSET_OUT_OF_RANGE, ClusterRefusedError),
        (KafkaError.UNKNOWN_TOPIC_OR_PART, TopicNotFoundError),
        (KafkaError.REQUEST_TIMED_OUT, ClusterUnreachableError),
        (KafkaError.NOT_LEADER_FOR_PARTITION, ClusterUnreachableError),
    ],
)
def test_each_answer_has_its_error(code: int, kind: type[Mm2OffsetsError]) -> None:
    """A refusal, a missing topic and silence are different errors, with cluster and reason."""
    session = make_admin("target", {"bootstrap.servers": "a:9092"}, 1.0)
    error = session.failure(KafkaError(code, "the reason"), topic="orders")
    assert type(error) is kind
    assert str(error).startswith("target (")
    assert "the reason" in str(error)


def _answers(*codes: int | None) -> list[Future[str]]:
    futures: list[Future[str]] = [Future() for _ in codes]
    for future, code in zip(futures, codes, strict=True):
        if code is None:
            future.set_result("answer")
        else:
            future.set_exception(KafkaException(KafkaError(code, "the reason")))
    return futures


def test_a_request_is_sent_again_while_its_answer_is_an_error_that_passes(
    broker: MockBroker,
) -> None:
    """A leader that changes between metadata and request is no refusal (Kafka: retriable)."""
    session = make_admin("target", {"bootstrap.servers": broker.servers}, 10.0)
    answers = iter(
        _answers(KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.KAFKA_STORAGE_ERROR, None)
    )
    futures = session.ask(lambda request_timeout: {"orders": next(answers)})  # noqa: ARG005
    assert session.result(futures["orders"]) == "answer"


@pytest.mark.parametrize(
    ("codes", "seconds", "kind"),
    [
        ([KafkaError.TOPIC_AUTHORIZATION_FAILED], 10.0, ClusterRefusedError),
        ([KafkaError.NOT_LEADER_FOR_PARTITION] * 20, 0.3, ClusterUnreachableError),
    ],
)
def test_a_refusal_is_told_at_once_and_a_passing_error_when_time_is_up(
    broker: MockBroker, codes: Sequence[int], seconds: float, kind: type[Mm2OffsetsError]
) -> None:
    """What does not pass is asked once."""
    session = make_admin("target", {"bootstrap.servers": broker.servers}, seconds)
    answers = iter(_answers(*codes))
    futures = session.ask(lambda request_timeout: {"orders": next(answers)})  # noqa: ARG005
    with pytest.raises(kind, match="the reason"):
        session.result(futures["orders"], topic="orders")
