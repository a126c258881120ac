"""Brings a job home in simulated worlds, and compares the inverse translation with the truth."""

import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from random import Random
from typing import Any

from airflow_mm2_offsets.core import SourceWindow, Status, TopicPartition, Translation, Watermarks
from airflow_mm2_offsets.core.epochs import PartitionSyncs
from airflow_mm2_offsets.core.evidence import RecordWindow
from airflow_mm2_offsets.core.inverse import translate_back
from airflow_mm2_offsets.core.inverse_evidence import FirstMove, InverseEvidence
from airflow_mm2_offsets.core.rules import translate
from airflow_mm2_offsets.testing.logs import FOREIGN, Record
from tests.support.mirror_world.clusters import TOPIC
from tests.support.mirror_world.draw import BEGINS, MOST_WORLDS, script_of, world_of
from tests.support.mirror_world.kinds import KINDS, Kind
from tests.support.mirror_world.world import MirrorWorld

PARTITION = TopicPartition(TOPIC, 0)
Content = Record | tuple[bytes | None, bytes | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobAway:
    """A world whose job was moved to the target some time ago."""

    seed: int
    kinds: tuple[str, ...]
    world: MirrorWorld
    random: Random
    move: FirstMove
    same_topics: bool
    """Neither topic was recreated since the move."""
    records_change: bool
    """A transform changes records, as the connector says."""


@dataclass(slots=True)
class Homecomings:
    """The results of many positions."""

    positions: int = 0
    refused: int = 0
    exact: int = 0
    exact_reread: int = 0
    """EXACT answers that read records again."""
    reread: int = 0
    lost: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        """Return one line."""
        answered = max(1, self.positions - self.refused - len(self.lost))
        return (
            f"{self.positions} positions, {len(self.lost)} lossy, {self.refused} refused, "
            f"{self.exact} exact ({self.exact_reread} read again), "
            f"mean re-read {self.reread / answered:.2f}"
        )


def jobs_away(seed: int, kinds: Iterable[Kind] = KINDS, *, alone: bool = True) -> Iterator[JobAway]:
    """Yield worlds without end; each kind takes its turn."""
    drawable = tuple(kinds)
    mixing = [kind for kind in KINDS if kind.mixes]
    number = seed * MOST_WORLDS
    while True:
        random = Random(number)  # noqa: S311 - the same seed makes the same world
        chosen = [drawable[number % len(drawable)]]
        if not alone:
            chosen += random.sample(mixing, random.choice((0, 1, 1, 2, 3)))
        yield draw_away(number, *chosen)
        number += 1


def draw_away(seed: int, *kinds: Kind) -> JobAway:
    """Draw a world whose job is moved in the middle of it."""
    random = Random(seed + 1)  # noqa: S311 - the same seed makes the same world
    begin = Random(f"begin {seed}").choice(BEGINS)  # noqa: S311
    world = world_of(random, kinds, begin=begin)
    steps = list(script_of(random, kinds))
    middle = random.randrange(len(steps) + 1)
    world.run(steps[:middle])
    source, target = world.source, world.target
    position = random.choice((random.randint(source.low, source.high), source.high))
    start = _start(world, position, random)
    names = {kind.name for kind in kinds}
    return JobAway(
        seed=seed,
        kinds=tuple(kind.name for kind in kinds),
        world=world.run(steps[middle:]),
        random=random,
        move=FirstMove(position=position, start=start),
        same_topics=source.incarnation == world.source.incarnation
        and target.incarnation == world.target.incarnation,
        records_change=not names.isdisjoint({"transform", "stamps"}),
    )


def _start(world: MirrorWorld, position: int, random: Random) -> int:
    """Return an answer that loses nothing: the truth, or what the syncs prove."""
    truth = world.truths()[position]
    # Of a recreated source, older syncs are cut or refused; here they are not.
    if world.source.incarnation or not world.syncs.syncs or random.random() < 0.5:
        return truth
    syncs = PartitionSyncs(world.syncs.syncs)
    answer = translate(syncs, TOPIC, 0, position)
    return truth if answer.target is None else min(truth, answer.target)


def judge_homecomings(away: JobAway, results: Homecomings) -> None:
    """Ask for the way home of some positions of a world, and judge the answers."""
    if not away.same_topics:
        return  # The ids tell: nothing is asked.
    world, random = away.world, away.random
    move: FirstMove | None = away.move
    if random.random() < 0.2 and not world.source.incarnation and not world.target.incarnation:
        move = None
    begin = move.start if move else 0
    ends = {begin, world.target.high, *(down for _, down in world.syncs.syncs[-3:])}
    positions = {end for end in ends if begin <= end <= world.target.high}
    rest = range(begin, world.target.high + 1)
    positions |= set(random.sample(rest, min(len(rest), 8)))
    for position in sorted(positions):
        for evidence in _evidence(away, move):
            _judge(away, position, evidence, results)


def _evidence(away: JobAway, move: FirstMove | None) -> Iterator[InverseEvidence]:
    world, random = away.world, away.random
    source, target = world.source, world.target
    home = Watermarks(low=source.low, high=source.high)
    there = Watermarks(low=target.low, high=target.high)
    writes_alone = all(entry.origin != FOREIGN for entry in target.entries)
    common: dict[str, Any] = {
        "home": home,
        "away": there,
        "first": move,
        "changed_records": away.records_change,
    }
    if writes_alone:
        yield InverseEvidence(**common, sole_writer=True)
    timed = not world.mirror.settings.append_time and "append-time-later" not in away.kinds
    for first in {0, random.randint(0, target.high)}:
        begin = max(first, target.low)
        committed = world.mirror.committed if random.random() < 0.5 else None
        yield InverseEvidence(
            **common,
            originals=SourceWindow(
                first=source.low,
                last=source.stable - 1,
                records=tuple(
                    (offset, _content(record, timed=timed))
                    for offset, record in sorted(source.records.items())
                    if offset < source.stable
                ),
            ),
            copies=RecordWindow(
                first=begin,
                last=target.high - 1,
                records=tuple(
                    (offset, _content(record, timed=timed))
                    for offset, record in target.committed_records(begin)
                ),
            ),
            committed=committed,
        )


def _content(record: Record, *, timed: bool) -> Content:
    return record if timed else (record.key, record.value)


def _judge(away: JobAway, position: int, evidence: InverseEvidence, results: Homecomings) -> None:
    syncs = away.world.syncs.syncs
    if away.random.random() < 0.2:  # Compaction has removed the older ones.
        syncs = syncs[away.random.randrange(len(syncs) + 1) :]
    answer = translate_back(PartitionSyncs(syncs), PARTITION, position, evidence)
    results.positions += 1
    if answer.target is None:
        results.refused += 1
        return
    needed = _needed(away, position, evidence)
    lost = [offset for offset in needed if offset < answer.target]
    if (lost and not _is_repeated(away.world, lost, position, evidence)) or _loses_foreign(
        away.world, position, evidence
    ):
        results.lost.append(_story(away, position, answer, evidence, lost))
        return
    read = _read(away.world, evidence.begin, position)
    again = sum(offset >= answer.target for offset in read if offset in away.world.source.records)
    results.reread += again
    results.exact += answer.status is Status.EXACT
    results.exact_reread += answer.status is Status.EXACT and again > 0


def _read(world: MirrorWorld, begin: int, end: int) -> set[int]:
    """Return the source offsets whose copies lie in a range of the target."""
    return {
        entry.origin
        for entry in world.target.entries[begin:end]
        if entry.origin >= 0 and entry.incarnation == world.source.incarnation
    }


def _needed(away: JobAway, position: int, evidence: InverseEvidence) -> list[int]:
    world = away.world
    read = _read(world, evidence.begin, position)
    copied = world.highest_copies()
    compacted = {
        offset
        for offset in copied
        if offset >= world.source.low and offset not in world.source.records
    }
    next_offset, dropped = world.mirror.task.position or 0, world.mirror.settings.dropped
    if not {"refilter", "jump"}.isdisjoint(away.kinds):
        # What was dropped or skipped is not needed before it is copied after all.
        next_offset = max(next_offset, max(copied, default=-1))
    to_copy = {
        offset
        for offset in world.source.records
        if offset >= next_offset and offset not in copied and world.source.luck[offset] >= dropped
    }
    if "refilter" in away.kinds and evidence.copies is None:  # No sync shows it yet.
        last = max((down for _, down in world.syncs.syncs), default=-1)
        copied = {offset: at for offset, at in copied.items() if at <= last}
    needed = ({*copied} - compacted - read) | to_copy
    return sorted(offset for offset in needed if offset >= evidence.base)


def _is_repeated(
    world: MirrorWorld, lost: list[int], position: int, evidence: InverseEvidence
) -> bool:
    """Tell whether the job has read an equal record for each that is passed over."""
    entries = world.target.entries[evidence.begin : position]
    got = Counter((entry.record.key, entry.record.value) for entry in entries if entry.record)
    due = Counter(
        (record.key, record.value)
        for offset, record in world.source.records.items()
        if evidence.base <= offset <= lost[-1]
    )
    contents = {
        (record.key, record.value)
        for offset in lost
        if (record := world.source.records.get(offset))
    }
    has_foreign = any(entry.origin == FOREIGN for entry in entries)
    if not (has_foreign or world.source.is_cleaned) or len(contents) == 0:
        return False
    return all(got[content] >= due[content] for content in contents)


def _loses_foreign(world: MirrorWorld, position: int, evidence: InverseEvidence) -> bool:
    at_home = {(record.key, record.value) for record in world.source.records.values()}
    read = {
        (entry.record.key, entry.record.value)
        for entry in world.target.entries[:position]
        if entry.record
    }
    return not evidence.sole_writer and any(
        entry.origin == FOREIGN
        and entry.record is not None
        and (entry.record.key, entry.record.value) not in at_home | read
        for entry in world.target.entries[position:]
    )


def _story(
    away: JobAway,
    position: int,
    answer: Translation,
    evidence: InverseEvidence,
    lost: list[int],
) -> str:
    world = away.world
    copies = " ".join(f"{at}={entry.origin}" for at, entry in enumerate(world.target.entries))
    steps = " ".join(f"{step.action}:{step.amount}" for step in world.steps)
    return (
        f"seed {away.seed} {'+'.join(away.kinds)}: {position} -> {answer.target} "
        f"({answer.status}, {answer.basis}: {answer.reason}) loses {lost[:5]}; "
        f"first {evidence.first}, committed {evidence.committed}, "
        f"copies from {evidence.copies.first if evidence.copies else None}\n  {steps}\n"
        f"  syncs {world.syncs.syncs}\n  source [{world.source.low}, {world.source.high}) "
        f"{sorted(world.source.records)}\n  target from {world.target.low}: {copies}"
    )


def soak(seed: int, count: int, kinds: Iterable[Kind] = KINDS, *, alone: bool) -> Homecomings:
    """Judge so many worlds."""
    results = Homecomings()
    for away in islice(jobs_away(seed, kinds, alone=alone), count):
        judge_homecomings(away, results)
    return results


def main() -> int:
    worlds = int(sys.argv[1]) if len(sys.argv) > 1 else 5000
    failed = 0
    for kind in KINDS:
        results = soak(1, worlds // len(KINDS), (kind,), alone=True)
        sys.stdout.write(
            f"{kind.name:18} {results}\n" + "".join(f"{each}\n" for each in results.lost[:1])
        )
        failed += len(results.lost)
    results = soak(2, worlds, alone=False)
    sys.stdout.write(f"mixed: {results}\n" + "".join(f"{each}\n" for each in results.lost[:2]))
    return 1 if failed + len(results.lost) else 0


if __name__ == "__main__":
    sys.exit(main())
