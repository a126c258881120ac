"""The way home while a transaction is open on the cluster that the job returns to."""

from airflow_mm2_offsets.core import Status, TopicPartition, Watermarks
from airflow_mm2_offsets.core.epochs import PartitionSyncs
from airflow_mm2_offsets.core.evidence import RecordWindow, SourceWindow
from airflow_mm2_offsets.core.inverse import translate_back
from airflow_mm2_offsets.core.inverse_evidence import FirstMove, InverseEvidence
from airflow_mm2_offsets.core.result import Translation


def _answer(*copies: str) -> Translation:
    """Return the way home from 4, where A has the records a to h and a transaction after them."""
    originals = tuple(enumerate("abcdefgh"))
    evidence = InverseEvidence(
        home=Watermarks(low=0, high=12),
        away=Watermarks(low=0, high=len(copies)),
        first=FirstMove(position=0, start=0),
        originals=SourceWindow(first=0, last=7, records=originals),
        copies=RecordWindow(first=0, last=len(copies) - 1, records=tuple(enumerate(copies))),
    )
    return translate_back(PartitionSyncs([(0, 0)]), TopicPartition("orders", 0), 4, evidence)


def test_a_transaction_after_all_that_was_read_widens_nothing() -> None:
    """Under a transactional producer one is always open; what the job has read lies before it."""
    answer = _answer(*"abcdef")
    assert (answer.status, answer.target, answer.high) == (Status.EXACT, 4, 4)


def test_a_record_that_may_be_of_the_transaction_is_counted() -> None:
    """A copy that the job has read and A does not show yet may be read again."""
    answer = _answer(*"abcxef")
    assert (answer.status, answer.target, answer.high) == (Status.BOUNDED, 3, 12)
