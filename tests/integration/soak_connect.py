"""Reset, alter and put back a MirrorSourceConnector's offsets under writes, again and again.

Positions are translated before, between and after, and compared with the truth: each copy holds
its source offset. Connect is of Kafka 4.3, and of 3.6 as a second worker. A last round lets a
second connector copy the topic, too.
"""

import json
import os
import time
from collections import Counter
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from random import Random

import pytest

from airflow_mm2_offsets.errors import Mm2OffsetsError
from airflow_mm2_offsets.operators.connector_offsets import ResetConnectorOffsetsOperator
from airflow_mm2_offsets.planning.options import PlanOptions
from airflow_mm2_offsets.planning.plan import plan_failover
from stack import jars
from stack.mirror import Stack
from tests.integration.conftest import BUILD
from tests.integration.connect_workers import older_worker
from tests.integration.managed_mirror import ManagedMirror, NumberedWriter, Truth
from tests.soaks import LONGEST, add_figures
from tests.unit.operators.worker import Worker

pytestmark = pytest.mark.timeout(LONGEST)
ROUNDS = int(os.environ.get("ROUNDS", "3"))
PARTITIONS = 4
OPTIONS = (
    PlanOptions(),
    PlanOptions(sole_writer=True),
    PlanOptions(max_evidence_bytes=0),
    PlanOptions(read_source=False),
)


class Judge:
    """Translates positions, and counts the answers that are above the truth."""

    def __init__(self, managed: ManagedMirror, topic: str, writer: NumberedWriter) -> None:
        self.managed, self.topic, self.writer = managed, topic, writer
        self.random = Random(int(os.environ.get("SEED", time.time())))  # noqa: S311 - positions
        self.counts: dict[str, Counter[str]] = {}
        self.wrong: list[str] = []

    def look(self, moment: str) -> None:
        """Translate a position of each partition by each set of options."""
        counts = self.counts.setdefault(moment, Counter())
        for options in OPTIONS:
            positions = {
                number: self.random.randint(0, end) for number, end in enumerate(self.writer.ends)
            }
            self._judge(moment, positions, options, counts)
        print(f"{moment:24} {dict(counts)}", flush=True)  # noqa: T201 - a soak takes minutes

    def _judge(
        self, moment: str, positions: dict[int, int], options: PlanOptions, counts: Counter[str]
    ) -> None:
        try:
            plan = plan_failover(self.managed.pair, {self.topic: positions}, options=options)
        except Mm2OffsetsError as error:
            counts[type(error).__name__] += 1
            self.wrong.append(f"{moment}: {error}")
            return
        copies = self.managed.copies(self.topic)
        for planned in plan.partitions:
            answer = planned.translation
            counts[answer.status.value] += 1
            if Truth(copies[answer.topic_partition.partition]).is_above(answer):
                counts["ABOVE THE TRUTH"] += 1
                self.wrong.append(f"{moment} by {options}: {answer}")

    def report(self) -> str:
        """Return a line for each moment."""
        lines = [f"{moment:24} {dict(counts)}" for moment, counts in self.counts.items()]
        return "\n".join(lines)


@pytest.fixture(params=["4.3", "3.6"])
def managed(
    request: pytest.FixtureRequest,
    stack: Stack,
    worker: Worker,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> Iterator[ManagedMirror]:
    """A mirror on a Connect of a release."""
    if request.param == "4.3":
        yield from _managed(stack, worker, monkeypatch, stack.connect_url)
        return
    older = jars.fetch_mirror(BUILD, request.param, progress=print)
    with older_worker(stack, tmp_path, older) as url:
        yield from _managed(stack, worker, monkeypatch, url)


def _managed(
    stack: Stack, worker: Worker, monkeypatch: pytest.MonkeyPatch, url: str
) -> Iterator[ManagedMirror]:
    made = ManagedMirror(stack, worker, url)
    made.use_connections(monkeypatch)
    try:
        yield made
    finally:
        made.delete()


def test_no_plan_is_above_the_truth(managed: ManagedMirror) -> None:
    """Whatever is done to the offsets, and whenever a position is translated."""
    topic = managed.new_topic(PARTITIONS)
    writer = NumberedWriter(managed.stack.source, topic, PARTITIONS)
    writer.write(400)
    managed.apply()
    judge = Judge(managed, topic, writer)
    with writer.writing(4, 0.1):
        _wait_copied(managed, topic)
        for number, kind in zip(range(ROUNDS), cycle(("reset", "lower", "higher")), strict=False):
            judge.look("before")
            _change_and_put_back(managed, topic, judge, kind, number)
        _copy_twice(managed, judge)
    print(managed.connect.check(), judge.report(), sep="\n")  # noqa: T201 - the report
    total = sum(judge.counts.values(), Counter())
    add_figures(answers=total.total(), **dict(sorted(total.items())), wrong=len(judge.wrong))
    assert judge.wrong == []


def _change_and_put_back(
    managed: ManagedMirror, topic: str, judge: Judge, kind: str, number: int
) -> None:
    managed.set_state("STOPPED")
    backup = managed.read_offsets()
    judge.look("stopped")
    if kind == "reset":
        managed.run(
            ResetConnectorOffsetsOperator,
            connector=managed.source_connector,
            backup=json.dumps(backup),
            confirm="copies again",
        )
    else:
        ends = judge.writer.ends
        share = judge.random.uniform(0.1, 0.9)
        lasts = {
            at: int(end * share) if kind == "lower" else end - 1 for at, end in enumerate(ends)
        }
        managed.alter({topic: lasts})
    judge.look(f"after {kind}")
    managed.set_state("RUNNING")
    judge.look(f"copying after {kind}")
    if number % 2:
        time.sleep(judge.random.uniform(0, 3))  # how far it comes is a part of the test
    managed.set_state("STOPPED")
    if kind != "higher":
        managed.alter(backup)
    judge.look(f"put back after {kind}")
    managed.set_state("RUNNING")
    judge.look(f"running after {kind}")


def _copy_twice(managed: ManagedMirror, judge: Judge) -> None:
    """Let a second connector copy the topic; its own guard is passed by."""
    config = dict(managed.connect.config(managed.source_connector))
    config["topics"] = f"{managed.name}-.*"  # another pattern for the same topic
    config["name"] = f"{managed.name}-second"
    with managed.stack.connect_client() as client:
        url = f"{managed.url}/connectors/{config['name']}/config"
        client.put(url, json=config).raise_for_status()
    _wait_running(managed, config["name"])
    for _ in range(3):
        judge.look("two connectors")
    managed.set_state("STOPPED")
    judge.look("the first of two stopped")


def _wait_running(managed: ManagedMirror, connector: str) -> None:
    from airflow_mm2_offsets.sensors.connectors import ConnectorStateSensor  # noqa: PLC0415

    managed.run(ConnectorStateSensor, connector=connector, poke_interval=0.2, timeout=600)


def _wait_copied(managed: ManagedMirror, topic: str) -> None:
    from stack.waiting import wait_until  # noqa: PLC0415

    wait_until(
        lambda: all(managed.copies(topic).values()) and bool(managed.copies(topic)),
        topic,
        seconds=600,
    )
