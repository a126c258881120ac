"""Checkpoints of MirrorMaker 2 that the syncs confirm, after all that may happen to a topic."""

from dataclasses import dataclass, field, replace
from random import Random

import pytest

from airflow_mm2_offsets.core import TopicPartition
from airflow_mm2_offsets.core.wire import Checkpoint, decode_offset_sync, encode_checkpoint
from airflow_mm2_offsets.groups import OffsetsFrom, parse_selection, sync_groups
from airflow_mm2_offsets.testing import Mm2Simulation, Record, simulated_mm2
from airflow_mm2_offsets.testing.logs import TargetLog

COPY = TopicPartition("source.orders", 0)


@dataclass(slots=True)
class _History:
    """What happens to one topic, by chance, and the checkpoints that are made meanwhile."""

    mm2: Mm2Simulation
    chance: Random
    checkpoints: dict[str, tuple[int, int]] = field(default_factory=dict)

    def produce(self) -> None:
        """Write some records; copy all of them or a part, with or without a commit."""
        records = [b"%d" % self.chance.getrandbits(60) for _ in range(self.chance.randint(2, 300))]
        self.mm2.source.produce("orders", 0, records)
        most = self.chance.choice([1000, self.chance.randint(2, 200)])
        self.mm2.mirror(max_records=most, commit=self.chance.random() < 0.6)

    def restart(self) -> None:
        """Copy again what Connect has not committed."""
        self.mm2.restart_worker()
        self.mm2.mirror(commit=self.chance.random() < 0.6)

    def recreate(self) -> None:
        """Delete the copy, and begin a new one."""
        self.mm2.target.delete_topic(COPY.topic)
        self.produce()

    def checkpoint(self) -> None:
        """Make a checkpoint as ``OffsetSyncStore`` does, of the last sync before some position."""
        source = self.mm2.source
        position = self.chance.randint(0, source.log("orders", 0).high)
        store: list[tuple[int, int]] = []
        for _, record in source.log(self.mm2.pair.syncs_topic, 0).committed_records(0):
            sync = decode_offset_sync(record.key, record.value)
            if store and sync.upstream <= store[-1][0]:
                store.clear()
            store.append((sync.upstream, sync.downstream))
        before = [sync for sync in store if sync[0] <= position]
        if not before:
            return
        offset = before[-1][1] + (before[-1][0] < position)
        group = f"group-{len(self.checkpoints)}"
        self.checkpoints[group] = position, offset
        checkpoint = Checkpoint(
            group=group, topic=COPY.topic, partition=0, upstream=position, downstream=offset
        )
        record = Record(*encode_checkpoint(checkpoint))
        self.mm2.target.produce("source.checkpoints.internal", 0, [record])

    def skips(self, group: str) -> bool:
        """Tell whether a group that starts at its checkpoint misses a record that was copied."""
        position, offset = self.checkpoints[group]
        log = self.mm2.target.log(*COPY)
        assert isinstance(log, TargetLog)
        last_copies = {entry.origin: at for at, entry in enumerate(log.entries)}
        return any(origin >= position and at < offset for origin, at in last_copies.items())


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("is_recreated", [True, False])
def test_a_confirmed_checkpoint_skips_nothing(
    seed: int,
    is_recreated: bool,  # noqa: FBT001
) -> None:
    """Whatever the topic went through; and one of a topic that was never recreated is taken."""
    with simulated_mm2() as mm2:
        history = _History(mm2, Random(seed))  # noqa: S311 - no secret
        history.produce()
        steps = [history.produce, history.restart, history.checkpoint, history.checkpoint]
        steps += [history.recreate] if is_recreated else []
        for _ in range(12):
            history.chance.choice(steps)()
        history.checkpoint()
        decisions = sync_groups(
            mm2.pair, parse_selection(".*"), offsets_from=OffsetsFrom.CHECKPOINTS
        ).decisions
        committed = [each for each in decisions if each.commit and not each.is_unconfirmed]
        assert not [each for each in committed if history.skips(each.position.group)]
        if not is_recreated:
            assert not [each.reason for each in decisions if each.commit is None]


@pytest.mark.parametrize("is_source_lost", [False, True])
def test_a_checkpoint_before_records_that_were_never_copied(
    is_source_lost: bool,  # noqa: FBT001
) -> None:
    """A group that commits it loses them; without the source nobody can tell."""
    with simulated_mm2() as mm2:
        copied = [*range(50), *range(60, 100)]
        records = [Record(b"key", b"%d" % number, 1000 + number) for number in range(100)]
        mm2.source.produce("orders", 0, records)
        mm2.target.produce(COPY.topic, 0, [records[number] for number in copied])
        for number in (0, 40, 49, 60, 99):
            mm2.write_sync("orders", 0, number, copied.index(number))
        checkpoint = Checkpoint(
            group="g", topic=COPY.topic, partition=0, upstream=45, downstream=41
        )
        mm2.target.produce(
            "source.checkpoints.internal", 0, [Record(*encode_checkpoint(checkpoint))]
        )
        pair = replace(mm2.pair, source=replace(mm2.pair.source, timeout=0.05))
        mm2.source.is_running = not is_source_lost
        (decision,) = sync_groups(
            pair, parse_selection(".*"), offsets_from=OffsetsFrom.CHECKPOINTS
        ).decisions
    if is_source_lost:
        assert decision.commit is not None
    else:
        assert decision.commit is None
        assert "10 records after it, from offset 50 to 59" in decision.reason


@pytest.mark.parametrize("name", ["InsertHeader", "ReplaceField$Value"])
def test_a_transform_that_changes_records_hides_no_copies(name: str) -> None:
    """They are not compared then: as many as were copied were copied."""
    with simulated_mm2() as mm2:
        kind = f"org.apache.kafka.connect.transforms.{name}"
        worker = mm2.connect
        worker.config = {**worker.config, "transforms": "t", "transforms.t.type": kind}
        for log, prefix in ((mm2.source, "orders"), (mm2.target, COPY.topic)):
            records = [Record(b"key", b"%s-%d" % (prefix.encode(), at), at) for at in range(100)]
            log.produce(prefix, 0, records)
        for number in (0, 40, 60, 99):
            mm2.write_sync("orders", 0, number, number)
        checkpoint = Checkpoint(
            group="g", topic=COPY.topic, partition=0, upstream=45, downstream=41
        )
        mm2.target.produce(
            "source.checkpoints.internal", 0, [Record(*encode_checkpoint(checkpoint))]
        )
        (decision,) = sync_groups(
            mm2.pair, parse_selection(".*"), offsets_from=OffsetsFrom.CHECKPOINTS
        ).decisions
        assert decision.commit is not None
