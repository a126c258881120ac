"""Makes plans of a world, with drawn options and losses, and judges them."""

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from random import Random
from typing import Any
from unittest.mock import patch

from airflow_mm2_offsets.archive import SyncArchive
from airflow_mm2_offsets.core import FailoverPlan, SyncsLocation
from airflow_mm2_offsets.errors import Mm2OffsetsError
from airflow_mm2_offsets.kafka import drain, sync_log
from airflow_mm2_offsets.kafka.drain import Record
from airflow_mm2_offsets.planning.options import DEFAULT_OPTIONS, PlanOptions
from airflow_mm2_offsets.planning.plan import plan_failover
from airflow_mm2_offsets.testing.logs import FOREIGN
from tests.support.mirror_world.archives import Archived, archive_of
from tests.support.mirror_world.clusters import TOPIC, Reach, WorldClusters
from tests.support.mirror_world.detection import Readable
from tests.support.mirror_world.draw import Drawn
from tests.support.mirror_world.judging import Judge
from tests.support.mirror_world.kinds import amount
from tests.support.mirror_world.steps import Step

POSITIONS = 16
"""How many positions of a world one plan answers at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRequest:
    """The options of a plan, and the state of the world that it meets."""

    positions: tuple[int, ...]
    """One for each partition."""
    read_source: bool
    connect: bool
    sole_writer: bool
    reads_records: bool
    goes_on: bool
    """The world changes while the plan is made."""
    misnamed: bool
    cleaned: int
    """So many syncs compaction has removed."""
    archived: bool
    """There is an archive."""
    on: SyncsLocation
    """Where the syncs topic lies."""

    @classmethod
    def of(cls, drawn: Drawn) -> "PlanRequest":
        """Draw a request; ``sole_writer`` only if it is true."""
        random, world = drawn.random, drawn.world
        last = max(0, len(world.syncs.syncs) - 1)
        archived = bool(world.archived)
        read_source = random.random() < 0.6
        foreign = any(entry.origin == FOREIGN for entry in world.target.entries)
        settings = world.mirror.settings
        differ = settings.stamped or settings.changed > 0 or "overtaking" in drawn.kinds
        return cls(
            positions=_positions(drawn),
            read_source=read_source,
            connect=random.random() < 0.5,
            sole_writer=not (foreign or differ or world.target.is_cleaned)
            and random.random() < 0.5,
            reads_records=random.random() < 0.8,
            goes_on=random.random() < 0.2,
            misnamed="misnamed" in drawn.kinds,
            cleaned=0 if archived else random.choice((0, 0, last, random.randrange(last + 1))),
            archived=archived,
            # On a source that is lost, it is lost with it.
            on=random.choice(list(SyncsLocation))
            if archived or read_source
            else SyncsLocation.TARGET,
        )

    def options(self, archive: SyncArchive | None) -> PlanOptions:
        """Return what the user decides."""
        return PlanOptions(
            archive=archive,
            read_source=self.read_source,
            sole_writer=self.sole_writer,
            max_evidence_bytes=DEFAULT_OPTIONS.max_evidence_bytes if self.reads_records else 0,
        )

    def readable(self, drawn: Drawn, *, syncs_read: int) -> Readable:
        """Return what a plan that read ``syncs_read`` syncs could know."""
        archived = Archived.of(drawn.world, syncs_read=syncs_read)
        return Readable(
            syncs=archived.syncs[self.cleaned :],
            of_target=archived.of_target[self.cleaned :],
            complete=not self.cleaned and not self.archived,
            archived_targets=archived.targets,
            source=self.read_source and self.reads_records,
            target=self.reads_records,
            watermarks=True,
            config=self.connect,
            misnamed=self.misnamed,
        )

    def __str__(self) -> str:
        """Return it in words."""
        words = [
            "source read" if self.read_source else "source lost",
            "Connect" if self.connect else "no Connect",
            *(["sole writer"] if self.sole_writer else []),
            *([] if self.reads_records else ["no records read"]),
            *([f"syncs from {self.cleaned} on"] if self.cleaned else []),
            *([f"an archive, syncs topic on {self.on.value}"] if self.archived else []),
            *(["the world goes on"] if self.goes_on else []),
        ]
        return "plan: " + ", ".join(words)


def judge_plan(drawn: Drawn) -> Judge:
    """Judge one plan for some positions of a world."""
    request = PlanRequest.of(drawn)
    reach = Reach(
        partitions=len(request.positions),
        cleaned=request.cleaned,
        connect=request.connect,
        misnamed=request.misnamed,
    )
    clusters = WorldClusters(drawn.world, reach, on=request.on)
    words, plan, syncs = str(request), None, RecordingDrain()
    try:
        plan = _plan(drawn, request, clusters, syncs)
    except Mm2OffsetsError as error:
        words = f"{words}: {error}"
    # Topics may grow while the plan is made: only the syncs that it has read can tell it anything.
    readable = request.readable(drawn, syncs_read=syncs.end // len(request.positions))
    # The truth at the end of the plan: the job starts later still.
    judge = Judge(drawn=drawn, inputs=words, readable=readable, stands=not request.goes_on)
    for planned in plan.partitions if plan else ():
        judge.judge(planned.translation)
    return judge


@dataclass(slots=True)
class RecordingDrain:
    """Notes how far a plan reads the syncs topic, which may grow meanwhile."""

    end: int = 0
    """The offset after the last sync."""

    def drain(self, *args: Any, **options: Any) -> Iterator[list[Record]]:
        """Read partitions as ``kafka.drain`` does, and note how far."""
        for records in drain.drain(*args, **options):
            self.end = max(self.end, records[-1].offset() + 1)
            yield records


def _plan(
    drawn: Drawn, request: PlanRequest, clusters: WorldClusters, syncs: RecordingDrain
) -> FailoverPlan:
    positions = {TOPIC: dict(enumerate(request.positions))}
    archived = (
        archive_of(drawn.world, partitions=len(request.positions), on=request.on)
        if request.archived
        else nullcontext()
    )
    with archived as archive:
        if request.goes_on:
            deletes = ("expire", "expire_all") if "retention" in drawn.kinds else ()
            actions = ("grow", "grow", "copy", "copy", "commit", "kill", *deletes)
            _Meanwhile(clusters=clusters, random=drawn.random, actions=actions).watch()
        with patch.object(sync_log, "drain", syncs.drain):
            return plan_failover(clusters.pair, positions, options=request.options(archive))


@dataclass(slots=True, kw_only=True)
class _Meanwhile:
    """Changes the world now and then, when a cluster gets a request."""

    clusters: WorldClusters
    random: Random
    actions: tuple[str, ...]
    left: int = field(default=3)

    def watch(self) -> None:
        self.clusters.world.steps.append(Step("PLAN"))  # What follows happens while it is made.
        self.clusters.source.before_answer = self.clusters.target.before_answer = self

    def __call__(self) -> None:
        if self.left and self.random.random() < 0.2:
            self.left -= 1
            steps = [
                Step(self.random.choice(self.actions), amount(self.random))
                for _ in range(self.random.randrange(1, 5))
            ]
            self.clusters.world.run(steps)
            self.clusters.refresh()


def _positions(drawn: Drawn) -> tuple[int, ...]:
    source = drawn.world.source
    last = [up for up, _ in drawn.world.syncs.syncs[-2:]]
    ends = (source.begin, source.low, source.high, *last)
    positions = {each for each in ends if source.begin <= each <= source.high}
    others = [each for each in range(source.begin, source.high) if each not in positions]
    some = drawn.random.sample(others, min(len(others), POSITIONS - len(positions)))
    return tuple(sorted({*some, *positions}))
