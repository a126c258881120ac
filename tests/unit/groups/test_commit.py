"""What happens to groups between the check and the commit, and when a broker refuses one."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, KafkaException

from airflow_mm2_offsets.core import TopicPartition
from airflow_mm2_offsets.groups import parse_selection, sync_groups
from airflow_mm2_offsets.testing import Mm2Simulation, simulated_mm2
from airflow_mm2_offsets.testing.descriptions import DescribingAdmin, failed

ORDERS, COPY = TopicPartition("orders", 0), TopicPartition("source.orders", 0)
LIST = "list_consumer_group_offsets"
UNSTABLE = KafkaError(KafkaError.UNSTABLE_OFFSET_COMMIT)


@pytest.fixture
def mm2(monkeypatch: pytest.MonkeyPatch) -> Iterator[Mm2Simulation]:
    monkeypatch.setattr("airflow_mm2_offsets.kafka.session.ASK_AGAIN", 0.001)
    monkeypatch.setattr("airflow_mm2_offsets.groups.commit._PATIENCE", 0.01)
    with simulated_mm2() as made:
        made.source.produce("orders", 0, [b"%d" % number for number in range(500)])
        made.mirror()
        made.source.group_offsets = {group: {ORDERS: (100, "")} for group in ("waiting", "other")}
        yield made


def _sync(mm2: Mm2Simulation, *, timeout: float = 30.0) -> dict[str, dict[str, Any]]:
    pair = replace(mm2.pair, target=replace(mm2.pair.target, timeout=timeout))
    report = sync_groups(pair, parse_selection(".*")).to_json()
    return {each["group"]: each for each in report["offsets"]}


def _answer_for(
    monkeypatch: pytest.MonkeyPatch, group: str, answer: Callable[[int], KafkaError | None]
) -> None:
    """Answer the target's requests for a group's stable offsets; None: as the cluster does."""
    list_offsets, sent = getattr(DescribingAdmin, LIST), list[str]()

    def answer_group(
        self: DescribingAdmin, requests: list[ConsumerGroupTopicPartitions], **options: Any
    ) -> dict[str, Future[Any]]:
        (request,) = requests
        if request.group_id == group and options.get("require_stable"):
            sent.append(group)
            if (error := answer(len(sent))) is not None:
                return {group: failed(KafkaException(error))}
        answers: dict[str, Future[Any]] = list_offsets(self, requests, **options)
        return answers

    monkeypatch.setattr(DescribingAdmin, LIST, answer_group)


def test_a_pending_commit_is_not_overwritten(
    mm2: Mm2Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An exactly-once consumer's: nothing of its group is committed, and others go on."""
    _answer_for(monkeypatch, "waiting", lambda _: UNSTABLE)
    lines = _sync(mm2, timeout=0.05)
    assert {group: each["status"] for group, each in lines.items()} == {
        "waiting": "refused",
        "other": "committed",
    }
    assert "transaction" in lines["waiting"]["reason"]
    assert mm2.target.group_offsets.keys() == {"other"}


def test_the_others_do_not_wait_for_a_pending_group(
    mm2: Mm2Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are checked again without it: what a consumer commits meanwhile is not overwritten."""
    _sync(mm2)
    mm2.source.group_offsets = {group: {ORDERS: (150, "")} for group in ("waiting", "other")}
    ended: list[bool] = []

    def answer(number: int) -> KafkaError | None:
        if number == 1:  # "other" was asked before: its consumer joins, reads, commits, leaves
            mm2.target.group_offsets["other"][COPY] = (400, "")
        elif "third" in mm2.target.group_offsets and not ended:
            ended.append(True)  # all others are committed: the transaction ends
        return None if ended else UNSTABLE

    mm2.source.group_offsets["third"] = {ORDERS: (150, "")}
    _answer_for(monkeypatch, "waiting", answer)
    lines = _sync(mm2)
    assert mm2.target.group_offsets["other"][COPY] == (400, "")
    assert {group: each["status"] for group, each in lines.items()} == {
        "waiting": "committed",
        "other": "kept",
        "third": "committed",
    }


@pytest.mark.parametrize("code", [KafkaError.GROUP_ID_NOT_FOUND, KafkaError.UNKNOWN_MEMBER_ID])
def test_a_group_that_the_target_refuses_fails_alone(
    mm2: Mm2Simulation, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    """A share group (KIP-932) or one of KIP-848 with that name: all others are committed."""
    _answer_for(monkeypatch, "waiting", lambda _: KafkaError(code))
    lines = _sync(mm2)
    assert mm2.target.group_offsets.keys() == {"other"}
    assert (lines["waiting"]["status"], lines["waiting"]["committed"]) == ("failed", None)
    assert "does not tell what the group has committed" in lines["waiting"]["reason"]


def test_a_group_that_the_source_refuses_is_named(
    mm2: Mm2Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is no offset of it to list: the report names it beside them, and others go on."""
    list_offsets = getattr(DescribingAdmin, LIST)
    error = KafkaException(KafkaError(KafkaError.GROUP_ID_NOT_FOUND))

    def answer(
        self: DescribingAdmin, requests: list[ConsumerGroupTopicPartitions], **options: Any
    ) -> dict[str, Future[Any]]:
        if requests[0].group_id == "waiting" and not options.get("require_stable"):
            return {"waiting": failed(error)}
        answers: dict[str, Future[Any]] = list_offsets(self, requests, **options)
        return answers

    monkeypatch.setattr(DescribingAdmin, LIST, answer)
    report = sync_groups(mm2.pair, parse_selection(".*")).to_json()
    assert mm2.target.group_offsets.keys() == {"other"}
    assert report["unread_groups"].keys() == {"waiting"}
    assert report["totals"]["unread_groups"] == 1
    assert "does not tell the commits of the group waiting" in report["summary"]


def test_a_commit_that_was_replaced_at_once_is_not_told_as_ours(
    mm2: Mm2Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another run of the sync, or a consumer, commits right after ours."""
    alter = DescribingAdmin.alter_consumer_group_offsets

    def answer(
        self: DescribingAdmin, requests: list[ConsumerGroupTopicPartitions], **options: Any
    ) -> dict[str, Future[Any]]:
        answers = alter(self, requests, **options)
        mm2.target.group_offsets.setdefault("waiting", {})[COPY] = (300, "")
        return answers

    monkeypatch.setattr(DescribingAdmin, "alter_consumer_group_offsets", answer)
    lines = _sync(mm2)
    assert (lines["waiting"]["status"], lines["waiting"]["committed"]) == ("kept", None)
    assert "100 was committed, and 300 is there now" in lines["waiting"]["reason"]
    assert lines["other"]["status"] == "committed"
