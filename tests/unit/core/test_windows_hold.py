"""Against simulated runs of MirrorMaker 2, what is made of the records that were read holds."""

from airflow_mm2_offsets.core import (
    Evidence,
    SourceWindow,
    Status,
    TargetWindow,
)
from airflow_mm2_offsets.core.evidence import Content
from airflow_mm2_offsets.core.rules import segments_with
from airflow_mm2_offsets.testing.logs import FOREIGN
from tests.support.world_cases import bounded, read_on, read_on_cases
from tests.support.worlds import RUNS, last_read


def test_a_window_loses_nothing() -> None:
    """Counting what the target delivers holds, also when it was read further than needed."""
    tried = exact = 0
    for case, position, _, (first, last), random in bounded(without=("foreign",)):
        if random.random() < 0.3:
            first = random.randint(0, first)  # noqa: PLW2901
            last = random.randint(last, case.world.target.high - 1)  # noqa: PLW2901
        window = TargetWindow.of(first, last, case.delivered(first, last))
        evidence = Evidence(target=case.target, target_window=window, sole_writer=True)
        case.check(position, evidence)
        tried += 1
        exact += case.answer(position, evidence).status is Status.EXACT
    assert tried > RUNS
    assert exact > tried / 2


def test_a_window_of_equal_records_loses_nothing() -> None:
    """Counting holds where different records have the same content."""
    for case, position, _, (first, last), random in bounded(without=("foreign",)):
        kinds = random.choice((1, 2, 3, 5))
        records = [(offset, each % kinds) for offset, each in case.delivered(first, last)]
        window = TargetWindow.of(first, last, records)
        evidence = Evidence(target=case.target, target_window=window, sole_writer=True)
        case.check(position, evidence)


def test_content_loses_nothing() -> None:
    """Matching by content holds with equal, transformed, deleted and foreign records."""
    proven = 0
    for case, position, (begin, end), (first, last), random in bounded():
        changed, deleted = random.choice((0, 0, 0.3)), random.choice((0, 0, 0.3))
        # All three at once can make each record pass for another.
        kinds = 10**6 if changed and deleted else random.choice((3, 5, 10**6))

        altered = {each for each in case.originals if random.random() < changed}

        def content(original: int, kinds: int = kinds) -> Content:
            return original % kinds

        copies: list[tuple[int, Content]] = [
            (offset, ("other", offset) if original in {FOREIGN, *altered} else content(original))
            for offset, original in case.delivered(first, last)
        ]
        originals = tuple(
            (offset, content(offset))
            for offset in case.originals
            if begin <= offset <= end and random.random() >= deleted
        )
        evidence = Evidence(
            target=case.target,
            target_window=TargetWindow.of(first, last, copies),
            source_window=SourceWindow(first=begin, last=end, records=originals),
        )
        # A deleted record's copy may pass for that of an equal one: more is read again then.
        case.check(position, evidence, upper=not deleted)
        proven += case.answer(position, evidence).basis == "content"
    assert proven > RUNS


def test_content_is_exact_where_records_differ() -> None:
    """Where nothing was copied twice and no two records are equal, content is always exact.

    Between two syncs it is, unless older copies may count.
    """
    tried, barred = 0, ("foreign", "retry", "kill", "commit_unseen")
    for case, position, (begin, end), (first, _), _ in bounded(without=barred):
        if case.world.mirror.settings.exactly_once:  # Markers can hide a second copy at the end.
            continue
        originals = [(each, each) for each in case.originals if begin <= each <= end]
        last = case.target.high - 1  # A second copy may lie after the last sync, too.
        evidence = Evidence(
            target=case.target,
            committed=last_read(case.world),
            source_end=last_read(case.world) + 1,
            target_window=TargetWindow.of(first, last, case.delivered(first, last)),
            source_window=SourceWindow(first=begin, last=end, records=originals),
        )
        segments = segments_with(case.syncs, evidence)
        if segments.older_low(segments.bracket(position)) is not None:
            continue  # By the syncs known, what lies further up may have older copies.
        answer = case.answer(position, evidence)
        assert answer.status is Status.EXACT, (answer, case.world)
        tried += 1
    assert tried > RUNS


def test_a_second_copy_by_content_loses_nothing() -> None:
    """Read on to any sync, with gaps, restarts, late syncs, retries, foreign and equal records."""
    raised = 0
    for case, position, last, random in read_on_cases():
        evidence = read_on(case, position, last, random.choice((2, 3, 5, 8, 10**6)))
        case.check(position, evidence, upper=False)
        end = case.bracket(position).end
        raised += end is not None and (case.answer(position, evidence).target or 0) > end.downstream
    assert raised


def test_a_second_copy_by_content_is_exact_where_records_differ() -> None:
    """Read on to the target's end, each position is exact and true, however late a sync came."""
    tried = late = 0
    for case, position, _, _ in read_on_cases(without=("foreign",)):
        last = case.world.target.high - 1
        if case.delivered(case.syncs.last.downstream + 1, last):
            continue  # Its last sync was lost.
        answer = case.answer(position, read_on(case, position, last, 10**6))
        details = (answer, case.truths[position], case.world)
        assert answer.status is Status.EXACT, details
        assert answer.target == case.truths[position], details
        tried += 1
        late += not case.world.shows_every_rewind
    assert tried > RUNS
    assert late > RUNS / 10
