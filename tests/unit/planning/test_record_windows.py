"""What a plan has read of the records around a position."""

from airflow_mm2_offsets.core import Basis, TopicPartition
from airflow_mm2_offsets.core.positions import PartitionPosition
from airflow_mm2_offsets.planning.evidence_collector import EvidenceCollector
from airflow_mm2_offsets.planning.options import PlanOptions
from airflow_mm2_offsets.planning.plan import collect_evidence
from tests.support.pairs import Pair

ORDERS = TopicPartition("orders", 0)


def test_a_window_begins_where_the_target_does(clusters: Pair) -> None:
    """What the target has deleted was not read: its records are not missing there.

    The records of target offsets 20 to 40 are around position 27. The one at 20 is deleted.
    """
    clusters.write("orders", range(60))
    clusters.copy("orders", range(60))
    clusters.sync("orders", (0, 0), (20, 20), (40, 40), (59, 59))
    clusters.target.delete_records(*ORDERS, 21)
    positions = {"orders": {0: 27}}
    collector, _ = collect_evidence(clusters.pair, positions, PlanOptions(sole_writer=True))
    assert isinstance(collector, EvidenceCollector)
    collector.collect_records()
    (answer,) = collector.translations()
    window = collector.evidence[PartitionPosition(ORDERS, 27)].target_window
    assert window is not None
    assert window.first == 21
    assert [offset for offset, _ in window.records] == [*range(21, window.last + 1)]
    assert (answer.target, answer.basis) == (27, Basis.CONTENT)
