"""Topic ids before numbers: what an archive knows of a topic that was recreated is not used."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from airflow_mm2_offsets.archive import PairIdentity, SyncArchive
from airflow_mm2_offsets.archive.values import TopicIds
from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.core import Basis, Evidence, SyncsLocation, TopicPartition, Translation
from airflow_mm2_offsets.core.epochs import History
from airflow_mm2_offsets.errors import ArchiveError
from airflow_mm2_offsets.kafka.cluster import ClusterInfo, KafkaCluster
from airflow_mm2_offsets.kafka.descriptions import TopicInfo
from airflow_mm2_offsets.planning.options import PlanOptions
from airflow_mm2_offsets.planning.plan import plan_failover
from airflow_mm2_offsets.planning.syncs import load_syncs
from tests.support.pairs import Pair
from tests.unit.archive.archive_builder import Sync, append

LOG: list[Sync] = [("orders", 0, 100 * number, 90 * number) for number in range(10)]
Ids = dict[str, str]
"""The ids of the topics of one cluster."""


class Named:
    """A pair whose clusters give ids to themselves and to topics: librdkafka's mocks give none."""

    def __init__(self, clusters: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ids: dict[str, Ids] = {"source": {"orders": "s1"}, "target": {"orders": "t1"}}
        self.cluster_ids = {"source": "S", "target": "T"}
        self.pair = replace(clusters.pair, syncs_location=SyncsLocation.SOURCE)
        clusters.write("orders", range(1000))
        clusters.copy("orders", range(900))

        def topics(cluster: KafkaCluster, names: list[str]) -> dict[str, TopicInfo]:
            ids = self.ids[cluster.name]
            return {
                name: TopicInfo(name=name, partitions=1, topic_id=ids[name])
                for name in names
                if name in ids
            }

        def describe(cluster: KafkaCluster) -> ClusterInfo:
            return ClusterInfo(cluster_id=self.cluster_ids[cluster.name], brokers=())

        monkeypatch.setattr(KafkaCluster, "topics", topics)
        monkeypatch.setattr(KafkaCluster, "describe", describe)


@pytest.fixture
def named(clusters: Pair, monkeypatch: pytest.MonkeyPatch) -> Named:
    return Named(clusters, monkeypatch)


def archived(folder: Path, pair: ClusterPair, topics: Mapping[str, TopicIds]) -> SyncArchive:
    archive = SyncArchive(str(folder))
    identity = PairIdentity(source="S", target="T", syncs_topic=pair.syncs_topic)
    append(archive, LOG, time=1000, topics=topics, pair=identity)
    return archive


def answer(
    pair: ClusterPair, archive: SyncArchive, position: int = 900, *, read_source: bool = False
) -> Translation:
    options = PlanOptions(archive=archive, read_source=read_source)
    (planned,) = plan_failover(pair, {"orders": {0: position}}, options=options).partitions
    return planned.translation


def test_the_same_topics_are_answered(named: Named, tmp_path: Path) -> None:
    """With the ids that the archive saw last, its numbers hold; the plan says as of when."""
    archive = archived(tmp_path, named.pair, {"orders": ("s1", "t1")})
    assert (answer(named.pair, archive).basis, answer(named.pair, archive).target) == ("sync", 810)
    syncs = load_syncs(named.pair, archive, ask_source=False)
    assert syncs.as_of == "1970-01-01T00:00:01+00:00"
    assert syncs.index.partitions[TopicPartition("orders", 0)].beginning.history is History.COMPLETE


def test_a_target_topic_recreated_since_the_last_run_is_refused(
    named: Named, tmp_path: Path
) -> None:
    """The source is lost, the target can be asked: both ids are in the reason."""
    archive = archived(tmp_path, named.pair, {"orders": ("s1", "t1")})
    named.ids["target"]["orders"] = "t2"
    refused = answer(named.pair, archive)
    assert (refused.basis, refused.target) == (Basis.HISTORY_CUT, None)
    assert "topic orders on the target had the id t1 when the archive" in refused.reason
    assert "and has t2 now" in refused.reason
    syncs = load_syncs(named.pair, archive, ask_source=False)
    assert syncs.as_of == "1970-01-01T00:00:01+00:00"
    assert syncs.index.partitions[TopicPartition("orders", 0)].beginning.history is History.LATE


@pytest.mark.parametrize(("side", "old", "new"), [("source", "s1", "s2"), ("target", "t1", "t2")])
def test_with_the_syncs_topic_gone_both_sides_are_compared(
    named: Named, tmp_path: Path, side: str, old: str, new: str
) -> None:
    """The syncs topic was deleted: a topic recreated on either cluster is refused all the same."""
    archive = archived(tmp_path, named.pair, {"orders": ("s1", "t1")})
    named.ids[side]["orders"] = new
    refused = answer(named.pair, archive, read_source=True)
    assert refused.basis is Basis.HISTORY_CUT
    assert f"topic orders on the {side} had the id {old} " in refused.reason


def test_only_the_recreated_topic_is_refused(named: Named, tmp_path: Path) -> None:
    """Syncs of other topics stay as they are."""
    archive = archived(tmp_path, named.pair, {"orders": ("s1", "t1"), "bills": ("s5", "t5")})
    named.ids["target"]["bills"] = "t6"
    assert answer(named.pair, archive).target == 810


def test_a_topic_that_was_gone_during_a_run_is_another_one_later(
    named: Named, tmp_path: Path
) -> None:
    """A run that found syncs of a deleted topic: the topic that takes its place is recreated."""
    archive = archived(tmp_path, named.pair, {"orders": ("s1", "")})
    refused = answer(named.pair, archive)
    assert refused.basis is Basis.HISTORY_CUT
    assert "had the id unknown" in refused.reason


@pytest.mark.parametrize("side", ["source", "target"])
def test_another_cluster_behind_the_same_address_is_refused(
    named: Named, tmp_path: Path, side: str
) -> None:
    """Cluster ids are compared before a number is read."""
    archive = archived(tmp_path, named.pair, {"orders": ("s1", "t1")})
    named.cluster_ids[side] = "other"
    with pytest.raises(ArchiveError, match=f"its {side} cluster is [ST], and here it is other"):
        answer(named.pair, archive, read_source=True)


def test_a_gap_does_not_save_syncs_of_the_old_topic(named: Named, tmp_path: Path) -> None:
    """What lies behind a file that is missing is cut as well."""
    archive = archived(tmp_path, named.pair, {"orders": ("s1", "t1")})
    identity = PairIdentity(source="S", target="T", syncs_topic=named.pair.syncs_topic)
    log = [*LOG, *LOG, ("orders", 0, 990, 880)]
    append(archive, log, 20, 21, time=2000, pair=identity)
    named.ids["target"]["orders"] = "t2"
    lenient = SyncArchive(archive.location, skip_damaged=True)
    assert answer(named.pair, lenient, 990).basis is Basis.HISTORY_CUT


@pytest.mark.parametrize(
    ("first", "basis"),
    [(900, Basis.COPYING_AGAIN), (950, Basis.COPYING_AGAIN), (955, Basis.SYNC)],
)
def test_a_rewind_next_to_the_cut_is_known(
    named: Named, tmp_path: Path, first: int, basis: Basis
) -> None:
    """A run that sees a recreated target cuts its new syncs as well; the next one may go back.

    So the source's end decides. Also where a compaction has dropped what was cut.
    """
    held = Evidence(source_end=956)
    archive = archived(tmp_path, named.pair, {"orders": ("s1", "t1")})
    identity = PairIdentity(source="S", target="T", syncs_topic=named.pair.syncs_topic)
    log = [*LOG, ("orders", 0, 910, 0), ("orders", 0, 940, 30), ("orders", 0, first, 45)]
    ids = {"orders": ("s1", "t2")}
    append(archive, log, 10, 12, time=2000, topics=ids, pair=identity)
    append(archive, log, 12, 13, time=3000, topics=ids, pair=identity)
    named.ids["target"]["orders"] = "t2"
    for _ in range(2):
        index = load_syncs(named.pair, archive, ask_source=False).index
        assert index.partitions[TopicPartition("orders", 0)].first == (first, 45)
        assert index.translate("orders", 0, first).basis is Basis.COPYING_AGAIN
        assert index.translate("orders", 0, first, evidence=held).basis is basis
        archive.compact(over=0)
