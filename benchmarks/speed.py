"""How fast, beside OffsetSyncStore, and how that grows.

Each measurement runs as a separate program; ours and the store's take turns.
"""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.broker import OneBroker, fill
from benchmarks.load import Asking, Kind, Load
from benchmarks.store import Store
from benchmarks.timing import Goal, Growth, Measure, Timing, median
from stack.waiting import Progress

ROUNDS = 3
WARM_ROUNDS = 9
"""More, for they are short: what else the machine does at a moment weighs more."""
GROWTH = 10
_SINGLE = 100_000
_SOME = 10
_SOME_LOGS = 100
_SHUFFLED = 7919
_SECONDS = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """Where and how much is measured."""

    folder: Path
    """Empty, for what is written meanwhile."""
    jars: Path
    store: Store
    load: Load
    asked: int
    """Positions of each partition that are translated in bulk."""
    progress: Progress

    @property
    def large(self) -> Load:
        """The load, ten times."""
        return replace(self.load, syncs=self.load.syncs * GROWTH)

    @property
    def small(self) -> Load:
        """A tenth of the load."""
        return replace(self.load, syncs=self.load.syncs // GROWTH)

    def run(self) -> tuple[list[Measure], list[Growth], list[Goal]]:
        """Measure everything."""
        cold, cold_store, cold_small = self._read()
        self.progress("reading archives")
        warm, warm_large = self._warm(self.load), self._warm(self.large)
        self.progress("translating")
        measures = [*_reading(cold, cold_store, warm), *self._translating()]
        self.progress(f"indexing {self.large.count:,} syncs")
        memory = Growth(
            what="memory of an index",
            unit="bytes",
            small=(self.load.count, _bytes(self.load)),
            large=(self.large.count, _bytes(self.large)),
        )
        growths = [
            _growth("cold read", cold_small, cold),
            _growth("warm start", warm, warm_large),
            _growth("make an index", _build(self.load), _build(self.large)),
            memory,
        ]
        goals = [
            Goal(what="bytes of a sync in memory", most=24, measured=memory.small[1]),
            Goal(
                what="cold read, times the Java consumer's seconds",
                most=1.2,
                measured=cold.seconds / cold_store.seconds,
            ),
            Goal(
                what="warm start, of the cold read's seconds",
                most=0.1,
                measured=warm.seconds / cold.seconds,
            ),
            *(
                Goal(what=f"growth: {growth.what}", most=1.5, measured=growth.factor)
                for growth in growths
            ),
        ]
        return measures, growths, goals

    def _read(self) -> tuple[Timing, Timing, Timing]:
        """Read the topic by turns, and a tenth of it."""
        with OneBroker(self.folder / "kafka", self.jars, progress=self.progress) as broker:
            for load in (self.load, self.small):
                self.progress(f"writing {load.count:,} offset syncs")
                fill(broker.source, f"syncs-{load.count}", load)
            self.progress("reading them")
            topic, small = f"syncs-{self.load.count}", f"syncs-{self.small.count}"
            rounds = [
                (
                    _ours("read", broker.source, topic),
                    self.store.read(broker.source, topic),
                    _ours("read", broker.source, small),
                )
                for _ in range(ROUNDS)
            ]
        ours, store, tenth = (median(list(timings)) for timings in zip(*rounds, strict=True))
        for timing, load in ((ours, self.load), (store, self.load), (tenth, self.small)):
            _check(timing, load)
        return ours, store, tenth

    def _warm(self, load: Load) -> Timing:
        folder = self.folder / f"archive-{load.count}"
        load.archive(folder)
        timing = median([_ours("warm", folder) for _ in range(WARM_ROUNDS)])
        _check(timing, load)
        return timing

    def _translating(self) -> Iterator[Measure]:
        some = replace(self.load, partitions=min(_SOME, self.load.partitions))
        rising = Asking(positions=self.asked, step=max(1, self.load.span // self.asked))
        shuffled = Asking(positions=self.asked, step=_SHUFFLED)
        first = shuffled._replace(rounds=1)
        yield self._bulk(f"translate {some.partitions * self.asked:,}, just started", some, first)
        yield self._bulk("translate in bulk, shuffled", self.load, shuffled)
        yield self._bulk("translate in bulk, rising", self.load, rising)
        yield from self._by_kind(shuffled)
        store = self.store.translate(self.load, shuffled)
        single = _ours("single", self.load.partitions, self.load.syncs, _SINGLE, _SHUFFLED)
        yield Measure(
            what="translate one by one",
            unit="per s",
            ours=single.per_second,
            store=store.per_second,
        )

    def _by_kind(self, asking: Asking) -> Iterator[Measure]:
        """Measure logs that the store has no answers for: of each kind."""
        some = min(_SOME_LOGS, self.load.partitions), self.load.syncs
        for kind in Kind:
            bulk = _ours("bulk", *some, kind, *asking).per_second
            first = _ours("bulk", *some, kind, *asking._replace(rounds=1)).per_second
            tables = _ours("segments", *some, kind).per_second
            yield Measure(what=f"bulk, {kind}", unit="per s", ours=bulk)
            yield Measure(what=f"bulk, just started, {kind}", unit="per s", ours=first)
            yield Measure(what=f"syncs of Spark's segments, {kind}", unit="per s", ours=tables)

    def _bulk(self, what: str, load: Load, asking: Asking) -> Measure:
        ours = _ours("bulk", load.partitions, load.syncs, load.kind, *asking)
        store = self.store.translate(load, asking)
        return Measure(what=what, unit="per s", ours=ours.per_second, store=store.per_second)


def _ours(task: str, *arguments: object) -> Timing:
    return Timing.of_program(lambda: _task(task, *arguments))


def _build(load: Load) -> Timing:
    return median([_ours("build", load.partitions, load.syncs) for _ in range(ROUNDS)])


def _bytes(load: Load) -> float:
    count, size = _task("memory", load.partitions, load.syncs).split()
    return int(size) / int(count)


def _task(task: str, *arguments: object) -> bytes:
    """Run a task of ``benchmarks.tasks`` and return what it prints."""
    command = [sys.executable, "-m", "benchmarks.tasks", task, *map(str, arguments)]
    done = subprocess.run(  # noqa: S603 - our own program
        command, stdout=subprocess.PIPE, timeout=_SECONDS, check=True
    )
    return done.stdout


def _reading(cold: Timing, store: Timing, warm: Timing) -> Iterator[Measure]:
    syncs = f"{cold.count:,} syncs"
    yield Measure(what=f"cold read of {syncs}", unit="s", ours=cold.seconds, store=store.seconds)
    yield Measure(
        what="... with the start of the program",
        unit="s",
        ours=cold.process_seconds,
        store=store.process_seconds,
    )
    yield Measure(
        what=f"warm start: {syncs} from an archive",
        unit="s",
        ours=warm.seconds,
        store=store.seconds,
    )


def _growth(what: str, small: Timing, large: Timing) -> Growth:
    return Growth(
        what=what,
        unit="ns",
        small=(small.count, 1e9 / small.per_second),
        large=(large.count, 1e9 / large.per_second),
    )


def _check(timing: Timing, load: Load) -> None:
    if timing.count != load.count:
        raise RuntimeError(f"{timing.count} syncs were read where {load.count} had been written")
