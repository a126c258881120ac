"""A topic that is deleted and created again during a failover: its old positions move no job."""

from collections.abc import Iterable

import pytest

from airflow_mm2_offsets.errors import HandoverError, NotReadyError
from airflow_mm2_offsets.kafka.cluster import KafkaCluster
from airflow_mm2_offsets.kafka.descriptions import TopicInfo
from tests.unit.dags.failovers import Failover


class TopicIds:
    """The ids of topic orders, which librdkafka's own brokers have none of."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ids = {"source": "s1", "target": "t1"}

        def topics(cluster: KafkaCluster, names: Iterable[str]) -> dict[str, TopicInfo]:
            topic_id = self.ids[cluster.name.partition(" ")[0]]
            return {name: TopicInfo(name=name, partitions=4, topic_id=topic_id) for name in names}

        monkeypatch.setattr(KafkaCluster, "topics", topics)

    def recreate(self, side: str) -> None:
        self.ids[side] += "-recreated"


@pytest.fixture
def topic(run: Failover, monkeypatch: pytest.MonkeyPatch) -> TopicIds:
    assert run
    return TopicIds(monkeypatch)


BETWEEN = [
    ("stop_source", ("wait_replicated", "translate")),
    ("wait_replicated", ("wait_replicated", "translate")),
    ("translate", ("translate",)),
    ("start_target", ("start_target",)),
]
"""The task before which a topic is recreated, and those that refuse to go on."""


@pytest.mark.parametrize("side", ["source", "target"])
@pytest.mark.parametrize(("before", "refusing"), BETWEEN)
def test_a_topic_recreated_since_the_check_moves_no_job(
    run: Failover, topic: TopicIds, before: str, refusing: tuple[str, ...], side: str
) -> None:
    """Whenever it happens: field and both ids are named, and nothing is started."""
    run.run_until(before)
    topic.recreate(side)
    if before == "stop_source":
        run.run("stop_source")
    named = rf"clusters\.{side}\.topic_ids\.orders is '{side[0]}1-recreated' now, and was"
    for task_id in refusing:
        with pytest.raises(HandoverError, match=named):
            run.run(task_id)
    assert not run.worker.triggered


def test_a_check_that_is_run_again_forgets_no_id(run: Failover, topic: TopicIds) -> None:
    """The ids of the first reading are noted beside the checkpoint: a later one adds none."""
    run.run_until("wait_replicated")
    topic.recreate("source")
    with pytest.raises(NotReadyError, match=r"topic_ids\.orders is 's1-recreated' now"):
        run.run("check")
    with pytest.raises(HandoverError, match=r"topic_ids\.orders is 's1-recreated' now"):
        run.run("translate")


def test_another_run_forgets_no_id_of_a_job_that_stands_still(
    run: Failover, topic: TopicIds
) -> None:
    """Between two runs the positions are as old as before, until the job commits a batch."""
    run.run("check")
    topic.recreate("source")
    run.worker.run_id = "manual__2"
    with pytest.raises(NotReadyError, match=r"topic_ids\.orders is 's1-recreated' now"):
        Failover.of(run.mover).run("check")
    run.source.commit(1, 5, 6, 3, 2)
    run.worker.run_id = "manual__3"
    Failover.of(run.mover).run("check")


def test_the_same_topics_go_through(run: Failover, topic: TopicIds) -> None:
    """With ids on both sides the failover ends as without, and the plan says of what it is."""
    run.run_all()
    assert len(run.worker.triggered) == 1
    assert run.plan().ids.source.topic_ids == {"orders": topic.ids["source"]}
