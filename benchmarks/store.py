"""MirrorMaker 2's OffsetSyncStore, in a separate JVM."""

import shutil
import struct
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from airflow_mm2_offsets.core import OffsetSync
from benchmarks.load import Asking, Load
from benchmarks.timing import Timing
from stack.process import Program

_SOURCES = Path(__file__).with_name("java")
_MAIN = "org.apache.kafka.connect.mirror.StoreBench"
_SECONDS = 300


class StoreAnswers(NamedTuple):
    """The store's answers for a position; a negative number means that it has no answer."""

    running: int
    """By a store that has seen every sync as it came."""
    restarted: int
    """By a store that was started when all syncs were there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """The compiled driver of the store."""

    classes: Path
    jars: Path

    @classmethod
    def compile(cls, build: Path, jars: Path) -> "Store":
        """Compile the driver into ``build``.

        Args:
            build: The folder for build results.
            jars: The folder of Kafka's jars.

        Raises:
            FileNotFoundError: There is no Java compiler.
            ProgramError: The driver does not fit the jars.
        """
        if shutil.which("javac") is None:
            raise FileNotFoundError(
                "javac is not on the PATH: the benchmark needs a JDK, not a JRE"
            )
        classes = build / "classes"
        command: list[str | Path] = ["javac", "-d", classes, "-cp", f"{jars}/*"]
        compiler = Program("javac", [*command, *_SOURCES.rglob("*.java")], log=build / "javac.log")
        compiler.start()
        compiler.wait_end()
        return cls(classes=classes, jars=jars)

    def ask(
        self, syncs: Iterable[OffsetSync], questions: Sequence[tuple[int, int]]
    ) -> list[StoreAnswers]:
        """Return the answers to pairs of partition and position, from the syncs of one topic."""
        packed_syncs = [
            struct.pack(">iqq", sync.partition, sync.upstream, sync.downstream) for sync in syncs
        ]
        packed_questions = [struct.pack(">iq", *question) for question in questions]
        parts = (
            part
            for side in (packed_syncs, packed_questions)
            for part in (len(side).to_bytes(4), *side)
        )
        answers = self._run(["ask"], b"".join(parts))
        return [StoreAnswers(*answer) for answer in struct.iter_unpack(">qq", answers)]

    def read(self, servers: str, topic: str) -> Timing:
        """Have a Java consumer read ``topic`` into a store."""
        return self._time("read", servers, topic)

    def translate(self, load: Load, asking: Asking) -> Timing:
        """Ask a store that holds ``load``."""
        return self._time("translate", load.partitions, load.syncs, *asking)

    def _time(self, *arguments: object) -> Timing:
        return Timing.of_program(lambda: self._run([str(argument) for argument in arguments]))

    def _run(self, arguments: Sequence[str], stdin: bytes = b"") -> bytes:
        command = ["java", "-cp", f"{self.classes}:{self.jars}/*", _MAIN, *arguments]
        done = subprocess.run(  # noqa: S603 - our own program
            command, input=stdin, stdout=subprocess.PIPE, timeout=_SECONDS, check=True
        )
        return done.stdout
