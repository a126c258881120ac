"""Judges the answers of an archive's index, and what the source's end that it noted adds to them.

``python -m tests.support.mirror_world.archive_check`` does that for many worlds.
"""

import argparse
import logging
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from random import Random

from airflow_mm2_offsets.core import SyncIndex, SyncsLocation, TopicPartition, Translation
from airflow_mm2_offsets.core.bracket import END
from airflow_mm2_offsets.core.epochs import PartitionSyncs
from airflow_mm2_offsets.errors import Mm2OffsetsError
from airflow_mm2_offsets.planning.syncs import load_syncs
from airflow_mm2_offsets.testing import in_memory_clients
from tests.support.mirror_world.archives import Archived, archive_of
from tests.support.mirror_world.clusters import TOPIC, Reach, WorldClusters
from tests.support.mirror_world.detection import DetectableBy, Loss, Readable, detectable_by
from tests.support.mirror_world.draw import BEGINS, MOST_WORLDS, Drawn, draw
from tests.support.mirror_world.kinds import ALL, KINDS
from tests.support.mirror_world.settings import MirrorSettings
from tests.support.mirror_world.steps import Step
from tests.support.mirror_world.world import MirrorWorld

ORDERS = TopicPartition(TOPIC, 0)
_BY_NAME = {kind.name: kind for kind in ALL}
FIRST = tuple(_BY_NAME[name] for name in ("second-life", "turned-round"))
"""The kinds of worlds where the source's end counts."""
_OTHERS = [kind for kind in KINDS if kind.mixes and kind not in FIRST]


_ACTIONS = (
    *("grow", "grow", "copy", "copy", "copy", "commit", "kill", "lose", "unblock", "archive"),
    *("archive", "reinstall", "alter_back", "alter_forward", "foreign", "skip", "recreate_syncs"),
    *("recreate_source", "block", "retry", "put_back"),
)
_UNSYNCED = ("grow", "grow", "copy", "copy", "copy", "archive", "archive", "foreign", "kill")
_BACK = ("alter_back", "reset_offsets", "kill", "reinstall")


@dataclass(slots=True, kw_only=True)
class Gain:
    """How many answers there were of each status, without the source's end and with it."""

    worlds: int = 0
    bounded_worlds: int = 0
    """Worlds where the end of the source bounds older copies."""
    before: Counter[str] = field(default_factory=Counter)
    after: Counter[str] = field(default_factory=Counter)
    changed: int = 0
    undetectable: int = 0
    """Changed answers above the truth, for a rewind later on that nothing shows."""
    misread: int = 0
    """Worlds where a record was copied before the first sync, and does not lie below the end."""
    losses: list[str] = field(default_factory=list)


def with_archives(seed: int) -> Drawn:
    """Draw a world with runs of the archive at random times."""
    random = Random(-seed)  # noqa: S311 - the same seed makes the same world
    if seed % 3 == 0:
        return _picked(seed, random)
    first = FIRST[seed % len(FIRST)]
    drawn = draw(
        seed,
        first,
        _BY_NAME["archived"],
        *random.sample(_OTHERS, random.choice((0, 0, 1, 2, 3))),
        begin=random.choice(BEGINS),
    )
    if random.random() < 0.7:
        drawn.world.run([Step("archive"), *_more(random)])
    return drawn


def _picked(seed: int, random: Random) -> Drawn:
    """Let a task that loses its syncs copy between two runs of the archive, and go back."""
    names = random.choices(_ACTIONS, k=random.choice((8, 15, 25)))
    settings = MirrorSettings(
        lag_max=random.choice((0, 1, 3, 5, 10)), exactly_once=random.random() < 0.2
    )
    world = MirrorWorld(settings, random, begin=random.choice(BEGINS))
    unsynced = random.choices(_UNSYNCED, k=random.choice((0, 4, 8)))
    steps = ("grow", "lose", "copy", *unsynced, random.choice(_BACK), "unblock", "copy", *names)
    world.run(Step(name, random.choice((1, 2, 3, 5, 8, 13))) for name in steps)
    return Drawn(seed=seed, kinds=("picked",), world=world, random=random)


def _more(random: Random) -> Iterator[Step]:
    for _ in range(random.choice((0, 1, 2, 4))):
        yield Step(random.choice(("grow", "copy", "copy", "commit", "kill")), random.randrange(40))


def judge_archive(drawn: Drawn, gain: Gain) -> None:
    """Judge the answers to every position by an archive and the syncs topic."""
    world, random = drawn.world, drawn.random
    cleaned = random.choice((0, 0, random.randrange(len(world.syncs.syncs) + 1)))
    on = SyncsLocation.SOURCE
    reach = Reach(partitions=1, cleaned=cleaned, connect=False, known_before=random.random() < 0.5)
    clusters = WorldClusters(world, reach, on=on)
    with archive_of(world, partitions=1, on=on, reach=reach) as archive:
        if random.random() < 0.3:
            archive.compact(over=0)
        try:
            snapshot = load_syncs(clusters.pair, archive)
        except Mm2OffsetsError:
            return
    archived = Archived.of(world, syncs_read=snapshot.next_offset - reach.known_before)
    readable = Readable(
        syncs=archived.syncs, of_target=archived.of_target, archived_targets=archived.targets
    )
    gain.worlds += 1
    syncs = snapshot.index.partitions.get(ORDERS)
    if syncs is not None:
        _compare(drawn, syncs, readable, gain)


def _compare(drawn: Drawn, syncs: PartitionSyncs, readable: Readable, gain: Gain) -> None:
    world, truths = drawn.world, drawn.world.truths()
    gain.bounded_worlds += syncs.beginning.source_end < END
    now = SyncIndex.of_partitions({ORDERS: syncs})
    then = SyncIndex.of_partitions({ORDERS: _without_end(syncs)})
    first = syncs.first if syncs else None
    if first is not None and _highest_before(drawn, first.downstream) >= syncs.beginning.source_end:
        gain.misread += 1
    for position, truth in truths.items():
        old, new = (index.translate(TOPIC, 0, position) for index in (then, now))
        gain.before[old.status.value] += 1
        gain.after[new.status.value] += 1
        if _content(old) == _content(new):
            continue
        gain.changed += 1
        if new.target is None or new.target <= truth:
            continue
        assert first is not None
        if truth >= first.downstream:
            seen = [sync for sync in readable.syncs if sync[1] >= first.downstream]
            left = replace(readable, syncs=seen, of_target=readable.of_target[-len(seen) :])
            loss = Loss(position, new.target, truth)
            if detectable_by(world, left, loss) is DetectableBy.NOTHING:
                gain.undetectable += 1
                continue
        gain.losses.append(
            f"seed {drawn.seed} {'+'.join(drawn.kinds)}: {position} -> {new.target}, truth {truth},"
            f" before {old.target}; until {syncs.beginning.source_end}; {world}"
        )


def _without_end(syncs: PartitionSyncs) -> PartitionSyncs:
    pairs = zip(syncs.upstream, syncs.downstream, strict=True)
    return PartitionSyncs(pairs, beginning=replace(syncs.beginning, source_end=END))


def _highest_before(drawn: Drawn, downstream: int) -> int:
    """Return the highest source offset that has a copy below a target offset; -1 without any."""
    world = drawn.world
    below = world.target.entries[:downstream]
    here = (each for each in below if each.incarnation == world.source.incarnation)
    return max((each.origin for each in here), default=-1)


def _content(answer: Translation) -> tuple[object, ...]:
    return answer.status, answer.target, answer.low, answer.high


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--positions", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    logging.disable()  # Archives warn of recreated topics.
    gain, seed = Gain(), options.seed * MOST_WORLDS
    with in_memory_clients():
        while gain.before.total() < options.positions:
            judge_archive(with_archives(seed), gain)
            seed += 1
    for loss in gain.losses[:3]:
        sys.stdout.write(f"{loss}\n")
    sys.stdout.write(
        f"{gain.worlds} worlds, {gain.bounded_worlds} with a source's end that counts\n"
        f"before: {dict(gain.before)}\nafter: {dict(gain.after)}\n"
        f"changed: {gain.changed}, above the truth: {len(gain.losses)}, undetectable: "
        f"{gain.undetectable}, misread: {gain.misread}\n"
    )
    return 1 if gain.losses or gain.misread else 0


if __name__ == "__main__":
    sys.exit(main())
