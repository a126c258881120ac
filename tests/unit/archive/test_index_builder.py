"""The index built from columns equals the one that core builds sync by sync."""

from hypothesis import given
from hypothesis import strategies as st

from airflow_mm2_offsets.archive.columns import SyncColumns
from airflow_mm2_offsets.archive.index_builder import build_index
from airflow_mm2_offsets.core import TopicPartition
from airflow_mm2_offsets.core.epochs import Beginning, History, PartitionSyncs
from airflow_mm2_offsets.core.positions import MAX_OFFSET
from tests.unit.archive.archive_builder import Sync, contents, index_of, records_of

PLACES = st.tuples(st.sampled_from(["orders", "bills"]), st.integers(0, 2))


@st.composite
def rising(draw: st.DrawFn) -> list[Sync]:
    """Syncs as MirrorMaker 2 writes them: the target's offsets rise, the source's may step back."""
    steps = st.tuples(PLACES, st.integers(-15, 20), st.integers(1, 20))
    at: dict[tuple[str, int], tuple[int, int]] = {}
    log = []
    for place, up, down in draw(st.lists(steps, max_size=60)):
        upstream, downstream = at.get(place, (10, 0))
        at[place] = max(0, upstream + up), downstream + down
        log.append((*place, *at[place]))
    return log


OFFSETS = st.integers(0, 30) | st.integers(MAX_OFFSET - 3, MAX_OFFSET)
DISORDER = st.lists(
    st.tuples(PLACES, OFFSETS, OFFSETS).map(lambda drawn: (*drawn[0], *drawn[1:])), max_size=40
)


@given(rising() | DISORDER)
def test_columns_give_the_index_of_core(log: list[Sync]) -> None:
    """Both indexes are equal, also for syncs in disorder and for offsets near int64's maximum."""
    columns = SyncColumns.of_records(records_of(log, 0, len(log)))
    assert contents(build_index(columns, {})) == contents(index_of(log, complete=False))


@given(rising() | DISORDER)
def test_a_cut_partition_stays_cut(log: list[Sync]) -> None:
    """Whatever the order of the syncs, the history before the first stays cut."""
    columns = SyncColumns.of_records(records_of(log, 0, len(log)))
    built = build_index(
        columns,
        dict.fromkeys((TopicPartition(*sync[:2]) for sync in log), Beginning(history=History.LATE)),
    )
    assert all(syncs.beginning.history.is_cut for syncs in built.partitions.values())


@given(rising(), rising())
def test_an_index_of_columns_can_be_extended(log: list[Sync], more: list[Sync]) -> None:
    """Extended by later syncs, it equals the index that core builds."""
    columns = SyncColumns.of_records(records_of(log, 0, len(log)))
    pairs: dict[TopicPartition, list[tuple[int, int]]] = {}
    for sync in more:
        pairs.setdefault(TopicPartition(*sync[:2]), []).append(sync[2:])
    built = build_index(columns, {}).extended(pairs)
    assert contents(built) == contents(index_of([*log, *more], complete=False))


@given(rising(), st.integers(0, 59))
def test_the_index_up_to_a_sync_equals_an_index_of_these_syncs(log: list[Sync], at: int) -> None:
    """A part of the index equals an index of that part's syncs."""
    if not log:
        return
    syncs = index_of(log, complete=False).partitions[TopicPartition(*log[0][:2])]
    if at >= len(syncs):
        return
    pairs = zip(syncs.upstream[: at + 1], syncs.downstream[: at + 1], strict=True)
    known, again = syncs.until(syncs[at]), PartitionSyncs(pairs, beginning=syncs.beginning)
    for field in ("upstream", "downstream", "starts", "beginning"):
        assert getattr(known, field) == getattr(again, field)
