"""No plan of mapping ``identity`` loses a record, whatever a copy is that seems to keep offsets.

``make soak`` has no entry for it: a thousand worlds take a second.
"""

from dataclasses import dataclass, replace

from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_mm2_offsets.core import Basis, Status, Translation
from airflow_mm2_offsets.planning.options import PlanOptions
from airflow_mm2_offsets.planning.plan import plan_failover
from airflow_mm2_offsets.testing import Record, in_memory_clients
from airflow_mm2_offsets.testing.logs import FIRST_TIMESTAMP
from tests.support.copies import TOPIC, Copies, Entry, entries_of, numbered

HONEST = ("identical", "lagging", "compacted")
LIES = (
    *("record missing", "record twice", "foreign record", "record differs"),
    *("stamped anew", "truncated and diverged", "another topic"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """A source, a copy, and a job's position."""

    source: list[Entry]
    target: list[Entry]
    kind: str
    position: int
    source_low: int
    target_low: int
    open_from: int | None

    def copies(self) -> Copies:
        """Return the clusters."""
        copies = Copies().fill(self.source, self.target)
        if self.kind == "compacted":
            copies.compact(copies.target)
        source, target = copies.log(copies.source), copies.log(copies.target)
        if self.open_from is not None and self.open_from < source.high:
            source.open_from = self.open_from
            target.open_from = self.open_from if self.open_from < target.high else None
        copies.source.delete_records(TOPIC, 0, self.source_low)
        copies.target.delete_records(TOPIC, 0, self.target_low)
        return copies


@st.composite
def _records(draw: st.DrawFn) -> list[Record | None]:
    """Return records and markers; few or many of them are equal."""
    contents = draw(st.sampled_from([1, 3, 50]))
    numbers = draw(st.lists(st.integers(-1, contents - 1), min_size=1, max_size=30))
    distinct = contents == 50
    return [
        None if number < 0 else numbered(offset if distinct else number)
        for offset, number in enumerate(numbers)
    ]


def _copy(draw: st.DrawFn, kind: str, source: list[Entry]) -> list[Entry]:
    at = draw(st.integers(0, len(source) - 1))
    size = draw(st.integers(1, 5))
    copy = list(source)
    foreign = Entry(origin=None, record=Record(b"foreign", b"foreign"))
    match kind:
        case "lagging":
            copy = copy[:at]
        case "compacted":
            # The last record of a key stays, and the key is that of all.
            last = max((n for n, each in enumerate(copy) if each.record), default=0)
            copy = [
                replace(each, record=None)
                if number in range(at, at + size) and number < last
                else each
                for number, each in enumerate(copy)
            ]
        case "record missing":
            copy = copy[:at] + copy[at + size :]
        case "record twice":
            copy = copy[: at + size] + copy[at:]
        case "foreign record":
            copy = [*copy[:at], foreign, *copy[at:]]
        case "record differs":
            copy = [*copy[:at], foreign, *copy[at + 1 :]]
        case "stamped anew":
            copy = [
                replace(
                    each, record=each.record and each.record._replace(timestamp=FIRST_TIMESTAMP - 1)
                )
                for each in copy
            ]
        case "truncated and diverged":
            copy = copy[:at] + [foreign] * draw(st.integers(0, 2)) + copy[at + size :]
        case "another topic":
            copy = [
                Entry(origin=None, record=Record(b"other", b"%d" % number))
                for number in range(draw(st.integers(0, 40)))
            ]
    return copy[: draw(st.integers(0, len(copy)))] if draw(st.booleans()) else copy


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """Return a world."""
    kind = draw(st.sampled_from(HONEST + LIES))
    source = entries_of(draw(_records()))
    target = _copy(draw, kind, source)
    return World(
        source=source,
        target=target,
        kind=kind,
        position=draw(st.integers(0, len(source))),
        source_low=draw(st.sampled_from([0, 0, draw(st.integers(0, len(source)))])),
        target_low=draw(st.sampled_from([0, 0, draw(st.integers(0, len(target)))])),
        open_from=draw(st.sampled_from([None, None, draw(st.integers(0, len(source)))])),
    )


def _answer(world: World, options: PlanOptions) -> tuple[Copies, Translation]:
    with in_memory_clients():
        copies = world.copies()
        plan = plan_failover(copies.pair, {TOPIC: {0: world.position}}, options=options)
    return copies, plan.partitions[0].translation


@settings(max_examples=300, deadline=None, derandomize=True)
@given(worlds())
def test_no_answer_loses_a_record(world: World) -> None:
    """Neither of an identical copy, nor of one that lies, by the records or without them."""
    for options in (
        PlanOptions(),
        PlanOptions(max_evidence_bytes=0),
        PlanOptions(read_source=False),
    ):
        copies, answer = _answer(world, options)
        if answer.target is not None:
            assert not copies.lost(world.position, answer.target), answer
        if answer.status is Status.EXACT and world.kind in HONEST:
            assert answer.target == world.position


@settings(max_examples=150, deadline=None, derandomize=True)
@given(worlds())
def test_an_identical_copy_is_answered(world: World) -> None:
    """What was copied has an answer, and it is EXACT where the records tell themselves apart."""
    if world.kind != "identical" or not world.target_low <= world.position <= len(world.target):
        return
    _, answer = _answer(world, PlanOptions())
    if answer.basis is Basis.OPEN_TRANSACTION:
        return  # the copy ends in a transaction
    assert answer.basis is not Basis.NOT_IDENTICAL, answer
    records = [each.record for each in world.source if each.record]
    has_common = max(world.source_low, world.target_low) == 0 and any(
        each.record for each in world.target
    )
    if len({*records}) == len(records) and has_common:
        assert (answer.status, answer.target) == (Status.EXACT, world.position), answer


@settings(max_examples=150, deadline=None, derandomize=True)
@given(worlds())
def test_the_users_word_loses_nothing_of_an_honest_copy(world: World) -> None:
    """Without the source, and clamped to the target's end."""
    if world.kind not in HONEST:
        return
    copies, answer = _answer(world, PlanOptions(read_source=False, sole_writer=True))
    if answer.target is not None:
        assert answer.status is Status.BOUNDED
        assert answer.target == min(world.position, len(world.target))
        assert not copies.lost(world.position, answer.target), answer
