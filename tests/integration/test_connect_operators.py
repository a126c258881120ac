"""The operators of MirrorMaker 2's connectors against a real Kafka Connect."""

from collections.abc import Iterator
from random import Random

import pytest

from airflow_mm2_offsets.connect.admin import ConnectorAdmin
from airflow_mm2_offsets.core import Status
from airflow_mm2_offsets.errors import ConfigurationError, ConnectError, TopicNotFoundError
from airflow_mm2_offsets.operators.connector_offsets import ResetConnectorOffsetsOperator
from airflow_mm2_offsets.operators.connector_states import RestartFailedTasksOperator
from airflow_mm2_offsets.planning.connect_claims import read_claims
from airflow_mm2_offsets.planning.plan import plan_failover
from stack.mirror import Stack
from stack.waiting import wait_until
from tests.integration.managed_mirror import WORDS, ManagedMirror, NumberedWriter, Truth
from tests.integration.mirrors import wait_copied
from tests.unit.operators.worker import Worker


@pytest.fixture
def managed(
    stack: Stack, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ManagedMirror]:
    """A mirror without connectors yet."""
    made = ManagedMirror(stack, worker, stack.connect_url)
    made.use_connections(monkeypatch)
    try:
        yield made
    finally:
        made.delete()


def test_a_mirror_is_applied_paused_stopped_and_resumed(managed: ManagedMirror) -> None:
    """Each task ends when Connect has done it; a second application changes nothing."""
    managed.new_topic()
    made = managed.apply()
    assert [each["action"] for each in made["changes"]] == ["create"] * 3
    assert made["state"] == "RUNNING"
    assert [each["action"] for each in managed.apply()["changes"]] == ["none"] * 3
    further = {"settings_of": {"source": {"offset.lag.max": "7"}}}
    changed = managed.apply(is_dry_run=True, **further)
    assert [each["action"] for each in changed["changes"]] == ["update", "none", "none"]
    for state in ("PAUSED", "STOPPED", "STOPPED", "RUNNING"):
        managed.set_state(state)
        assert managed.connect.status(managed.source_connector).state == state
    managed.run(RestartFailedTasksOperator, connector=managed.source_connector, poll_interval=0.1)


def test_a_connector_of_another_class_is_refused(managed: ManagedMirror) -> None:
    """A heartbeat connector has the name: it stays as it was."""
    managed.apply(kinds=["heartbeat"])
    config = managed.connect.config(f"{managed.name}-heartbeat")
    ConnectorAdmin(connect=managed.connect, name=managed.source_connector).put_config(
        {key: value for key, value in config.items() if key != "name"}
    )
    wait_until(lambda: managed.source_connector in managed.connect.configs(), "the connector")
    before = managed.connect.config(managed.source_connector)
    with pytest.raises(ConfigurationError, match=r"MirrorHeartbeatConnector, not .*MirrorSource"):
        managed.apply()
    assert managed.connect.config(managed.source_connector) == before


def test_offsets_are_reset_and_put_back_and_no_plan_is_above_the_truth(
    managed: ManagedMirror,
) -> None:
    """Positions are translated before, between and after, under writes."""
    topic, random = managed.new_topic(), Random(14)  # noqa: S311 - positions
    writer = NumberedWriter(managed.stack.source, topic, 1)
    writer.write(500)
    managed.apply(kinds=["source"])
    answers = 0

    def judge(moment: str) -> None:
        nonlocal answers
        positions = sorted(random.sample(range(writer.ends[0] + 1), 4))
        plans = [plan_failover(managed.pair, {topic: {0: each}}) for each in positions]
        truth = Truth(managed.copies(topic)[0])
        for plan in plans:
            (planned,) = plan.partitions
            assert not truth.is_above(planned.translation), (moment, planned.translation)
            answers += 1

    wait_copied(managed.pair, {topic: {0: 500}})
    with writer.writing(5, 0.05):
        judge("before")
        managed.set_state("STOPPED")
        backup = managed.read_offsets()
        done = managed.run(
            ResetConnectorOffsetsOperator,
            connector=managed.source_connector,
            backup=backup,
            confirm=WORDS[0],
        )
        assert done["changed"]
        assert done["backup"] == backup
        judge("reset")
        managed.set_state("RUNNING")
        wait_until(lambda: max(map(len, managed.copies(topic)[0].values())) > 1, "a second copy")
        judge("copying again")
        managed.set_state("STOPPED")
        managed.alter(backup)
        judge("put back")
        managed.set_state("RUNNING")
    end = writer.ends[0]
    wait_copied(managed.pair, {topic: {0: end}})
    judge("after")
    assert answers == 20


def test_connect_itself_refuses_offsets_of_a_connector_that_runs(managed: ManagedMirror) -> None:
    """What the simulated Connect answers is what the real one does."""
    managed.new_topic()
    managed.apply(kinds=["source"])
    path = f"/connectors/{managed.source_connector}/offsets"
    with pytest.raises(ConnectError, match="HTTP 400: Connectors must be in the STOPPED state"):
        managed.connect.request("DELETE", path, "the offsets")


def test_topics_split_over_two_connectors_are_each_translated(
    managed: ManagedMirror, caplog: pytest.LogCaptureFixture
) -> None:
    """Each topic by its own connector's offsets; what none copies, or both would, is refused."""
    first, second, lonely = (managed.new_topic() for _ in range(3))
    for topic, count in ((first, 300), (second, 170), (lonely, 5)):
        NumberedWriter(managed.stack.source, topic, 1).write(count)
    managed.apply(kinds=["source"], topics=first)
    managed.apply(kinds=["source"], topics=second, name=f"{managed.name}-2")
    positions = {first: {0: 300}, second: {0: 170}}
    wait_copied(managed.pair, positions)
    names = managed.source_connector, f"{managed.name}-2-source"

    def each_has_committed_its_own() -> bool:
        claims = {key.topic: [*by] for key, by in read_claims(managed.pair).items()}
        return claims == {first: [names[0]], second: [names[1]]}

    wait_until(each_has_committed_its_own, "the offsets of both connectors")
    for middle in ({first: {0: 120}, second: {0: 55}}, positions):
        plan = plan_failover(managed.pair, middle)
        for planned in plan.partitions:
            answer = planned.translation
            # Nothing but copies is there, each once.
            assert (answer.status, answer.target) == (Status.EXACT, answer.position)
    # Nobody has created its copy.
    with pytest.raises(TopicNotFoundError, match=rf"{lonely}\[0\]: does not exist"):
        plan_failover(managed.pair, {lonely: {0: 3}})
    with pytest.raises(ConfigurationError, match=f"{names[0]} copies topic {first} of this pair"):
        managed.apply(kinds=["source"], topics=f"{first}|{lonely}", name=f"{managed.name}-3")
    assert f"{managed.name}-3-source" not in managed.connect.configs()
    assert "connectors have copied it" not in caplog.text
