"""Offsets of the two logs are never compared, only differences within one log.

Two properties follow. All source offsets moved by a constant change no target position. All target
offsets moved by a constant, with the offset below which no copy counts, move every answer by it.
They hold for each face of the rule: one position, numpy, the tables of a Spark job, an archive.

A target that moves alone, without the offset below which no copy counts, is another world: it held
more before the first known sync, so more may have been copied before.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from random import Random
from tempfile import TemporaryDirectory
from typing import TypeAlias

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from airflow_mm2_offsets.archive import SyncArchive
from airflow_mm2_offsets.bulk import NONE, translate_many
from airflow_mm2_offsets.core import Extras, SyncIndex, SyncsLocation, TopicPartition
from airflow_mm2_offsets.core.bracket import END
from airflow_mm2_offsets.core.epochs import Beginning, History, PartitionSyncs
from airflow_mm2_offsets.core.rows import rows_of
from airflow_mm2_offsets.errors import Mm2OffsetsError
from airflow_mm2_offsets.job.translation.tables import tables_of
from airflow_mm2_offsets.planning.plan import plan_failover
from airflow_mm2_offsets.testing import in_memory_clients
from tests.support.mirror_world.cases import world_steps
from tests.support.mirror_world.clusters import TOPIC, Reach, WorldClusters
from tests.support.mirror_world.settings import MirrorSettings
from tests.support.mirror_world.steps import Step
from tests.support.mirror_world.world import MirrorWorld
from tests.unit.archive.archive_builder import Sync, append
from tests.unit.job.test_tables import look_up

ORDERS = TopicPartition(TOPIC, 0)
MOVES = st.sampled_from((1, 30, 10**6, 10**12))

Answer: TypeAlias = tuple[int, int | None] | None
"""The lower and the upper bound; None for a refusal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """The syncs of a partition, what is known of the time before, and positions to ask for."""

    pairs: tuple[tuple[int, int], ...]
    history: History = History.UNKNOWN
    settled_below: int = 0
    source_end: int | None = None
    """The source's end when an archive had read the first sync."""
    cut: int = 0
    """So many syncs an archive's retention drops."""
    at: int = 0
    """How far the source was moved."""

    def moved(self, *, source: int = 0, target: int = 0) -> "Log":
        """Return the log with all offsets of one cluster moved."""
        end = self.source_end
        return replace(
            self,
            pairs=tuple((up + source, down + target) for up, down in self.pairs),
            settled_below=self.settled_below + target,
            source_end=None if end is None else end + source,
            at=self.at + source,
        )

    @property
    def positions(self) -> range:
        """Positions before, among and after the syncs."""
        return range(self.at, max(up for up, _ in self.pairs) + 4)

    @property
    def syncs(self) -> PartitionSyncs:
        """The syncs as core indexes them."""
        return PartitionSyncs(
            self.pairs,
            beginning=Beginning(
                history=self.history,
                settled_below=self.settled_below,
                source_end=END if self.source_end is None else self.source_end,
            ),
        )


def _one(index: SyncIndex, positions: Iterable[int]) -> list[Answer]:
    answers = (index.translate(*ORDERS, position) for position in positions)
    return [None if each.low is None else (each.low, each.high) for each in answers]


def by_one(log: Log) -> list[Answer]:
    """Ask for one position after the other."""
    return _one(SyncIndex.of_partitions({ORDERS: log.syncs}), log.positions)


def by_numpy(log: Log) -> list[Answer]:
    """Ask for all positions at once."""
    many = translate_many(SyncIndex.of_partitions({ORDERS: log.syncs}), *ORDERS, log.positions)
    return _answers(zip(many.low.tolist(), many.high.tolist(), strict=True))


def by_tables(log: Log) -> list[Answer]:
    """Look the positions up in the tables of a Spark job."""
    tables = [*tables_of(rows_of(log.syncs), extras=Extras.POSSIBLE, most=2**20)]
    found = (look_up(tables, position)[:2] for position in log.positions)
    return [None if low is None else (low, high) for low, high in found]


def by_archive(log: Log) -> list[Answer]:
    """Ask an archive that has dropped the first syncs for their age, or never had the first."""
    return _one(_archived(log), log.positions)


def _archived(log: Log) -> SyncIndex:
    syncs: list[Sync | None] = [(*ORDERS, *pair) for pair in log.pairs]
    if not log.cut and log.history is not History.COMPLETE:
        syncs.insert(0, None)
    end = log.positions.stop if log.source_end is None else log.source_end
    with TemporaryDirectory() as folder:
        archive = SyncArchive(folder)
        append(archive, syncs, 0, log.cut, time=0, source_end=end)
        append(archive, syncs, log.cut, len(syncs), time=4_000_000_000_000, source_end=end)
        archive.compact(over=0, keep=timedelta(days=1))
        return archive.read().index()


def _answers(bounds: Iterable[tuple[int, int]]) -> list[Answer]:
    return [None if low == NONE else (low, None if high == NONE else high) for low, high in bounds]


FACES = (by_one, by_numpy, by_tables)


@st.composite
def logs(draw: st.DrawFn, histories: Sequence[History] = tuple(History)) -> Log:
    """Draw syncs with rewinds, truncated targets, gaps and surplus; the first is anywhere."""
    lowest_up, lowest_down = draw(st.sampled_from(((-12, -3), (-3, 1), (1, 1))))
    step = st.tuples(st.integers(lowest_up, 6), st.integers(lowest_down, 7))
    steps = draw(st.lists(step, max_size=12))
    pairs = [(draw(st.integers(0, 40)), draw(st.integers(0, 40)))]
    for up, down in steps:
        pairs.append((pairs[-1][0] + up, max(0, pairs[-1][1] + down)))
    lowest = min(0, *(up for up, _ in pairs))
    pairs = [(up - lowest, down) for up, down in pairs]
    history = draw(st.sampled_from(histories))
    first = pairs[0]
    return Log(
        pairs=tuple(pairs),
        history=history,
        settled_below=draw(st.integers(0, first[1])) if history is History.CUT else 0,
        source_end=draw(st.sampled_from((None, first[0], first[0] + 5))),
        cut=draw(st.integers(0, len(pairs) - 1)),
    )


def _refilled(history: History) -> Log:
    """Return the log of a target that held 30 offsets before the first known sync."""
    return Log(pairs=((20, 30), (24, 34), (28, 38)), history=history)


@pytest.mark.parametrize("face", [*FACES, by_archive])
@example(log=_refilled(History.UNKNOWN), move=1000)
@example(log=_refilled(History.COMPLETE), move=1000)
@example(log=_refilled(History.LATE), move=1000)
@example(log=_refilled(History.CUT), move=1000)
@settings(max_examples=100, deadline=None, derandomize=True)
@given(log=logs(), move=MOVES)
def test_a_moved_source_changes_no_answer(
    face: Callable[[Log], list[Answer]], log: Log, move: int
) -> None:
    """Retention may have deleted any number of records before MirrorMaker 2 began."""
    assert face(log.moved(source=move)) == face(log)


@pytest.mark.parametrize("face", FACES)
@settings(max_examples=100, deadline=None, derandomize=True)
@given(log=logs((History.CUT,)), move=MOVES)
def test_a_moved_target_moves_each_answer(
    face: Callable[[Log], list[Answer]], log: Log, move: int
) -> None:
    """What is refused stays refused: its answer would be the beginning, which is cut.

    A target that steps back may be a new one, whose first offset has not moved.
    """
    assume(log.syncs.beginning.history is History.CUT)
    assert face(log.moved(target=move)) == _moved(face(log), move)


@pytest.mark.parametrize("move", [1, 40, 10**12])
@pytest.mark.parametrize(
    "more",
    [((200, 200), (230, 225)), ((150, 200), (160, 225), (170, 235)), ((200, 210), (215, 211))],
    ids=["gap", "rewind", "surplus"],
)
def test_a_moved_target_moves_each_answer_of_an_archive(
    more: tuple[tuple[int, int], ...], move: int
) -> None:
    """Where retention has dropped syncs, the archive notes below which offset no copy counts."""
    rising = ((10 * number, 10 * number) for number in range(20))
    log = Log(pairs=(*rising, *more), cut=12)
    index = _archived(log)
    left = index.partitions[ORDERS]
    assert left.beginning.history is History.CUT
    pairs = tuple(zip(left.upstream, left.downstream, strict=True))
    below = left.beginning.settled_below
    moved = Log(pairs=pairs, history=left.beginning.history, settled_below=below)
    assert by_one(moved.moved(target=move)) == _moved(_one(index, log.positions), move)


def _moved(answers: Iterable[Answer], move: int) -> list[Answer]:
    return [
        answer and (answer[0] + move, None if answer[1] is None else answer[1] + move)
        for answer in answers
    ]


@example(
    steps=[Step("grow", 40), Step("copy", 30), Step("reinstall"), Step("copy", 20)],
    move=1000,
    lag_max=3,
    cleaned=2,
)
@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    steps=world_steps(without=("recreate_source",)),
    move=MOVES,
    lag_max=st.integers(0, 9),
    cleaned=st.integers(0, 5),
)
def test_a_moved_source_changes_no_plan(
    steps: list[Step], move: int, lag_max: int, cleaned: int
) -> None:
    """With watermarks, records and Connect's offsets, which move as well."""
    moved, unmoved = (_planned(steps, lag_max, cleaned, begin) for begin in (move, 0))
    assert moved == unmoved


def _planned(steps: list[Step], lag_max: int, cleaned: int, begin: int) -> list[tuple[object, ...]]:
    random = Random(0)  # noqa: S311 - the same steps make the same world
    world = MirrorWorld(MirrorSettings(lag_max=lag_max), random, begin=begin)
    world.run([Step("grow", 2), Step("copy", 1), *steps])
    numbers = range(0, world.source.high + 1 - begin, 3)
    with in_memory_clients():
        cleaned = min(cleaned, max(0, len(world.syncs.syncs) - 1))
        reach = Reach(partitions=len(numbers), cleaned=cleaned)
        clusters = WorldClusters(world, reach, on=SyncsLocation.TARGET)
        positions = {TOPIC: {at: begin + number for at, number in enumerate(numbers)}}
        try:
            partitions = plan_failover(clusters.pair, positions).partitions
        except Mm2OffsetsError as error:
            return [(type(error),)]
    answers = (each.translation for each in partitions)
    return [(each.status, each.basis, each.target, each.low, each.high) for each in answers]
