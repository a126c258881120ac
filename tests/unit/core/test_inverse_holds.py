"""The way home loses nothing: in simulated worlds of each kind, and in recorded runs."""

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_mm2_offsets.core import Basis, SourceWindow, Status, TopicPartition
from airflow_mm2_offsets.core.evidence import RecordWindow
from airflow_mm2_offsets.core.inverse import translate_back
from airflow_mm2_offsets.core.inverse_evidence import FirstMove, InverseEvidence
from tests.support.golden import NAMES, RECORDED_KINDS, GoldenPartition, golden_set
from tests.support.mirror_world.kinds import KINDS, Kind
from tests.support.mirror_world.way_home import (
    Homecomings,
    draw_away,
    judge_homecomings,
    soak,
)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_the_way_home_loses_nothing(kind: Kind) -> None:
    """By the syncs alone, and by records; EXACT answers read nothing again without records."""
    results = soak(1, 60, (kind,), alone=True)
    assert results.lost == []
    assert results.positions > results.refused


def test_the_way_home_loses_nothing_where_kinds_meet() -> None:
    """The same in worlds of several kinds."""
    assert soak(2, 600, alone=False).lost == []


@settings(max_examples=300, deadline=None, derandomize=True)
@given(
    st.integers(0, 2**32),
    st.lists(st.sampled_from(KINDS), min_size=1, max_size=4, unique_by=lambda kind: kind.name),
)
def test_the_way_home_loses_nothing_in_any_world(seed: int, kinds: list[Kind]) -> None:
    """The same in worlds that Hypothesis picks."""
    results = Homecomings()
    judge_homecomings(draw_away(seed, *kinds), results)
    assert results.lost == []


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("reads_records", [False, True], ids=["syncs", "records"])
def test_recorded_runs_come_home(name: str, reads_records: bool) -> None:  # noqa: FBT001
    """Of each recorded run of MirrorMaker 2, no position on B loses a record on A.

    The job was moved to B at the beginning, or after a third of the records.
    """
    golden = golden_set(name)
    exact = reread = positions = 0
    for number, partition in golden.partitions.items():
        key = TopicPartition(golden.topic, number)
        syncs = golden.index.partitions[key]
        for move in _moves(partition):
            evidence = _evidence(partition, move, reads_records=reads_records)
            for position in range(move.start, partition.target.high + 1, 97):
                answer = translate_back(syncs, key, position, evidence)
                if answer.target is None:
                    continue
                positions += 1
                read = {copied for at, copied in partition.records if move.start <= at < position}
                needed = (
                    each
                    for each in partition.originals
                    if each >= move.position and each not in read
                )
                assert answer.target <= min(needed, default=partition.source.high), answer
                again = sum(original >= answer.target for original in read)
                exact += answer.status is Status.EXACT
                reread += again
                assert answer.status is not Status.EXACT or again == 0, answer
    gapped = {"foreign", "compacted", "filtered", "aborts", "restart"}
    if reads_records and RECORDED_KINDS[name] not in gapped:
        assert exact == positions
        assert reread == 0
    assert positions or name == "foreign"


@pytest.mark.parametrize("reads_records", [False, True], ids=["syncs", "records"])
def test_without_the_first_plan_every_position_is_refused(reads_records: bool) -> None:  # noqa: FBT001
    """The job may have begun anywhere on B: a record below the position need not have been read."""
    golden = golden_set("plain1")
    for number, partition in golden.partitions.items():
        key = TopicPartition(golden.topic, number)
        evidence = _evidence(partition, None, reads_records=reads_records)
        for position in range(0, partition.target.high + 1, 97):
            answer = translate_back(golden.index.partitions[key], key, position, evidence)
            assert (answer.status, answer.basis) == (Status.REFUSED, Basis.FIRST_PLAN)
            assert answer.target is None


def _moves(partition: GoldenPartition) -> Iterator[FirstMove]:
    for position in (0, partition.source.high // 3):
        yield FirstMove(position=position, start=partition.truth(position))


def _evidence(
    partition: GoldenPartition, first: FirstMove | None, *, reads_records: bool
) -> InverseEvidence:
    if not reads_records:
        return InverseEvidence(
            home=partition.source, away=partition.target, first=first, sole_writer=True
        )
    return InverseEvidence(
        home=partition.source,
        away=partition.target,
        first=first,
        originals=SourceWindow(
            first=0,
            last=partition.source.high - 1,
            records=tuple((offset, offset) for offset in partition.originals),
        ),
        copies=RecordWindow(
            first=0,
            last=partition.target.high - 1,
            records=tuple(
                (offset, original if original >= 0 else ("other", offset))
                for offset, original in partition.records
            ),
        ),
    )


def test_nothing_is_read_again_where_nothing_is_in_the_way() -> None:
    """In plain worlds with records read, nearly all answers are EXACT."""
    results = soak(1, 60, (KINDS[0],), alone=True)
    answered = results.positions - results.refused
    assert results.exact > answered / 2
    assert results.exact_reread == 0
