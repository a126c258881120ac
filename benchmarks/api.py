"""The REST API under load, while its index is idle and while a million syncs are read.

Run it with `make bench-api`. The server is the command `airflow-mm2-offsets serve`; it, its broker
and the clients (wrk) share the machine. A refresh reads only what is new, and a second one nothing:
so that one is under way all the time, `/translate/latest` is asked over and over after a million
syncs more were written. It reads them as a refresh does and keeps nothing, so the next reads them
again.
"""

import argparse
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from airflow_mm2_offsets.config import load_settings
from airflow_mm2_offsets.core.summary import table
from benchmarks.asking import TOKEN, Answers, Bench
from benchmarks.broker import OneBroker, append, fill
from benchmarks.load import LAG, TOPIC, Load
from benchmarks.results import about
from benchmarks.timing import Goal
from stack import jars
from stack.process import Program, accepts, free_ports
from stack.waiting import wait_until

BUILD = Path(__file__).parent.parent / "build"
OUT = Path(__file__).with_name("results") / "api.json"
_SERVED = ("fastapi", "uvicorn", "uvloop", "httptools", "pydantic")


@contextmanager
def serving(folder: Path, broker: str) -> Iterator[httpx.Client]:
    """Start a server before a broker; yield its client once the index is read."""
    (port,) = free_ports(1)
    command = [sys.executable, "-m", "airflow_mm2_offsets.cli", "serve", "--port", str(port)]
    env = settings(broker) | {"MM2_OFFSETS_SERVE_TOKEN": TOKEN}
    server = Program("server", command, log=folder / "server.log", env=env)
    server.start()
    try:
        server.wait_ready(lambda: accepts(f"127.0.0.1:{port}"))
        login = {"Authorization": f"Bearer {TOKEN}"}
        url = f"http://127.0.0.1:{port}"
        with httpx.Client(base_url=url, headers=login, timeout=120) as client:
            wait_until(lambda: client.get("/readyz").is_success, "the first read")
            yield client
    finally:
        server.stop()


def settings(broker: str) -> dict[str, str]:
    """Return the server's settings; only a request refreshes the index."""
    return {
        "MM2_OFFSETS_KAFKA_BOOTSTRAP_SERVERS": broker,
        "MM2_OFFSETS_REPLICATION_POLICY": "identity",
        "MM2_OFFSETS_REFRESH_SECONDS": "3600",
    }


def write_records(broker: str, partitions: int) -> None:
    """Write the records whose positions batches ask for: the source is asked for its ends."""
    admin = AdminClient({"bootstrap.servers": broker})
    admin.create_topics([NewTopic(TOPIC, partitions, 1)])[TOPIC].result(timeout=60)
    producer = Producer({"bootstrap.servers": broker, "queue.buffering.max.messages": 10**6})
    for number in range(partitions * LAG):
        producer.produce(TOPIC, b"", partition=number % partitions)
    if left := producer.flush(60):
        raise RuntimeError(f"{left} records were not written in a minute")


def measure(folder: Path, kafka: Path, options: argparse.Namespace) -> list[Answers]:
    """Measure everything."""
    load = Load(partitions=options.partitions, syncs=options.syncs)
    with OneBroker(folder / "kafka", kafka, progress=say) as broker:
        topic = load_settings(None, settings(broker.source)).pair().syncs_topic
        say(f"writing {load.count:,} offset syncs")
        fill(broker.source, topic, load)
        write_records(broker.source, load.partitions)
        with serving(folder, broker.source) as client:
            bench = Bench(
                client=client, load=load, seconds=options.seconds, connections=options.connections
            )
            say("asking")
            bench.cached("(warm up)")
            answers = [bench.cached("cached, index idle")]
            answers += [bench.batch(check_source=checked) for checked in (False, True)]
            say(f"writing {load.count:,} more")
            append(broker.source, topic, load, first=load.syncs)
            say("asking while they are read")
            answers.insert(1, bench.cached("cached, while syncs are read", bench.latest))
            took, count = bench.refresh()
            say(f"a refresh then took {took:.1f} s: {count:,} syncs are held")
    return answers


def say(line: str) -> None:
    """Print a line with the time."""
    print(f"{time.strftime('%H:%M:%S')}  {line}", flush=True)  # noqa: T201 - to who started it


def goals(answers: list[Answers]) -> list[Goal]:
    """Return what a release should keep."""
    cached = [goal for answer in answers[:2] for goal in answer.goals()]
    batches = [
        Goal(what=f"{answer.what}: p50 in ms", most=50, measured=answer.p50_ms)
        for answer in answers[2:]
    ]
    return [*cached, *batches]


def tables(answers: list[Answers], goals: list[Goal]) -> str:
    """Return what is printed."""
    rows = [
        (
            answer.what,
            f"{answer.per_second:,.0f}",
            f"{answer.p50_ms:.1f} ms",
            f"{answer.p99_ms:.1f} ms",
            answer.failed,
            answer.reads or "-",
        )
        for answer in answers
    ]
    kept = [
        (goal.what, f"{goal.most:g}", f"{goal.measured:.2f}", "yes" if goal.kept else "NO")
        for goal in goals
    ]
    return "\n\n".join(
        (
            table(("asked", "per second", "p50", "p99", "failed", "reads meanwhile"), rows),
            table(("goal", "at most", "measured", "kept"), kept),
        )
    )


def described(kafka: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Return when, where and with what it is measured."""
    sizes = {name: size for name, size in vars(options).items() if isinstance(size, int)}
    wrk = subprocess.run(["wrk", "--version"], capture_output=True, text=True, check=False)  # noqa: S607
    description = about(kafka, sizes)
    description["versions"] |= {name: version(name) for name in _SERVED}
    description["versions"]["wrk"] = wrk.stdout.split()[1]
    return description


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.api", description=__doc__)
    parser.add_argument("--partitions", type=int, default=1000)
    parser.add_argument("--syncs", type=int, default=1000, help="of each partition")
    parser.add_argument("--seconds", type=int, default=15, help="of asking, each time")
    parser.add_argument("--connections", type=int, default=8)
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    if shutil.which("wrk") is None:
        sys.exit("wrk is needed, which asks as fast as the server answers: apt-get install wrk")
    kafka = jars.fetch(BUILD, progress=say).kafka
    results = described(kafka, options)
    with TemporaryDirectory(dir=BUILD) as folder:
        answers = measure(Path(folder), kafka, options)
    measured_goals = goals(answers)
    results["answers"] = [asdict(answer) | {"per_second": answer.per_second} for answer in answers]
    results["goals"] = [asdict(goal) | {"kept": goal.kept} for goal in measured_goals]
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(results, indent=1) + "\n")
    print(f"\n{tables(answers, measured_goals)}\n\nJSON is in {options.out}", flush=True)  # noqa: T201 - to who started it


if __name__ == "__main__":
    main()
