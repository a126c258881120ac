"""The command as a process: signals, pipes, imports and missing packages."""

import json
import os
import pty
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from airflow_mm2_offsets.cli.exit_codes import ExitCode
from airflow_mm2_offsets.core import OffsetSync, encode_offset_sync
from stack.waiting import wait_until
from tests.support.mock_broker import MockBroker, free_address, rejecting_broker
from tests.unit.cli.conftest import settings_text

SYNCS = "mm2-offset-syncs.a.internal"
SCRIPT = str(Path(sys.executable).with_name("airflow-mm2-offsets"))

_SIDES = ("SOURCE", "TARGET")

WITHOUT = """
import sys
sys.modules.update(dict.fromkeys({absent}))
from airflow_mm2_offsets.cli import main
{first}
sys.argv[1:] = {arguments}
main()
"""


@dataclass(frozen=True, kw_only=True)
class CommandLine:
    """A settings file of two brokers, for the command's process."""

    target: MockBroker
    config: Path


def _environ(line: CommandLine) -> dict[str, str]:
    return os.environ | {"MM2_OFFSETS_CONFIG": str(line.config)}


def _without(
    line: CommandLine, absent: Sequence[str], *arguments: str, first: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run a command where some packages can't be imported."""
    program = WITHOUT.format(absent=list(absent), arguments=list(arguments), first=first)
    return subprocess.run(
        [sys.executable, "-c", program],
        env=_environ(line),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


NO_TOPICS = """
from airflow_mm2_offsets.kafka.cluster import KafkaCluster
KafkaCluster.topics = lambda *_: {}
"""
"""librdkafka's broker describes no topics."""


@pytest.fixture
def line(tmp_path: Path) -> Iterator[CommandLine]:
    """Settings for two mock brokers; MirrorMaker 2 began at orders[0]'s record 17."""
    source, target = MockBroker(), MockBroker()
    numbers = range(100)
    source.write("orders", [(b"%d" % number, b"v") for number in numbers])
    target.write("orders", [(b"%d" % number, b"v") for number in numbers if number >= 17])
    target.write(SYNCS, _syncs("orders", (17, 0), (40, 23), (70, 53), (98, 81)))
    config = tmp_path / "mm2.toml"
    config.write_text(settings_text(source.servers, target.servers))
    yield CommandLine(target=target, config=config)
    source.stop()
    target.stop()


def _syncs(topic: str, *syncs: tuple[int, int]) -> list[tuple[bytes, bytes]]:
    return [
        encode_offset_sync(
            OffsetSync(topic=topic, partition=0, upstream=upstream, downstream=downstream)
        )
        for upstream, downstream in syncs
    ]


def test_it_runs_without_airflow(line: CommandLine) -> None:
    """The command also runs without the packages of the server, of Spark and of the archive."""
    absent = ["airflow", "fastapi", "uvicorn", "pyspark", "pyarrow", "numpy"]
    done = _without(line, absent, "translate", "orders:0:50", "--json", first=NO_TOPICS)
    assert done.returncode == ExitCode.OK, done.stderr
    assert json.loads(done.stdout)["starting_offsets"] == '{"orders":{"0":33}}'


@pytest.mark.parametrize("absent", ["click", "confluent_kafka"])
def test_a_missing_extra_is_one_line(line: CommandLine, absent: str) -> None:
    """Without its extra, a command prints one line with the way to install it."""
    done = _without(line, [absent], "syncs")
    assert done.returncode == ExitCode.USAGE
    hint = "run: pip install 'airflow-mm2-offsets[cli]'"
    assert done.stderr == f"Error: the command line needs {absent}; {hint}\n"


@pytest.mark.parametrize(
    ("absent", "arguments", "message"),
    [
        ("airflow", ["syncs", "--conn-id", "mm2_default"], "--conn-id needs Airflow"),
        ("fastapi", ["serve"], "serve needs fastapi; install airflow-mm2-offsets[api]"),
        ("pyarrow", ["archive", "show", "/nowhere"], "install airflow-mm2-offsets[archive]"),
    ],
)
def test_a_command_names_its_missing_extra(
    line: CommandLine, absent: str, arguments: list[str], message: str
) -> None:
    """A command whose extra is missing names that extra."""
    done = _without(line, [absent], *arguments)
    assert done.returncode == ExitCode.USAGE
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("command", ["check-connection", "check"])
def test_ctrl_c_ends_it(line: CommandLine, command: str) -> None:
    """Ctrl-C ends the command with code 130 while its threads wait for silent brokers."""
    patience = 240
    with socket.create_server(("127.0.0.1", 0)) as silent:
        servers = f"127.0.0.1:{silent.getsockname()[1]}"
        environ = {f"MM2_OFFSETS_{side}_BOOTSTRAP_SERVERS": servers for side in _SIDES}
        with subprocess.Popen(
            [SCRIPT, command, "--timeout", str(patience)],
            env=_environ(line) | environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            try:
                with silent.accept()[0]:
                    process.send_signal(signal.SIGINT)
                    stdout, stderr = process.communicate(timeout=patience / 3)
            finally:
                process.kill()
    assert process.returncode == ExitCode.INTERRUPTED
    assert (stdout, stderr) == ("", "Interrupted\n")


def test_a_server_whose_login_is_refused_ends(line: CommandLine) -> None:
    """With one clear error and the code of a cluster without an answer, not by its first reader."""
    with rejecting_broker() as servers:
        login = {
            "KAFKA_SECURITY_PROTOCOL": "SASL_PLAINTEXT",
            "KAFKA_SASL_MECHANISM": "PLAIN",
            "KAFKA_SASL_USERNAME": "spark",
            "KAFKA_SASL_PASSWORD": "hunter2",
            "TARGET_BOOTSTRAP_SERVERS": servers,
            "SERVE_PORT": "0",
        }
        environ = {f"MM2_OFFSETS_{name}": value for name, value in login.items()}
        ended = subprocess.run(
            [SCRIPT, "serve"],
            env=_environ(line) | environ,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert ended.returncode == ExitCode.UNREACHABLE, ended.stderr
    error = ended.stderr.splitlines()[-1]
    assert error.startswith("Error: target (bootstrap.servers=127.0.0.1:")
    assert "authentication failed" in error
    assert "Traceback" not in ended.stderr
    assert "hunter2" not in ended.stderr


STUCK_IN_C = """
import ctypes, pathlib
from airflow_mm2_offsets.cli import main
from airflow_mm2_offsets.kafka.session import ClientSession
mutex, library = ctypes.create_string_buffer(64), ctypes.CDLL(None)
def wait_for_ever(*_):
    library.pthread_mutex_lock(mutex)
    pathlib.Path({begun!r}).touch()
    library.pthread_mutex_lock(mutex)
ClientSession.metadata = wait_for_ever
import sys
sys.argv[1:] = ["syncs"]
main()
"""
"""As librdkafka, the lock gives up Python's, and does not care for signals."""


def test_ctrl_c_ends_a_call_of_a_library(line: CommandLine, tmp_path: Path) -> None:
    """Ctrl-C ends the command also where the main thread does not come back to Python."""
    begun = tmp_path / "begun"
    with subprocess.Popen(
        [sys.executable, "-c", STUCK_IN_C.format(begun=str(begun))],
        env=_environ(line),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            wait_until(begun.exists, "the call to begin")
            process.send_signal(signal.SIGINT)
            stdout, stderr = process.communicate(timeout=30)
        finally:
            process.kill()
    assert process.returncode == ExitCode.INTERRUPTED
    assert (stdout, stderr) == ("", "Interrupted\n")


INTERRUPTED_IMPORT = """
import sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "airflow_mm2_offsets.{module}":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Finder())
from airflow_mm2_offsets.cli import main
sys.argv[1:] = ["syncs", "--config", "nowhere.toml"]
main()
"""


@pytest.mark.parametrize("module", ["cli.app", "cli.inspect", "config"])
def test_ctrl_c_at_the_start_ends_it(module: str) -> None:
    """Ctrl-C while a module is imported ends with code 130 too, and shows no traceback."""
    ended = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_IMPORT.format(module=module)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == ExitCode.INTERRUPTED
    assert ended.stdout == ""
    assert ended.stderr.strip() in {"", "Interrupted"}


def test_a_closed_pipe_ends_it_silently(line: CommandLine) -> None:
    """``| head`` ends the command without a message and with the code of SIGPIPE."""
    line.target.write(SYNCS, _syncs("many", *((number, number) for number in range(5000))))
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [SCRIPT, "syncs", "--limit", "0"],
        env=_environ(line),
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
        check=False,
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (ExitCode.BROKEN_PIPE, "")


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["plan", "-h"], ["help"]])
def test_help_ends_as_answers_do(arguments: list[str]) -> None:
    """A closed pipe ends the help in silence with 141, a full disk with one line and 74."""
    reading, writing = os.pipe()
    os.close(reading)
    command = [SCRIPT, *arguments]
    closed = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert (closed.returncode, closed.stderr) == (ExitCode.BROKEN_PIPE, b"")
    with Path("/dev/full").open("wb") as full:
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert ended.returncode == ExitCode.IO_ERROR
    assert ended.stderr.startswith("Error: stdout: No space left on device; ")
    assert ended.stderr.count("\n") == 1


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_a_full_disk_is_one_line(line: CommandLine, form: list[str]) -> None:
    """An answer that stdout does not take ends with code 74, and without a traceback."""
    command = [SCRIPT, "syncs", *form]
    with Path("/dev/full").open("wb") as full:
        ended = subprocess.run(
            command,
            env=_environ(line),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )
    assert ended.returncode == ExitCode.IO_ERROR
    assert ended.stderr.startswith("Error: stdout: No space left on device; ")
    assert ended.stderr.count("\n") == 1


def test_a_closed_stderr_changes_no_exit_code(line: CommandLine) -> None:
    """An error that nobody can read still has its code."""
    for arguments in ("syncs --config nowhere.toml", "syncs --limit x"):
        shell = f"{SCRIPT} {arguments} 2>&-"
        ended = subprocess.run(["/bin/sh", "-c", shell], env=_environ(line), check=False)
        assert ended.returncode == ExitCode.USAGE


def test_a_second_server_on_a_port_is_refused(line: CommandLine) -> None:
    """The address and the settings at fault are named, and nothing is served."""
    address = free_address()
    host, _, port = address.partition(":")
    serve = [SCRIPT, "serve", "--host", host, "--port", port]
    first = subprocess.Popen(serve, env=_environ(line), stderr=subprocess.PIPE, text=True)
    assert first.stderr is not None
    assert first.stderr.readline() == f"a -> b: http://{address}; Ctrl-C ends it\n"
    second = subprocess.run(
        serve, env=_environ(line), capture_output=True, text=True, timeout=60, check=False
    )
    first.send_signal(signal.SIGINT)
    assert first.wait(30) == ExitCode.OK
    first.stderr.close()
    assert second.returncode == ExitCode.USAGE
    assert second.stderr.startswith(f"Error: can't listen on {address}: ")


def test_progress_is_for_a_terminals_stderr(line: CommandLine) -> None:
    """Progress is printed to a terminal's stderr, and stdout holds the answer alone."""
    terminal, stderr = pty.openpty()
    with subprocess.Popen(
        [SCRIPT, "syncs", "--json"],
        env={**_environ(line), "TERM": "xterm"},
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
    ) as process:
        os.close(stderr)
        shown = _drained(terminal)
        assert process.stdout is not None
        assert json.load(process.stdout)["total"] == 4
    assert process.returncode == ExitCode.OK
    assert "Reading offset syncs" in shown
    assert shown.endswith("\r\x1b[K")
    assert "\n" not in shown


def _drained(terminal: int) -> str:
    """Return all that is written to a terminal until it is closed."""
    shown = b""
    with suppress(OSError):  # EIO on Linux; elsewhere the end is empty
        while chunk := os.read(terminal, 4096):
            shown += chunk
    os.close(terminal)
    return shown.decode()
