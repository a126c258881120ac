"""Asks a REST API: with wrk as fast as it answers, and for batches."""

import json
import statistics
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import httpx

from benchmarks.load import LAG, TOPIC, Load
from benchmarks.timing import Goal

BASE = "/api/v1/offsets"
TOKEN = "bench"  # noqa: S105 - it opens the benchmark's server alone
SCRIPT = Path(__file__).with_name("wrk.lua")
ITEMS = 1000
BATCHES = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """What clients that ask as fast as they are answered have got."""

    what: str
    answers: int
    failed: int
    seconds: float
    p50_ms: float
    p99_ms: float
    reads: int = 0
    """How often, meanwhile, all new syncs were read."""

    @property
    def per_second(self) -> float:
        """How many answers."""
        return self.answers / self.seconds

    def goals(self) -> list[Goal]:
        """Return what is to be kept."""
        each = 1000 * self.seconds / self.answers
        return [
            Goal(what=f"{self.what}: ms for each answer", most=1, measured=each),
            Goal(what=f"{self.what}: p99 in ms", most=20, measured=self.p99_ms),
            Goal(what=f"{self.what}: failures", most=0, measured=self.failed),
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """A running server and its clients."""

    client: httpx.Client
    load: Load
    seconds: int
    connections: int

    def cached(self, what: str, meanwhile: Callable[[], object] | None = None) -> Answers:
        """Ask for cached translations, and meanwhile do something over and over."""
        reads = 0
        with ThreadPoolExecutor(1) as pool:
            wrk = pool.submit(self._wrk)
            while meanwhile and not wrk.done():
                meanwhile()
                reads += 1
        return Answers(what=what, reads=reads, **json.loads(wrk.result()))

    def latest(self) -> None:
        """Have all that is new on the topic read."""
        asked = {"topic": TOPIC, "partition": 0, "offset": 0}
        self.client.post(f"{BASE}/translate/latest", json=asked).raise_for_status()

    def refresh(self) -> tuple[float, int]:
        """Return how long a refresh takes, and how many syncs are held then."""
        began = time.perf_counter()
        status = self.client.post(f"{BASE}/refresh").raise_for_status().json()
        return time.perf_counter() - began, status["syncCount"]

    def batch(self, *, check_source: bool) -> Answers:
        """Ask for batches, one after the other."""
        items = [
            {"partition": number % self.load.partitions, "startOffset": number % LAG}
            for number in range(ITEMS)
        ]
        took = []
        for _ in range(BATCHES):
            began = time.perf_counter()
            answer = self.client.post(
                f"{BASE}/translate/batch",
                json={"topicName": TOPIC, "offsetList": items},
                params={"check_source": check_source},
            ).raise_for_status()
            took.append(time.perf_counter() - began)
            if answer.json()["summary"]["successCount"] != ITEMS:
                raise RuntimeError(f"not all of a batch was translated: {answer.text[:1000]}")
        return Answers(
            what=f"batch of {ITEMS:,}" + (", source checked" if check_source else ""),
            answers=BATCHES,
            failed=0,
            seconds=sum(took),
            p50_ms=statistics.median(took) * 1000,
            p99_ms=statistics.quantiles(took, n=100)[-1] * 1000,
        )

    def _wrk(self) -> str:
        options = ["-t1", f"-c{self.connections}", f"-d{self.seconds}s", "-s", str(SCRIPT)]
        url = str(self.client.base_url.join(f"{BASE}/translate?topic={TOPIC}"))
        arguments = [str(self.load.partitions), str(self.load.span), TOKEN]
        done = subprocess.run(  # noqa: S603 - a tool of our choice
            ["wrk", *options, url, "--", *arguments],  # noqa: S607 - wherever it is installed
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.splitlines()[-1]
