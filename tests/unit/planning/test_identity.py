"""Copies that keep offsets: what each refusal says, and which settings make no sense."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from airflow_mm2_offsets.archive import SyncArchive
from airflow_mm2_offsets.config import load_settings
from airflow_mm2_offsets.core import (
    Basis,
    FailoverPlan,
    OffsetMapping,
    ReplicationPolicy,
    Status,
    Strategy,
    Translation,
)
from airflow_mm2_offsets.core.forecast import ForecastRequest
from airflow_mm2_offsets.core.policy import DISASTER
from airflow_mm2_offsets.core.summary import summarize
from airflow_mm2_offsets.errors import ConfigurationError
from airflow_mm2_offsets.kafka.syncs import read_syncs
from airflow_mm2_offsets.planning.acls import acls_of
from airflow_mm2_offsets.planning.forecast import forecast_failover
from airflow_mm2_offsets.planning.options import DEFAULT_OPTIONS, PlanOptions
from airflow_mm2_offsets.planning.partial_plan import plan_from_what_is_left
from airflow_mm2_offsets.planning.plan import plan_failover, still_copying
from airflow_mm2_offsets.testing import in_memory_clients
from tests.support.copies import NAMING, TOPIC, Copies, Entry, entries_of, numbered

RECORDS = entries_of([numbered(number) for number in range(20)])
LONG = entries_of([numbered(number) for number in range(5_000)])
LOST = PlanOptions(read_source=False)
BY_WORD = PlanOptions(read_source=False, sole_writer=True)


@pytest.fixture(autouse=True)
def _clients() -> Iterator[None]:
    with in_memory_clients():
        yield


def _plan(copies: Copies, position: int, options: PlanOptions = DEFAULT_OPTIONS) -> FailoverPlan:
    return plan_failover(copies.pair, {TOPIC: {0: position}}, options=options)


def _answer(copies: Copies, position: int, options: PlanOptions = DEFAULT_OPTIONS) -> Translation:
    return _plan(copies, position, options).partitions[0].translation


def test_the_plan_says_by_which_mapping() -> None:
    """In JSON, and read again from it; plans of offset syncs stay as they are."""
    plan = _plan(Copies().fill(RECORDS, RECORDS), 7)
    assert plan.to_json()["mapping"] == "identity"
    assert FailoverPlan.from_json(plan.to_json()) == plan
    assert plan.to_json()["evidence"] == {"source_records": 20, "target_records": 20}
    assert "the copy keeps offsets: 20 records are the same on both clusters" in summarize(plan)


def test_topics_may_have_a_prefix() -> None:
    """As a cluster link gives them one."""
    naming = replace(NAMING, policy=ReplicationPolicy.DEFAULT)
    copies = Copies(naming=naming).fill(RECORDS, RECORDS)
    plan = _plan(copies, 7)
    assert plan.target_positions() == {"a.orders": {0: 7}}


@pytest.mark.parametrize("position", [0, 1, 2_000, 4_999, 5_000])
def test_a_long_copy_is_compared_in_part(position: int) -> None:
    """Around the position, at its end, and by samples."""
    plan = _plan(Copies().fill(LONG, LONG), position)
    assert plan.partitions[0].translation.status is Status.EXACT
    assert 200 <= plan.target_records_read <= 3_000


@pytest.mark.parametrize("differs_at", [4_995, 2_495, 3_100])
def test_a_sample_far_from_the_position_disproves_the_copy(differs_at: int) -> None:
    """At the end, in the middle, and within what is read for equal records."""
    copy = [*LONG]
    copy[differs_at] = Entry(origin=None, record=numbered(9_999))
    refused = _answer(Copies().fill(LONG, copy), 2_900)
    assert refused.basis is Basis.NOT_IDENTICAL
    assert f"at offset {differs_at} of orders[0]" in refused.reason


def test_a_difference_is_named_by_its_parts_alone() -> None:
    """Never by what records hold."""
    parts = {
        "key": numbered(3, key=b"secret"),
        "value": numbered(3)._replace(value=b"secret"),
        "timestamp": numbered(3)._replace(timestamp=1),
        "headers": numbered(3)._replace(headers=(("secret", b"secret"),)),
        "key, value": numbered(3, key=b"secret")._replace(value=None),
    }
    for names, record in parts.items():
        copy = [*RECORDS]
        copy[3] = Entry(origin=None, record=record)
        reason = _answer(Copies().fill(RECORDS, copy), 9).reason
        assert (
            f"at offset 3 of orders[0] the two clusters hold different records ({names} differ)"
            in reason
        )
        assert "secret" not in reason


def test_records_that_are_too_much_to_read_settle_nothing() -> None:
    """Fewer around the position may; else the option is named."""
    large = [each.record for each in LONG if each.record]
    entries = entries_of(
        [each._replace(value=(each.value or b"") + b"." * 1_000) for each in large]
    )
    copies = Copies().fill(entries, entries)
    answer = _answer(copies, 3_000, PlanOptions(max_evidence_bytes=1_000_000))
    assert (answer.status, answer.target) == (Status.EXACT, 3_000)
    answer = _answer(copies, 3_000, PlanOptions(max_evidence_bytes=1_000))
    assert (answer.status, answer.basis) == (Status.BOUNDED, Basis.NOT_COMPARED)
    assert "max_evidence_bytes" in answer.reason


def test_equal_records_leave_a_range() -> None:
    """All from the position back to the last record that tells itself apart may be its copy."""
    same = entries_of([numbered(0), *[numbered(1)] * 10])
    answer = _answer(Copies().fill(same, same), 5)
    assert (answer.status, answer.target, answer.high) == (Status.BOUNDED, 1, None)
    assert answer.basis is Basis.IDENTITY


def test_compaction_on_the_target_is_no_difference() -> None:
    """A record that only the source has was replaced by a later one with its key."""
    copy = [*RECORDS]
    copy[12] = Entry(origin=12, record=None)
    copies = Copies().fill(RECORDS, copy)
    refused = _answer(copies, 7)
    assert (
        "at offset 12 of orders[0] the source has a record and the target has none"
        in refused.reason
    )
    copies.compact(copies.source)  # That explains nothing.
    assert _answer(copies, 7).basis is Basis.NOT_IDENTICAL
    copies.compact(copies.target)
    assert (_answer(copies, 7).status, _answer(copies, 7).target) == (Status.EXACT, 7)


def test_low_watermarks_may_differ() -> None:
    """Retention works on each cluster by itself: what both hold is compared."""
    for source_low, target_low in ((0, 5), (5, 0), (7, 7)):
        copies = Copies().fill(RECORDS, RECORDS)
        copies.source.delete_records(TOPIC, 0, source_low)
        copies.target.delete_records(TOPIC, 0, target_low)
        assert (_answer(copies, 9).status, _answer(copies, 9).target) == (Status.EXACT, 9)
        if target_low:
            assert _answer(copies, 3).basis is Basis.EXPIRED


def test_what_retention_deletes_while_it_is_read_is_no_difference() -> None:
    """The first offsets are read again after the records."""
    copies = Copies().fill(RECORDS, RECORDS)
    answers = iter(range(1_000))

    def delete() -> None:
        if next(answers) == 4:  # after the watermarks of both, before its records
            copies.target.delete_records(TOPIC, 0, 5)

    copies.target.before_answer = delete
    answer = _answer(copies, 9)
    assert copies.target.watermarks(TOPIC, 0).low == 5
    assert (answer.status, answer.target) == (Status.EXACT, 9)


def test_a_transaction_in_flight_is_waited_for() -> None:
    """Until the target has decided what the source has decided before the position."""
    copies = Copies().fill(RECORDS, RECORDS)
    copies.log(copies.target).open_from = 8
    assert _answer(copies, 8).status is Status.EXACT
    assert "a transaction is open on the target from 8 on" in _answer(copies, 8).reason
    assert _answer(copies, 9).basis is Basis.OPEN_TRANSACTION
    assert _answer(copies, 9).status is Status.REFUSED
    assert [each.basis for each in still_copying(copies.pair, {TOPIC: {0: 9}})] == [
        Basis.OPEN_TRANSACTION
    ]
    # The job itself reads uncommitted records: the source has not decided them, either.
    copies.log(copies.source).open_from = 8
    assert (_answer(copies, 9).status, _answer(copies, 9).target) == (Status.EXACT, 9)
    assert still_copying(copies.pair, {TOPIC: {0: 9}}) == ()


def test_a_disaster_ends_at_the_targets_end() -> None:
    """By the word, clamped; the next producer writes on from there."""
    copies = Copies().fill(RECORDS, RECORDS[:10])
    assert _answer(copies, 15).basis is Basis.NOT_REPLICATED_YET
    for options, target, basis in (
        (BY_WORD, 10, Basis.BY_WORD),
        (LOST, 0, Basis.NOT_COMPARED),
    ):
        answer = _answer(copies, 15, options)
        assert (answer.status, answer.target, answer.basis) == (Status.BOUNDED, target, basis)
        assert answer.max_reread is None
    copies.target.delete_records(TOPIC, 0, 1)
    assert _answer(copies, 15, LOST).status is Status.REFUSED


def test_the_forecast_of_a_disaster_counts_the_transaction_in_flight() -> None:
    """An abort drops what the source may have committed."""
    copies = Copies().fill(RECORDS, RECORDS[:10])
    copies.log(copies.target).open_from = 7
    copies.source.is_running = False
    plan = plan_from_what_is_left(copies.pair, {TOPIC: {0: 8}}, options=BY_WORD)
    answer = plan.partitions[0].translation
    assert (answer.basis, answer.target) == (Basis.OPEN_TRANSACTION, 8)
    assert "loses up to 2 offsets" in answer.reason
    request = ForecastRequest(policy=DISASTER, plan_digest=plan.to_json()["digest"])
    (line,) = forecast_failover(copies.pair, plan, request).partitions
    assert line.at_risk.at_most is None
    assert "at most 2 offsets of open transactions on the target are lost" in line.at_risk_basis
    copies.source.is_running = True
    (line,) = forecast_failover(copies.pair, plan, request).partitions
    assert line.at_risk.at_most == 10 + 2


def test_nothing_is_copied_that_others_wrote() -> None:
    """The target may not end after its source; on the way home, what is left may not."""
    copies = Copies().fill(RECORDS[:10], RECORDS)
    assert _answer(copies, 5).basis is Basis.NOT_IDENTICAL
    home = plan_failover(copies.pair.exchanged(), {TOPIC: {0: 5}}).partitions[0].translation
    assert home.basis is Basis.OTHER_WRITER
    copies = Copies().fill(RECORDS, RECORDS[:10])
    home = plan_failover(copies.pair.exchanged(), {TOPIC: {0: 5}}).partitions[0].translation
    assert (home.status, home.target) == (Status.EXACT, 5)


@pytest.mark.parametrize(
    ("options", "setting"),
    [
        (PlanOptions(archive=SyncArchive("memory://syncs")), "archive"),
        (PlanOptions(strategy=Strategy.LINEAR), "strategy"),
    ],
)
def test_options_about_offset_syncs_are_refused(options: PlanOptions, setting: str) -> None:
    """They would be without effect, in silence."""
    copies = Copies().fill(RECORDS, RECORDS)
    with pytest.raises(ConfigurationError, match="the copy keeps offsets") as caught:
        _plan(copies, 5, options)
    assert caught.value.fields["setting"] == setting


def test_no_syncs_topic_is_named() -> None:
    """Whoever wants to read, list or archive it is told; a right on it is not asked for."""
    pair = Copies().fill(RECORDS, RECORDS).pair
    with pytest.raises(ConfigurationError, match="there is no offset-syncs topic"):
        read_syncs(pair.syncs_cluster, pair.syncs_topic)
    names = {each.acl.name for each in acls_of(pair, "translate", [TOPIC])}
    assert names == {TOPIC}


@pytest.mark.parametrize(
    ("task", "sides"),
    [
        *((task, ["source", "target"]) for task in ("translate", "forecast", "check", "failover")),
        ("TranslateOffsetsOperator", ["source", "target"]),
        *(("wait", []), ("ids", []), ("stream", [])),
    ],
)
def test_a_plan_needs_the_right_to_read_settings(task: str, sides: list[str]) -> None:
    """Only they tell that compaction explains a record that one cluster alone has."""
    rights = acls_of(Copies().pair, task, ["orders"])
    on_settings = [each for each in rights if str(each.acl) == "DescribeConfigs on topic orders"]
    assert sorted(each.side for each in on_settings) == sides
    pair_of_syncs = replace(Copies().pair, mapping=OffsetMapping.OFFSET_SYNCS)
    described = [
        each.side
        for each in acls_of(pair_of_syncs, task, ["orders"])
        if str(each.acl) == "DescribeConfigs on topic orders"
    ]
    assert described == [side for side in sides if side == "target"]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("mapping = same", "'same'; give one of offset_syncs, identity"),
        ("mapping = identity\narchive = /syncs", "leave out .*archive"),
        ("mapping = identity\nconnect.url = http://connect:8083", "leave out .*connect.url"),
    ],
)
def test_settings_that_contradict_the_mapping_are_refused(
    tmp_path: Path, line: str, problem: str
) -> None:
    """With the line of each."""
    file = tmp_path / "mm2.properties"
    servers = "source.bootstrap.servers = a:1\ntarget.bootstrap.servers = b:1\n"
    file.write_text(servers + line + "\n")
    with pytest.raises(ConfigurationError, match=problem):
        load_settings(file, {})
    file.write_text(f"{servers}mapping = identity\n")
    assert not load_settings(file, {}).pair().has_syncs


def _same(*values: int) -> list[Entry]:
    return entries_of([numbered(value) for value in values])


def test_a_record_that_the_source_has_twice_proves_nothing() -> None:
    """The one copy may be that of the second record, beyond the end of the copy."""
    copies = Copies().fill(_same(1, 1), [Entry(origin=1, record=numbered(1))])
    answer = _answer(copies, 1)
    assert (answer.status, answer.target) == (Status.BOUNDED, 0)
    assert not copies.lost(1, 0)


def test_a_record_that_home_has_twice_proves_nothing() -> None:
    """The copy that the job has read may be that of the second record."""
    copies = Copies().fill(_same(1, 1), _same(1))
    home = plan_failover(copies.pair.exchanged(), {TOPIC: {0: 1}}).partitions[0].translation
    assert (home.status, home.target) == (Status.BOUNDED, 0)


def test_a_compacted_record_at_the_position_leaves_a_range() -> None:
    """Its copy is gone, or lies among the equal ones before it."""
    copy = [*_same(1, 1), Entry(origin=2, record=None), *_same(0, 0, 0, 3)[3:]]
    copies = Copies().fill(_same(1, 1, 2, 3), copy)
    copies.compact(copies.target)
    answer = _answer(copies, 2)
    assert (answer.status, answer.target, answer.high) == (Status.BOUNDED, 0, 3)


def test_what_is_copied_while_the_ends_are_read_is_no_longer_copy() -> None:
    """The end of the copy is read first."""
    copies = Copies().fill(RECORDS, RECORDS)

    def write() -> None:
        record = numbered(copies.log(copies.source).high)
        for cluster in (copies.source, copies.target):
            cluster.produce(TOPIC, 0, [record])

    copies.target.before_answer = write
    assert (_answer(copies, 9).status, _answer(copies, 9).target) == (Status.EXACT, 9)
