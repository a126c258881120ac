"""Recorded runs of real MirrorMaker 2: nothing is lost, and little is read again."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pytest

from airflow_mm2_offsets.core import (
    Basis,
    Evidence,
    Extras,
    Status,
    Strategy,
    SyncIndex,
    Translation,
)
from airflow_mm2_offsets.core.epochs import PartitionSyncs
from tests.support.golden import (
    BURSTS,
    NAMES,
    NO_EXTRAS,
    RECORDED_KINDS,
    GoldenPartition,
    GoldenSet,
    golden_set,
)

STRIDE = 7
"""Of the sampled positions: that of the published numbers."""
COARSE = 5 * STRIDE
"""Where no number is claimed, or a window is cut for each position."""
SOLE_WRITER = tuple(name for name in NAMES if RECORDED_KINDS[name] != "foreign")
AT_MOST: Mapping[str, float] = {"eos": 4, "compacted": 3, "aborts": 5, "filtered": 64}
"""Records read again on average, by kind; of other kinds a third of one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    translation: Translation
    partition: GoldenPartition
    syncs: PartitionSyncs

    @property
    def truth(self) -> int:
        return self.partition.truth(self.translation.position)

    @property
    def reread(self) -> int:
        assert self.translation.target is not None
        return self.partition.reread(self.translation.position, self.translation.target)


def answers(
    golden: GoldenSet,
    *,
    extras: Extras = Extras.POSSIBLE,
    strategy: Strategy = Strategy.SAFE,
    index: SyncIndex | None = None,
    stride: int = STRIDE,
    reads_source: bool = False,
) -> Iterator[Answer]:
    index = index or golden.index
    for number, partition, position in golden.positions(stride):
        source = partition.source if reads_source else None
        translation = index.translate(
            golden.topic,
            number,
            position,
            strategy=strategy,
            evidence=Evidence(extras=extras, source=source, target=partition.target),
        )
        syncs = index.partitions[translation.topic_partition]
        yield Answer(translation=translation, partition=partition, syncs=syncs)


def answers_from_target(golden: GoldenSet) -> Iterator[Answer]:
    for first in answers(golden, stride=COARSE):
        partition, position = first.partition, first.translation.position
        evidence = Evidence(
            target=partition.target,
            target_window=partition.target_window(first.translation),
            sole_writer=golden.name in SOLE_WRITER,
        )
        translation = golden.index.translate(
            golden.topic, first.translation.partition, position, evidence=evidence
        )
        yield Answer(translation=translation, partition=partition, syncs=first.syncs)


def answers_from_both(golden: GoldenSet) -> Iterator[Answer]:
    for first in answers(golden, stride=COARSE):
        partition, before = first.partition, first.translation
        marks = Evidence(
            source=partition.source,
            target=partition.target,
            sole_writer=golden.name in SOLE_WRITER,
        )
        translation = golden.read_both(before.partition, before.position, marks)
        yield Answer(translation=translation, partition=partition, syncs=first.syncs)


def check(answers: list[Answer]) -> float:
    """Check that nothing is refused or lost; return how many records are read again on average."""
    for compared in answers:
        answer = compared.translation
        assert answer.status is not Status.REFUSED, answer
        assert answer.target is not None
        assert answer.target <= compared.truth, (answer, compared.truth)
        if answer.high is None:
            assert answer.position > compared.syncs.last.upstream, answer
        else:
            assert compared.truth <= answer.high, (answer, compared.truth)
        assert answer.status is Status.BOUNDED or answer.target == compared.truth
    return sum(compared.reread for compared in answers) / len(answers)


@pytest.mark.parametrize("name", NAMES)
def test_loses_nothing_without_evidence(name: str) -> None:
    """The default answers every position, at or below the truth, with the truth in its bounds."""
    check(list(answers(golden_set(name))))


@pytest.mark.parametrize("name", [name for name in NAMES if RECORDED_KINDS[name] == "restart"])
def test_a_killed_mirror_has_copied_again(name: str) -> None:
    """Without duplicate copies the recording would show nothing of a restart."""
    partitions = golden_set(name).partitions.values()
    assert any(len(each.copies) > len(each.originals) for each in partitions)


@pytest.mark.parametrize("name", [name for name in NO_EXTRAS if name not in BURSTS])
def test_reads_little_again_where_there_are_no_extras(name: str) -> None:
    """Where the target has no extra offsets, the two-sided bound is close, and loses nothing."""
    reread = check(list(answers(golden_set(name), extras=Extras.NONE)))
    assert reread <= AT_MOST.get(RECORDED_KINDS[name], 0.3)


@pytest.mark.parametrize("name", [name for name in SOLE_WRITER if name not in BURSTS])
def test_reads_little_again_where_the_target_was_read(name: str) -> None:
    """Counting records on the target is as close as knowing that there are no extras."""
    compared_answers = answers_from_target(golden_set(name))
    assert check(list(compared_answers)) <= AT_MOST.get(RECORDED_KINDS[name], 0.3)


@pytest.mark.parametrize("with_source", [False, True])
@pytest.mark.parametrize("name", BURSTS)
def test_reads_no_more_again_than_mirror_maker_where_it_drops_syncs(
    name: str,
    with_source: bool,  # noqa: FBT001
) -> None:
    """However far the next sync is, no answer lies before that of MM2's own rule.

    Where MM2 dropped the first sync of a partition, that needs both clusters' records: copies may
    lie before the first one that is known.
    """
    read = answers_from_both if with_source else answers_from_target
    compared_answers = list(read(golden_set(name)))
    check(compared_answers)
    for compared in compared_answers:
        answer = compared.translation
        kafka = golden_set(name).index.translate(
            answer.topic, answer.partition, answer.position, strategy=Strategy.KAFKA
        )
        assert answer.target is not None
        if with_source or compared.syncs.first.downstream == 0:
            assert kafka.target is None or answer.target >= kafka.target
        else:
            assert (answer.basis, answer.target) == (Basis.COPYING_AGAIN, 0)


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_read_again_where_both_clusters_are_read(name: str) -> None:
    """What a plan reads of both sides finds the truth, also with another writer on the target.

    Nearly all answers are exact. After the last sync, content shows the lower bound alone.
    """
    compared_answers = list(answers_from_both(golden_set(name)))
    assert check(compared_answers) == 0
    exact = sum(compared.translation.status is Status.EXACT for compared in compared_answers)
    assert exact >= (0.96 if name in BURSTS else 0.98) * len(compared_answers)


def test_reads_little_again_beside_another_writer() -> None:
    """Another writer's records, declared, cost at most 50 records on average.

    One of them lies before the first sync of a partition, so the source's end must be known.
    """
    compared_answers = answers(golden_set("foreign"), extras=Extras.POSSIBLE, reads_source=True)
    assert check(list(compared_answers)) <= 50


@pytest.mark.parametrize(
    ("name", "percent"), [("aborts", 18.6), ("filtered", 90.7), ("compacted", 18.8)]
)
def test_linear_loses_where_offsets_have_gaps(name: str, percent: float) -> None:
    """The straight line loses as many positions as was published for the recordings."""
    golden = golden_set(name)
    sampled = losing = 0
    for number, partition, position in golden.positions(STRIDE):
        line = golden.index.translate(golden.topic, number, position, strategy=Strategy.LINEAR)
        sampled += 1
        losing += line.target is not None and line.target > partition.truth(position)
    assert 100 * losing / sampled == pytest.approx(percent, abs=0.2)


@pytest.mark.parametrize("name", NAMES)
def test_kafka_loses_nothing(name: str) -> None:
    """MirrorMaker 2's own rule, on all syncs, stays at or below the truth."""
    for compared in answers(golden_set(name), strategy=Strategy.KAFKA, stride=COARSE):
        target = compared.translation.target
        assert target is None or target <= compared.truth


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("extras", list(Extras))
def test_the_compacted_view_loses_nothing(name: str, extras: Extras) -> None:
    """The last sync of each partition alone answers at or below the truth, or refuses."""
    if extras is Extras.NONE and name not in NO_EXTRAS:
        pytest.skip("the set has extras")
    golden = golden_set(name)
    for compared in answers(golden, extras=extras, index=golden.compacted(), stride=COARSE):
        target, high = compared.translation.target, compared.translation.high
        assert target is None or target <= compared.truth
        assert high is None or high >= compared.truth
