"""Records that MirrorMaker 2 has passed over: never copied is not filtered.

In each world the source holds records from the job's position on that lie on no target, and nothing
will copy them.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType

import pytest

from airflow_mm2_offsets.core import Basis, FailoverPlan, OnUnmapped, Status, TopicPartition
from airflow_mm2_offsets.core.plan import Verdict
from airflow_mm2_offsets.planning import uncopied_ranges
from airflow_mm2_offsets.planning.many_positions import translate_many
from airflow_mm2_offsets.planning.options import DEFAULT_OPTIONS, PlanOptions
from airflow_mm2_offsets.planning.plan import plan_failover
from airflow_mm2_offsets.planning.syncs import load_syncs
from airflow_mm2_offsets.testing.connectors import SimulatedConnector
from airflow_mm2_offsets.testing.logs import SourceLog, TargetLog
from tests.support.pairs import FILTERING, NAMING, STOPPED_CONNECT, Pair, connect

END = 400
TRANSFORMS = "org.apache.kafka.connect.transforms"


def _plan(clusters: Pair, position: int, options: PlanOptions = DEFAULT_OPTIONS) -> FailoverPlan:
    return plan_failover(clusters.pair, {"orders": {0: position}}, options=options)


def _ask(
    clusters: Pair,
    *,
    committed: int | None = None,
    config: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Let Connect answer."""
    offsets = {} if committed is None else {("orders", 0): committed}
    clusters.pair = replace(clusters.pair, connect=connect(offsets, config=config))


def _copy(clusters: Pair, numbers: Iterable[int], *, lag: int = 50) -> None:
    """Copy records, with a sync of the first, of each after a gap, and of each after ``lag``."""
    last = down = -1
    since = 0
    log = clusters.target.topics["orders"].partitions[0] if clusters.target.topics else None
    down = (log.high if log else 0) - 1
    for number in numbers:
        clusters.copy("orders", [number])
        down, since = down + 1, since + 1
        if last < 0 or number != last + 1 or since >= lag:
            clusters.sync("orders", (number, down))
            since = 0
        last = number


def _began_at_latest(clusters: Pair) -> None:
    """MirrorMaker 2 began at 100."""
    _copy(clusters, range(100, END))


def _created_again(clusters: Pair) -> None:
    """The connector copied 0 to 99, was created again, and began at 150."""
    _copy(clusters, [*range(100), *range(150, END)])


def _few_left_out(clusters: Pair) -> None:
    """Its offsets were altered ahead by 3 records."""
    _copy(clusters, [*range(200), *range(203, END)])


def _went_back_and_ahead(clusters: Pair) -> None:
    """It copied 0 to 99, then 50 to 119, and went ahead to 200."""
    _copy(clusters, [*range(100), *range(50, 120), *range(200, END)])


HOLES: Mapping[Callable[[Pair], None], tuple[int, int]] = {
    _began_at_latest: (0, 99),
    _created_again: (100, 149),
    _few_left_out: (200, 202),
    _went_back_and_ahead: (120, 199),
}
"""The first and the last record that was never copied."""


@pytest.fixture(params=HOLES, ids=lambda hole: hole.__name__.strip("_"))
def hole(request: pytest.FixtureRequest, clusters: Pair) -> tuple[int, int]:
    """Return the first and the last record of a hole."""
    clusters.write("orders", range(END))
    request.param(clusters)
    return HOLES[request.param]


def test_a_position_before_a_hole_is_refused(clusters: Pair, hole: tuple[int, int]) -> None:
    """The finding has the number and the offsets; positions past the hole are answered."""
    _ask(clusters)
    first, last = hole
    for position in {0, max(0, first - 20), first, (first + last) // 2, last}:
        plan = _plan(clusters, position)
        (answer,) = (each.translation for each in plan.partitions)
        assert (plan.verdict, answer.basis) == (Verdict.REFUSED, Basis.NEVER_COPIED), position
        begin = max(first, position)
        assert answer.uncopied is not None
        assert (answer.uncopied.first, answer.uncopied.last) == (begin, last)
        assert answer.uncopied.at_least == answer.uncopied.at_most == last - begin + 1
    for position in (last + 1, END - 30, END):
        plan = _plan(clusters, position)
        assert plan.verdict is Verdict.READY
        assert plan.partitions[0].translation.uncopied is None


@pytest.mark.parametrize("max_evidence_bytes", [1, 300, 1200])
def test_bytes_that_are_not_enough_hide_no_hole(
    clusters: Pair, hole: tuple[int, int], max_evidence_bytes: int
) -> None:
    """The steps that lack copies are read first; what can't be read is no proof either."""
    _ask(clusters)
    first, last = hole
    number = last - first + 1
    options = PlanOptions(max_evidence_bytes=max_evidence_bytes)
    plan = _plan(clusters, first, options)
    (answer,) = (each.translation for each in plan.partitions)
    assert (plan.verdict, answer.basis) == (Verdict.REFUSED, Basis.NEVER_COPIED)
    assert answer.uncopied is not None
    assert answer.uncopied.at_most >= number
    assert (answer.uncopied.at_least == 0) is ("Raise max_evidence_bytes" in answer.reason)
    assert max_evidence_bytes > 1 or answer.uncopied.at_least == 0
    given_up = replace(options, give_up=answer.uncopied.at_most)
    assert _plan(clusters, first, given_up).verdict is Verdict.READY


def test_a_hole_hides_behind_no_other_partition(clusters: Pair) -> None:
    """All partitions together are too many bytes, and one of them has a hole."""
    for partition in range(4):
        clusters.write("orders", range(END), partition)
        copied = [*range(200), *range(203, END)] if partition == 2 else range(END)
        clusters.copy("orders", copied, partition)
        syncs = [(number, down) for down, number in enumerate(copied) if number % 50 in {0, 3}]
        clusters.sync("orders", *syncs, partition=partition)
    _ask(clusters)
    positions = {"orders": dict.fromkeys(range(4), 20)}
    for limit in (300, 1200, 4000):
        options = PlanOptions(max_evidence_bytes=limit)
        plan = plan_failover(clusters.pair, positions, options=options)
        assert [(each.partition, each.basis) for each in plan.refused] == [(2, Basis.NEVER_COPIED)]


@pytest.mark.parametrize("max_evidence_bytes", [1, 300, 2**20])
def test_where_no_step_lacks_copies_few_bytes_are_enough(
    clusters: Pair, max_evidence_bytes: int
) -> None:
    """A lag that is too long to be read is not refused for that."""
    clusters.write("orders", range(END))
    _copy(clusters, range(END))
    _ask(clusters)
    options = PlanOptions(max_evidence_bytes=max_evidence_bytes)
    assert _plan(clusters, 20, options).verdict is Verdict.READY


@pytest.mark.parametrize("hole", [0, 20])
@pytest.mark.parametrize("max_evidence_bytes", [1, 400, 4000, 2**20])
def test_markers_of_transactions_are_no_hole(
    clusters: Pair, max_evidence_bytes: int, hole: int
) -> None:
    """Each step lacks a few copies. A hole stands out, however few bytes are read."""
    clusters.source.create_topic("orders", partitions=4)
    copied = []
    for number in range(END):
        if number % 10 == 9:
            clusters.source.skip_offsets("orders", 0, 1)
            continue
        clusters.write("orders", [number])
        if not 200 <= number < 200 + hole:
            copied.append(number)
    clusters.copy("orders", copied)
    syncs = [(number, down) for down, number in enumerate(copied) if not down % 18]
    clusters.sync("orders", *syncs)
    _ask(clusters)
    plan = _plan(clusters, 20, PlanOptions(max_evidence_bytes=max_evidence_bytes))
    assert (plan.verdict is Verdict.REFUSED) is bool(hole)


def test_who_names_the_number_moves_past_a_hole(clusters: Pair, hole: tuple[int, int]) -> None:
    """One fewer is refused; the plan, its JSON and its totals name what was given up."""
    _ask(clusters)
    first, last = hole
    number = last - first + 1
    assert _plan(clusters, first, PlanOptions(give_up=number - 1)).verdict is Verdict.REFUSED
    plan = _plan(clusters, first, PlanOptions(give_up=number))
    assert plan.verdict is Verdict.READY
    assert plan.given_up == plan.to_json()["totals"]["given_up"] == number
    assert plan.partitions[0].translation.uncopied is not None
    assert FailoverPlan.from_json(plan.to_json()) == plan


@pytest.mark.parametrize("choice", [each for each in OnUnmapped if each is not OnUnmapped.FAIL])
def test_no_fallback_passes_over_a_hole(
    clusters: Pair, hole: tuple[int, int], choice: OnUnmapped
) -> None:
    """``on_unmapped`` names no number: the position stays refused."""
    _ask(clusters)
    plan = _plan(clusters, hole[0], PlanOptions(on_unmapped=choice))
    assert [each.basis for each in plan.refused] == [Basis.NEVER_COPIED]


def test_without_connect_the_finding_stays(clusters: Pair, hole: tuple[int, int]) -> None:
    """And its cause says that a filter is not ruled out."""
    causes = []
    for answering in (None, STOPPED_CONNECT.client()):
        clusters.pair = replace(clusters.pair, connect=answering)
        (answer,) = (each.translation for each in _plan(clusters, hole[0]).partitions)
        assert answer.basis is Basis.NEVER_COPIED
        assert answer.uncopied is not None
        causes.append(answer.uncopied.cause)
    _ask(clusters)
    (answer,) = (each.translation for each in _plan(clusters, hole[0]).partitions)
    assert answer.uncopied is not None
    assert answer.uncopied.cause not in causes
    assert len({*causes}) == 1


@pytest.mark.parametrize(
    ("config", "drops"),
    [
        (FILTERING, True),
        ({"transforms": "r", "transforms.r.type": f"{TRANSFORMS}.RegexRouter"}, True),
        ({"transforms": "o", "transforms.o.type": "com.example.Sampling"}, True),
        ({"transforms": "h", "transforms.h.type": f"{TRANSFORMS}.InsertHeader"}, False),
        ({"transforms": "k", "transforms.k.type": f"{TRANSFORMS}.ReplaceField$Value"}, False),
        ({"transforms": "${file:/x:y}"}, False),
        ({"predicates": "p", "predicates.p.type": f"{TRANSFORMS}.predicates.HasHeaderKey"}, False),
        ({"errors.tolerance": "all"}, False),
    ],
)
def test_what_a_transform_may_drop_is_filtered(
    clusters: Pair, config: Mapping[str, str], *, drops: bool
) -> None:
    """Kafka's Filter, a router, and a transform of others; a predicate alone drops nothing."""
    clusters.write("orders", range(END))
    _began_at_latest(clusters)
    _ask(clusters, config=config)
    is_ready = _plan(clusters, 50).verdict is Verdict.READY
    assert is_ready is drops


def test_the_connector_that_copies_the_topic_counts(clusters: Pair) -> None:
    """A filter of another connector explains nothing."""
    clusters.write("orders", range(END))
    _began_at_latest(clusters)
    worker = clusters.simulation.connect
    worker.config = {**worker.config, "topics": "orders"}
    clusters.pair = replace(clusters.pair, connect=worker.client())
    for topics, verdict in (("refunds", Verdict.REFUSED), ("orders|refunds", Verdict.READY)):
        config = {**worker.config, **FILTERING, "topics": topics}
        worker.others["other"] = SimulatedConnector(name="other", config=config)
        assert _plan(clusters, 50).verdict is verdict


@pytest.mark.parametrize(("committed", "number"), [(None, 0), (299, 0), (399, 100), (350, 51)])
def test_after_the_last_copy_connect_decides(
    clusters: Pair, committed: int | None, number: int
) -> None:
    """What it has not committed is not replicated yet; what it has, and was not copied, is lost."""
    clusters.write("orders", range(END))
    _copy(clusters, range(300))
    _ask(clusters, committed=committed)
    (answer,) = (each.translation for each in _plan(clusters, 250).partitions)
    assert (answer.uncopied.at_most if answer.uncopied else 0) == number
    assert (answer.basis is Basis.NEVER_COPIED) is bool(number)


def test_an_offset_of_an_earlier_topic_decides_nothing(clusters: Pair) -> None:
    """Connect has committed beyond the source's end: for a topic that was deleted."""
    clusters.write("orders", range(END))
    _copy(clusters, range(300))
    _ask(clusters, committed=5000)
    assert _plan(clusters, 250).partitions[0].translation.uncopied is None


def test_what_the_source_does_not_deliver_is_not_missing(clusters: Pair) -> None:
    """Markers, aborted and compacted records leave offsets without a record."""
    clusters.write("orders", range(100))
    source = clusters.source.topics["orders"].partitions[0]
    source.skip(50)
    for number in range(40, 60):
        assert isinstance(source, SourceLog)
        del source.records[number]
    clusters.write("orders", range(150, 250))
    clusters.copy("orders", [*range(40), *range(60, 100), *range(150, 250)])
    clusters.sync("orders", (0, 0), (60, 40), (150, 80), (249, 179))
    _ask(clusters)
    for position in (0, 39, 40, 99, 120, 150):
        plan = _plan(clusters, position)
        assert (plan.verdict, plan.partitions[0].translation.uncopied) == (Verdict.READY, None)


def test_records_of_an_open_transaction_are_not_missing(clusters: Pair) -> None:
    """MirrorMaker 2 with read_committed has not passed them."""
    clusters.write("orders", range(300))
    _copy(clusters, range(300))
    source = clusters.source.topics["orders"].partitions[0]
    assert isinstance(source, SourceLog)
    source.open_from = source.high
    clusters.write("orders", range(300, END))
    _ask(clusters, committed=350)
    assert _plan(clusters, 250).partitions[0].translation.uncopied is None


def test_what_retention_deleted_on_the_target_was_copied(clusters: Pair) -> None:
    """A copy may have lain where the target has deleted records: no finding."""
    clusters.write("orders", range(END))
    _copy(clusters, range(END))
    clusters.target.topics["orders"].partitions[0].delete_before(180)
    _ask(clusters)
    (answer,) = (each.translation for each in _plan(clusters, 50).partitions)
    assert (answer.basis, answer.uncopied) == (Basis.EXPIRED, None)


@pytest.mark.parametrize(("policy", "number"), [("compact", 0), ("delete", 30)])
def test_what_the_target_compacted_was_copied(clusters: Pair, policy: str, number: int) -> None:
    """The source still holds a record whose copy was cleaned: an offset without a record."""
    clusters.write("orders", range(END))
    _copy(clusters, range(END))
    log = clusters.target.topics["orders"].partitions[0]
    assert isinstance(log, TargetLog)
    for offset in range(200, 230):
        log.entries[offset] = log.entries[offset]._replace(record=None)
    clusters.target.topics["orders"].settings["cleanup.policy"] = policy
    _ask(clusters)
    (answer,) = (each.translation for each in _plan(clusters, 150).partitions)
    assert (answer.uncopied.at_most if answer.uncopied else 0) == number


def test_a_hole_that_compaction_can_not_explain(clusters: Pair) -> None:
    """More records are missing than the target has offsets without a record: at least so many."""
    clusters.write("orders", range(END))
    _copy(clusters, [*range(200), *range(250, END)])
    log = clusters.target.topics["orders"].partitions[0]
    assert isinstance(log, TargetLog)
    for offset in (190, 195):
        log.entries[offset] = log.entries[offset]._replace(record=None)
    clusters.target.topics["orders"].settings["cleanup.policy"] = "compact"
    _ask(clusters)
    (answer,) = (each.translation for each in _plan(clusters, 185).partitions)
    assert answer.basis is Basis.NEVER_COPIED
    assert answer.uncopied is not None
    assert (answer.uncopied.at_least, answer.uncopied.at_most) == (50, 52)


@pytest.mark.parametrize("markers", [0, 1])
def test_markers_and_other_writers_hide_no_hole(clusters: Pair, markers: int) -> None:
    """The target grows by more than the source all the same."""
    clusters.write("orders", range(END))
    down = -1
    for number in [*range(200), *range(210, END)]:
        clusters.copy("orders", [number])
        down += 1
        if number in {0, 100, 190, 300, END - 1}:
            clusters.sync("orders", (number, down))
        if markers:
            clusters.target.topics["orders"].partitions[0].skip(1)
        else:
            clusters.copy("orders", [10_000 + number])
        down += 1
    _ask(clusters)
    (answer,) = (each.translation for each in _plan(clusters, 150).partitions)
    assert answer.uncopied is not None
    assert (answer.uncopied.first, answer.uncopied.at_most) == (200, 10)


def test_equal_records_are_counted(clusters: Pair) -> None:
    """All records are equal: 100 of them have no copy."""
    clusters.write("orders", [7] * END)
    clusters.copy("orders", [7] * (END - 100))
    clusters.sync("orders", (0, 0), (99, 99), (200, 100), (END - 1, END - 101))
    _ask(clusters)
    (answer,) = (each.translation for each in _plan(clusters, 0).partitions)
    assert answer.uncopied is not None
    assert answer.uncopied.at_least == 100


def test_a_transform_that_changes_records_hides_no_hole(clusters: Pair) -> None:
    """No content can be compared, and before the first copy there is no room for copies."""
    clusters.write("orders", range(END))
    clusters.copy("orders", range(10_100, 10_000 + END))
    clusters.sync("orders", (100, 0), (200, 100), (END - 1, END - 101))
    _ask(clusters, config={"transforms": "c", "transforms.c.type": f"{TRANSFORMS}.ReplaceField"})
    (answer,) = (each.translation for each in _plan(clusters, 40).partitions)
    assert answer.basis is Basis.NEVER_COPIED
    assert answer.uncopied is not None
    assert answer.uncopied.at_least == 60
    assert _plan(clusters, 100).verdict is Verdict.READY


@pytest.mark.parametrize(
    "options", [PlanOptions(max_evidence_bytes=0), PlanOptions(read_source=False)]
)
def test_what_was_not_read_is_not_found(
    clusters: Pair, hole: tuple[int, int], options: PlanOptions
) -> None:
    """Nothing is claimed of records that were not read."""
    (answer,) = (each.translation for each in _plan(clusters, hole[0], options).partitions)
    assert answer.uncopied is None


def test_a_big_hole_is_sampled(
    clusters: Pair, hole: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A part of it is read and counted; what is not read may be lost as well."""
    monkeypatch.setattr(uncopied_ranges, "MAX_WINDOW", 90)
    monkeypatch.setattr(uncopied_ranges, "SAMPLE", 1)
    _ask(clusters)
    first, last = hole
    (answer,) = (each.translation for each in _plan(clusters, first).partitions)
    assert answer.basis is Basis.NEVER_COPIED
    assert answer.uncopied is not None
    number = last - first + 1
    assert 0 < answer.uncopied.at_least <= number <= answer.uncopied.at_most
    most = answer.uncopied.at_most
    assert _plan(clusters, first, PlanOptions(give_up=most - 1)).verdict is Verdict.REFUSED
    assert _plan(clusters, first, PlanOptions(give_up=most)).verdict is Verdict.READY


def test_the_sum_of_all_partitions_is_named(clusters: Pair) -> None:
    """Two partitions lose 100 records each: 100 are too few."""
    for partition in range(2):
        clusters.write("orders", range(END), partition)
        clusters.copy("orders", range(100, END), partition)
        clusters.sync("orders", (100, 0), (END - 1, END - 101), partition=partition)
    positions = {"orders": {0: 0, 1: 0}}
    for give_up, verdict in ((199, Verdict.REFUSED), (200, Verdict.READY)):
        plan = plan_failover(clusters.pair, positions, options=PlanOptions(give_up=give_up))
        assert plan.verdict is verdict


def test_groups_are_not_moved_past_a_hole(clusters: Pair, hole: tuple[int, int]) -> None:
    """Each position of a partition has its own number."""
    first, last = hole
    positions = [first, last, last + 1]
    key = TopicPartition("orders", 0)
    many = translate_many(clusters.pair, {key: positions}, load_syncs(clusters.pair, None))
    answers = {each.position: each for each in many.answers.values()}
    numbers = [each.uncopied.at_most if each.uncopied else 0 for each in answers.values()]
    assert [answers[each].status for each in positions[:2]] == [Status.REFUSED] * 2
    assert answers[last + 1].status is not Status.REFUSED
    assert sorted(numbers) == [0, 1, last - first + 1]
    assert NAMING.target_topic("orders") == "orders"


def _long(clusters: Pair, copied: Iterable[int], *syncs: tuple[int, int]) -> None:
    """Write 4,000 records, and copy some, with few syncs: compaction has removed the others."""
    clusters.write("orders", range(4000))
    clusters.copy("orders", copied)
    clusters.sync("orders", *syncs)
    _ask(clusters)


def _read_little(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uncopied_ranges, "MAX_WINDOW", 1000)
    monkeypatch.setattr(uncopied_ranges, "SAMPLE", 100)


def test_a_hole_before_the_first_known_sync_of_a_long_log(
    clusters: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The target is read back to before the position, by time; what lies before is older."""
    _read_little(monkeypatch)
    _long(clusters, [*range(3900), *range(3950, 4000)], (3950, 3900), (3999, 3949))
    for position in (3880, 3930):
        (answer,) = (each.translation for each in _plan(clusters, position).partitions)
        assert answer.basis is Basis.NEVER_COPIED
        assert answer.uncopied is not None
        assert answer.uncopied.at_least == 3950 - max(position, 3900)
    assert _plan(clusters, 3950).verdict is Verdict.READY


def test_older_copies_of_a_long_log_are_no_hole(
    clusters: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All was copied, then from 3500 on again: the copies of earlier records lie far back."""
    _read_little(monkeypatch)
    _long(clusters, [*range(4000), *range(3500, 4000)], (3500, 4000), (3999, 4499))
    (answer,) = (each.translation for each in _plan(clusters, 3450).partitions)
    assert answer.uncopied is None


def test_a_hole_of_a_hundred_million_records(clusters: Pair) -> None:
    """Its beginning and its end are read; the rest is neither counted nor claimed to be copied."""
    clusters.write("orders", range(40_000))
    clusters.copy("orders", [*range(10), *range(39_990, 40_000)])
    source = clusters.source.topics["orders"].partitions[0]
    assert isinstance(source, SourceLog)
    begin, far = 20_000, 100_000_000
    source.records = {
        (offset if offset < begin else offset + far): record
        for offset, record in source.records.items()
    }
    source.high = 40_000 + far
    clusters.sync("orders", (0, 0), (39_990 + far, 10), (39_999 + far, 19))
    _ask(clusters)
    (answer,) = (each.translation for each in _plan(clusters, 5).partitions)
    assert answer.uncopied is not None
    assert (answer.uncopied.first, answer.uncopied.last) == (10, 39_989 + far)
    assert 20_000 <= answer.uncopied.at_least <= 39_980
    assert far < answer.uncopied.at_most <= far + 39_980
