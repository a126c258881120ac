"""Looks for canaries in all that a failover leaves: files, a database, processes, answers."""

import os
import shutil
import subprocess
import threading
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from types import TracebackType
from typing import Self

import psycopg2
from psycopg2 import sql

from tests.e2e.canaries import Canaries

Findings = dict[str, frozenset[str]]
"""The canaries at each place where there are any."""
LOOK_SECONDS = 0.5
_PS = (shutil.which("ps") or "ps", "axww", "-o", "args=")
_TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY tablename"


def in_files(canaries: Canaries, folders: Iterable[Path], without: Collection[Path]) -> Findings:
    """Look into every file of some folders, but into those where secrets belong."""
    contents = (
        (str(path), path.read_bytes())
        for folder in folders
        for path in _files(folder)
        if not any(path.is_relative_to(each) for each in without)
    )
    return _find(canaries, contents)


def in_database(canaries: Canaries, url: str) -> Findings:
    """Look into every row of every table."""
    with closing(psycopg2.connect(url.replace("+psycopg2", ""))) as connection:
        return _find(canaries, _rows(connection))


def in_texts(canaries: Canaries, texts: Iterable[tuple[str, str]]) -> Findings:
    """Look into texts, each with its name."""
    return _find(canaries, ((name, text.encode()) for name, text in texts))


def _find(canaries: Canaries, contents: Iterable[tuple[str, bytes]]) -> Findings:
    findings: defaultdict[str, frozenset[str]] = defaultdict(frozenset)
    for name, content in contents:
        if found := canaries.find(content):
            findings[name] |= found
    return dict(findings)


def _files(folder: Path) -> Iterator[Path]:
    for parent, _, names in os.walk(folder):
        yield from (path for name in names if (path := Path(parent, name)).is_file())


def _rows(connection: "psycopg2.extensions.connection") -> Iterator[tuple[str, bytes]]:
    with connection.cursor() as cursor:
        cursor.execute(_TABLES)
        tables = [name for (name,) in cursor.fetchall()]
        for table in tables:
            # Bytes would be shown in hexadecimal, which is looked for as well.
            cursor.execute(sql.SQL("SELECT t::text FROM {} AS t").format(sql.Identifier(table)))
            yield from ((f"table {table}", row.encode()) for (row,) in cursor.fetchall())


class ProcessWatch:
    """Looks at the command lines and the environments of all processes, twice a second.

    What it looked at is thrown away: only the places of canaries are kept.
    """

    def __init__(self, canaries: Canaries) -> None:
        """Look at nothing yet."""
        self._canaries = canaries
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._seen: set[tuple[str, int]] = set()
        self.looks = 0
        self.arguments: Findings = {}
        """By command line."""
        self.environments: Findings = {}
        """By variable."""

    def __enter__(self) -> Self:
        """Begin."""
        self._thread.start()
        return self

    def __exit__(
        self,
        _type: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        """Look no more."""
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopping.wait(LOOK_SECONDS):
            listed = subprocess.run(_PS, capture_output=True, text=True, check=True).stdout
            lines = ((each, each.encode()) for each in listed.splitlines())
            self.arguments |= _find(self._canaries, self._new(lines))
            self.environments |= _find(self._canaries, self._new(_variables()))
            self.looks += 1

    def _new(self, contents: Iterable[tuple[str, bytes]]) -> Iterator[tuple[str, bytes]]:
        """Yield what was not looked at before."""
        for name, content in contents:
            if (key := (name, hash(content))) not in self._seen:
                self._seen.add(key)
                yield name, content


def _variables() -> Iterator[tuple[str, bytes]]:
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            variables = path.read_bytes().split(b"\0")
        except OSError:  # it has ended
            continue
        for each in variables:
            name, _, value = each.partition(b"=")
            yield name.decode(errors="replace"), value
