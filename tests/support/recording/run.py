"""One run of MirrorMaker 2, of one kind, from its first copy to its last."""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from time import monotonic

from airflow_mm2_offsets.kafka.cluster import KafkaCluster
from stack.dedicated import dedicated_mirror
from stack.local import LocalStack
from stack.process import Program
from stack.topics import create_topic
from stack.waiting import Progress, wait_until
from tests.integration.mirrors import FILTER
from tests.support.recording.records import PARTITIONS, NumberedRecords, read

COUNT = 4000
LAG_MAX = 100
FLUSH_SECONDS = 3
COPY_SECONDS = 180


@dataclass(frozen=True, kw_only=True)
class Run:
    """A run of its own aliases and its own topic, so that many may share two brokers.

    Attributes:
        release: MirrorMaker 2's, such as ``3.4``.
        kind: One of ``KINDS``.
        stack: Its brokers, running.
        jars: The folder of MirrorMaker 2's jars.
        folder: Holds its configuration and log.
        progress: Told what is being waited for.
    """

    release: str
    kind: str
    stack: LocalStack
    jars: Path
    folder: Path
    progress: Progress

    @property
    def name(self) -> str:
        """The name of its golden set."""
        return f"mm2-{self.release}-{self.kind}"

    @property
    def topic(self) -> str:
        """The topic on both sides."""
        return f"{self.name}-orders"

    @property
    def syncs_topic(self) -> str:
        """The offset-syncs topic, on the source (KIP-716: the default)."""
        return f"mm2-offset-syncs.{self._alias('target')}.internal"

    @cached_property
    def source(self) -> KafkaCluster:
        """The source as the package reads it."""
        return KafkaCluster(name="source", config={"bootstrap.servers": self.stack.source})

    @cached_property
    def target(self) -> KafkaCluster:
        """The target."""
        return KafkaCluster(name="target", config={"bootstrap.servers": self.stack.target})

    def carry_out(self) -> None:
        """Write, copy, and stop MirrorMaker 2.

        Raises:
            ProgramError: MirrorMaker 2 ended by itself, or did not copy all in three minutes.
        """
        create_topic(self.stack.source, self.topic, PARTITIONS)
        records = NumberedRecords(
            servers=self.stack.source,
            topic=self.topic,
            chance=random.Random(self.name),  # noqa: S311 - the same name writes the same records
        )
        mirror = self._mirror()
        mirror.start()
        try:
            KINDS[self.kind](self, mirror, records)
            self.wait_settled(mirror)
        finally:
            mirror.stop()

    def wait_copied(self, mirror: Program, values: set[bytes]) -> None:
        """Wait until all of some records are on the target."""

        def copied() -> bool:
            return values <= {each.value() for each in read(self.target, self.topic, PARTITIONS)}

        mirror.wait_ready(copied, seconds=COPY_SECONDS, progress=self.progress)

    def wait_settled(self, mirror: Program) -> None:
        """Wait until MirrorMaker 2 has flushed its offsets twice without a new sync.

        From 3.7 on it sends the syncs that it had held back with a flush (KAFKA-15906).
        """
        mirror.wait_ready(self._settled(), seconds=COPY_SECONDS, progress=self.progress)

    def _settled(self) -> Callable[[], bool]:
        seen, since = -1, monotonic()

        def settled() -> bool:
            nonlocal seen, since
            now = len(read(self.source, self.syncs_topic, 1))
            if now != seen:
                seen, since = now, monotonic()
            return monotonic() - since > 2 * FLUSH_SECONDS + 1

        return settled

    def _alias(self, side: str) -> str:
        return f"{self.name}-{side}"

    def _mirror(self) -> Program:
        source, target = self._alias("source"), self._alias("target")
        flow: dict[str, str | int] = {
            "topics": self.topic,
            "offset.lag.max": LAG_MAX,
            "tasks.max": 1,
        }
        if self.kind == "filtered":
            flow |= FILTER
        settings: Mapping[str, str | int] = {
            f"{target}.offset.flush.interval.ms": FLUSH_SECONDS * 1000,
            f"{source}.consumer.isolation.level": "read_committed",
            **{f"{source}->{target}.{key}": to for key, to in flow.items()},
        }
        clusters = (source, self.stack.source), (target, self.stack.target)
        return dedicated_mirror(
            self.folder / self.name, self.jars, clusters=clusters, settings=settings
        )


def _plain(run: Run, mirror: Program, records: NumberedRecords) -> None:
    records.plain(COUNT)
    run.wait_copied(mirror, records.copied)


def _aborts(run: Run, mirror: Program, records: NumberedRecords) -> None:
    records.transactions(COUNT, aborted=0.3)
    run.wait_copied(mirror, records.copied)


def _filtered(run: Run, mirror: Program, records: NumberedRecords) -> None:
    records.plain(COUNT, dropped=0.2)
    run.wait_copied(mirror, records.copied)


def _restart(run: Run, mirror: Program, records: NumberedRecords) -> None:
    for _ in range(2):
        records.plain(COUNT // 4)
        run.wait_copied(mirror, records.copied)
        run.wait_settled(mirror)
        begun = len(read(run.target, run.topic, PARTITIONS))
        records.plain(COUNT // 8)
        wait_until(
            lambda begun=begun: len(read(run.target, run.topic, PARTITIONS)) > begun,  # type: ignore[misc]
            "copies that MirrorMaker 2 has not noted",
            progress=run.progress,
        )
        mirror.kill()
        mirror.start()
    records.plain(COUNT // 4)
    run.wait_copied(mirror, records.copied)


KINDS: Mapping[str, Callable[[Run, Program, NumberedRecords], None]] = {
    "plain": _plain,
    "aborts": _aborts,
    "filtered": _filtered,
    "restart": _restart,
}
