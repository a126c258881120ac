"""Asks for a plan, with what a user may decide and with what may be lost."""

from dataclasses import dataclass

from airflow_mm2_offsets.errors import SyncsTopicError
from airflow_mm2_offsets.service.planning import DEFAULT_OPTIONS, PlanOptions, plan_failover
from tests.support.mirror_world.clusters import TOPIC, WorldClusters
from tests.support.mirror_world.draw import Drawn
from tests.support.mirror_world.judging import Judge
from tests.support.mirror_world.records import FOREIGN
from tests.support.mirror_world.telling import Readable

POSITIONS = 12
"""How many positions of a world one plan answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """How a plan was asked for."""

    read_source: bool
    connect: bool
    sole_writer: bool
    reads_records: bool
    cleaned: int
    """So many syncs compaction has removed."""

    @classmethod
    def of(cls, drawn: Drawn) -> "Asked":
        """Draw it."""
        random, world = drawn.random, drawn.world
        syncs = len(world.syncs.syncs)
        foreign = any(entry.origin == FOREIGN for entry in world.target.entries)
        return cls(
            read_source=random.random() < 0.6,
            connect=random.random() < 0.5,
            sole_writer=not foreign and random.random() < 0.5,
            reads_records=random.random() < 0.8,
            cleaned=random.choice((0, 0, max(0, syncs - 1), random.randrange(max(1, syncs)))),
        )

    def __str__(self) -> str:
        """Return it in words."""
        words = [
            "source read" if self.read_source else "source lost",
            "Connect" if self.connect else "no Connect",
            *(["sole writer"] if self.sole_writer else []),
            *([] if self.reads_records else ["no records read"]),
            *([f"syncs from {self.cleaned} on"] if self.cleaned else []),
        ]
        return "plan: " + ", ".join(words)


def judge_plan(drawn: Drawn) -> Judge:
    """Judge one plan for some positions of a world."""
    asked, world = Asked.of(drawn), drawn.world
    readable = Readable(
        syncs=world.syncs.syncs[asked.cleaned :],
        of_target=world.syncs.of_target[asked.cleaned :],
        source=asked.read_source and asked.reads_records,
        target=asked.reads_records,
        watermarks=True,
    )
    judge = Judge(drawn=drawn, asked=str(asked), readable=readable)
    positions = _positions(drawn)
    clusters = WorldClusters.of(
        world, partitions=len(positions), cleaned=asked.cleaned, asks_connect=asked.connect
    )
    options = PlanOptions(
        read_source=asked.read_source,
        sole_writer=asked.sole_writer,
        max_bytes=DEFAULT_OPTIONS.max_bytes if asked.reads_records else 0,
    )
    try:
        plan = plan_failover(clusters.pair, {TOPIC: dict(enumerate(positions))}, options=options)
    except SyncsTopicError:
        return judge  # Nothing to translate with: no answer, none above the truth.
    for planned in plan.partitions:
        judge.judge(planned.translation)
    return judge


def _positions(drawn: Drawn) -> list[int]:
    source = drawn.world.source
    known = {0, source.low, source.high, *(up for up, _ in drawn.world.syncs.syncs[-2:])}
    drawable = [each for each in range(source.high + 1) if each not in known]
    some = drawn.random.sample(drawable, min(len(drawable), POSITIONS))
    return sorted({*some, *(each for each in known if each <= source.high)})[-POSITIONS:]
