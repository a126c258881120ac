"""The commands as a new user would try them: docs/cli.md is run, and must be true.

In its ``console`` blocks, what follows a line ``$ COMMAND`` is what the command printed, on stdout
and stderr; ``[exit code N]`` stands where that is not 0. With UPDATE_TRANSCRIPTS=1 in the
environment the outputs are rewritten, the rest stays.
"""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from airflow_mm2_offsets.config import load_settings
from airflow_mm2_offsets.errors import SyncsTopicError
from airflow_mm2_offsets.kafka.syncs import read_syncs
from stack.mirror import Stack
from stack.topics import create_topic
from stack.waiting import wait_until
from tests.integration.mirrors import Mirror, Writer, mirror

PAGE = Path(__file__).parents[2] / "docs" / "cli.md"
TOPIC = "shop-orders"
TOKEN = "a-token-of-the-tests-own"  # noqa: S105 - it opens nothing else
SYNCS_ON_TARGET = {"offset_syncs_topic_location": "target"}

BLOCK = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)
COMMAND = re.compile(r"^\$ (?:.*\\\n)*.*\n", re.MULTILINE)

DIGEST = "6b0c8d1fe52d6f0a3c9b4e7712a85fd09e3b61c47d20f8a95be14c3706d2a9f1"
RULES = (
    (r"http://127\.0\.0\.1:\d+", "http://127.0.0.1:54321"),
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", "2026-11-21T09:10:00+00:00"),
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00", "2026-11-21T09:10:00.123+00:00"),
    (r"\b\S+ on \S+ at (?=2026-11-21)", "ada on laptop at "),
    (r"\bdown for: \d+ s", "down for: 7 s"),
    (r"\bfor \d+ of (\d+) s\b", r"for 2 of \1 s"),
    (r"\b\d+\.\d s\b", "1.0 s"),
    (r"\b\d+ s (old|of data)\b", r"1 s \1"),
    (r"\bafter \d+ms\b", "after 0ms"),
    (r"\b\d+ (s|min) old\b", "12 s old"),
    (r'("shop-orders": )"[\w-]{22}"', r'\1"dG9waWMtb2Ytc2hvcC00Mg"'),
    (r'("digest": )"[0-9a-f]{64}"', rf'\1"{DIGEST}"'),
    (r"mm2-offset-syncs\.m[0-9a-f]{8}-[ab]\.internal, ", ""),
)
"""What differs from run to run: a port, times, durations, a topic's id, other tests' topics."""

SETTINGS = """\
source.alias = "eu"
target.alias = "us"
replication.policy = "identity"
offset-syncs.topic.location = "target"
source.bootstrap.servers = "{source}"
target.bootstrap.servers = "{target}"
connect.url = "{connect}"
"""


@dataclass(frozen=True, kw_only=True)
class Terminal:
    """A folder with settings of a running pair, and a shell in it."""

    folder: Path
    addresses: Mapping[str, str]
    """What a user's would be called, by what they are here."""

    def run(self, command: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run a line as a shell would; stdout and stderr apart."""
        with self.start(command, subprocess.PIPE, **variables) as process:
            stdout, stderr = process.communicate(timeout=120)
        return subprocess.CompletedProcess(command, process.returncode, stdout, stderr)

    def transcript(self, command: str) -> str:
        """Return what a line prints on a terminal, by names that stay the same."""
        with self.start(command, subprocess.STDOUT, MM2_OFFSETS_CONFIG="mm2.toml") as process:
            assert process.stdout is not None
            text = ""
            for line in process.stdout:
                text += line
                if "Ctrl-C ends it" in line:
                    process.send_signal(signal.SIGINT)
            code = process.wait(120)
        for here, there in self.addresses.items():
            text = text.replace(here, there)
        for pattern, there in RULES:
            text = re.sub(pattern, there, text)
        if text and not text.endswith("\n"):
            text += "\n"
        return text + (f"[exit code {code}]\n" if code else "")

    def start(self, command: str, stderr: int, **variables: str) -> subprocess.Popen[str]:
        """Start a line as a shell would, with nothing set that is not the user's."""
        mine = ("MM2_OFFSETS_", "AIRFLOW", "NO_COLOR", "FORCE_COLOR")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(mine)}
        path = f"{Path(sys.executable).parent}{os.pathsep}{kept.get('PATH', '')}"
        return subprocess.Popen(
            ["/bin/bash", "-c", command],
            cwd=self.folder,
            env=kept | {"PATH": path, "COLUMNS": "80"} | variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        )


@pytest.fixture(scope="module")
def terminal(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    """Return a terminal beside a topic whose aborted records MirrorMaker 2 has not copied."""
    folder = tmp_path_factory.mktemp("cli")
    addresses = {
        stack.source: "source:9092",
        stack.target: "target:9092",
        stack.connect_url: "http://connect:8083",
    }
    settings = SETTINGS.format(source=stack.source, target=stack.target, connect=stack.connect_url)
    (folder / "mm2.toml").write_text(settings)
    (folder / "down.toml").write_text(settings.replace(stack.target, "127.0.0.1:1"))
    (folder / "other.toml").write_text(settings.replace('"us"', '"asia"').replace('"eu"', '"de"'))
    (folder / "token.txt").write_text(f"{TOKEN}\n")
    (folder / "positions.json").write_text(json.dumps({TOPIC: {"0": 50, "1": 30}}))
    _checkpoint(folder / "checkpoint")
    _job(folder)
    with mirror(stack, name="shop") as made:
        _fill(made)
        _copy(made, folder)
        yield Terminal(folder=folder, addresses=addresses)


def _fill(made: Mirror) -> None:
    """Write before anything is copied: the syncs then depend on the records alone."""
    create_topic(made.stack.source, TOPIC, 2)
    writer = Writer(made, TOPIC)
    for aborted in (10, 5):
        writer.abort({0: aborted})
        writer.write({0: 25, 1: 25})


def _copy(made: Mirror, folder: Path) -> None:
    aliases = {"source.cluster.alias": "eu", "target.cluster.alias": "us"}
    made.configure(**aliases, topics=TOPIC, **{"offset.lag.max": 20})
    pair = load_settings(folder / "mm2.toml", {}).pair()

    def is_noted() -> bool:
        try:
            partitions = read_syncs(pair.syncs_cluster, pair.syncs_topic).index.partitions
        except SyncsTopicError:
            return False
        last = {partition: syncs.last.upstream for partition, syncs in partitions.items()}
        return last == {(TOPIC, 0): 66, (TOPIC, 1): 49}

    wait_until(is_noted, f"the syncs of {TOPIC}")


def _checkpoint(root: Path) -> None:
    """Write one that has committed batch 0 and begun batch 1, as Spark would."""
    start, first, second = (
        json.dumps({TOPIC: {"0": at, "1": at - 20}}, separators=(",", ":")) for at in (20, 50, 60)
    )
    batch = 'v1\n{"batchWatermarkMs":0,"batchTimestampMs":1795250096229,"conf":{}}\n'
    for name, text in {
        "metadata": '{"id":"f9935b59-ce2d-43f1-9db5-7073e52f8d53"}',
        "sources/0/0": f"\0v1\n{start}",
        "offsets/0": batch + first,
        "offsets/1": batch + second,
        "commits/0": 'v1\n{"nextBatchWatermarkMs":0}',
    }.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def _job(folder: Path) -> None:
    """Write a file of jobs, and the folder of one whose driver has just ended."""
    homes = {"eu": "eu/orders", "us": "us/orders"}
    job = {"name": "orders", "homes": homes, "dag": "orders_stream", "records": "records"}
    (folder / "jobs.json").write_text(json.dumps({"jobs": [job]}))
    home = folder / "eu" / "orders"
    _checkpoint(home / "checkpoint")
    ids = {"query_id": "f9935b59-ce2d-43f1-9db5-7073e52f8d53", "run_id": "r"}
    driver = {
        "schema_version": 2,
        "application_id": "app-1",
        "host": "h",
        "pid": 7,
        **ids,
        "heartbeat": 1,
        "lease": 1.0,
        "ended": True,
        "control": f"file:{home / 'control'}",
        "queries": [{**ids, "checkpoint": f"file:{home / 'checkpoint'}"}],
    }
    (home / "control").mkdir()
    (home / "control" / "driver.json").write_text(json.dumps(driver))


@pytest.mark.parametrize("number", range(len(BLOCK.findall(PAGE.read_text()))))
def test_the_page_is_true(terminal: Terminal, number: int) -> None:
    """Each command of docs/cli.md prints what the page shows, and ends with its exit code."""
    page = PAGE.read_text()
    block = [*BLOCK.finditer(page)][number]
    commands = COMMAND.findall(block[1])
    assert commands
    made = "".join(each + terminal.transcript(each.removeprefix("$ ")) for each in commands)
    if os.environ.get("UPDATE_TRANSCRIPTS"):
        PAGE.write_text(page[: block.start(1)] + made + page[block.end(1) :])
    assert made == block[1]


def test_every_command_is_on_the_page(terminal: Terminal) -> None:
    """Each command that the help lists is on the page."""
    listed = terminal.run("airflow-mm2-offsets --help").stdout
    commands = re.findall(r"^  ([a-z-]+)  ", listed.partition("Commands:")[2], re.MULTILINE)
    assert len(commands) >= 6
    page = PAGE.read_text()
    assert [each for each in commands if f"$ airflow-mm2-offsets {each}" not in page] == []


def test_an_airflow_connection_says_where_the_clusters_are(
    terminal: Terminal, stack: Stack
) -> None:
    """A connection gives the settings file's answer; Airflow's log does not reach stdout."""
    names = {"source_alias": "eu", "target_alias": "us", "replication_policy": "identity"}
    connections = {
        "mm2_default": {"conn_type": "mm2", "extra": {**names, **SYNCS_ON_TARGET}},
        "kafka_source": _kafka(stack.source),
        "kafka_target": _kafka(stack.target),
    }
    variables = {
        f"AIRFLOW_CONN_{name.upper()}": json.dumps(connections[name]) for name in connections
    }
    variables["AIRFLOW_HOME"] = str(terminal.folder / "airflow")
    command = f"airflow-mm2-offsets translate {TOPIC}:0:50 --json"
    by_connection = terminal.run(f"{command} --conn-id mm2_default", **variables)
    by_file = terminal.run(f"{command} --config mm2.toml")
    assert by_connection.returncode == by_file.returncode == 0, by_connection.stderr
    partitions = [json.loads(each.stdout)["partitions"] for each in (by_connection, by_file)]
    assert partitions[0] == partitions[1]


def _kafka(servers: str) -> dict[str, object]:
    return {"conn_type": "kafka", "extra": {"bootstrap.servers": servers}}


def test_serve_obeys_its_options(terminal: Terminal) -> None:
    """The server listens on the given port and accepts the token of the file."""
    command = "airflow-mm2-offsets serve --config mm2.toml --port 0 --token-file token.txt"
    with terminal.start(command, subprocess.PIPE) as process:
        assert process.stderr is not None
        url = process.stderr.readline().split()[-4].rstrip(";")
        path = f"{url}/api/v1/offsets/translate"
        query: dict[str, str | int] = {"topic": TOPIC, "partition": 0, "offset": 42}
        login = {"Authorization": f"Bearer {TOKEN}"}
        wait_until(
            lambda: httpx.get(path, params=query, headers=login).is_success, "the first index"
        )
        answer = httpx.get(path, params=query, headers=login).json()
        anonymous = httpx.get(path, params=query)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert process.returncode == 0
    assert int(answer["targetOffset"]) == 25
    assert anonymous.status_code == 401
