"""Runs soaks, one after another, and keeps their table in CONTRIBUTING.md; ``make soak``.

A soak is a proof that takes too long for each CI run. Its row names the commit of its last run, and
says whether its code has changed since then: such a row proves nothing about the code of today.
Without names those run that are stale, red or new. An interrupted run goes on where it was.
"""

import argparse
import ast
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import TextIO

ROOT = Path(__file__).parents[1]
GIT = shutil.which("git") or "git"
BEGIN, END = "<!-- the table: make soak -->", "<!-- its end -->"
HEAD = (
    "| soak | what it does | date | commit | minutes | result | its code since |\n"
    "|---|---|---|---|---|---|---|"
)
CODE = ("airflow_mm2_offsets", "dags", "demo", "stack")
"""What every soak runs, beside its own files and what those import of the tests."""
UNCOMMITTED = "uncommitted"
"""The commit of a run whose code no commit holds."""
PASSED = "passed"
LONGEST = 4 * 3600
"""Seconds for one test of a soak: each wait has a deadline, and the machine may be busy."""

_FIGURES: Counter[str] = Counter()


def add_figures(**figures: int) -> None:
    """Add to the figures of the soak that this process runs, and print the sums.

    The last line that a process prints is what its soak's row says.
    """
    _FIGURES.update(figures)
    texts = (f"{number:,} {name.replace('_', ' ')}" for name, number in _FIGURES.items())
    _say(f"\nfigures: {', '.join(texts)}")


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


@dataclass(frozen=True, slots=True, kw_only=True)
class Soak:
    """One soak, and what runs it."""

    name: str
    does: str
    tests: tuple[str, ...] = ()
    """Files for pytest."""
    program: tuple[str, ...] = ()
    """A module with its arguments."""

    @property
    def commands(self) -> tuple[tuple[str, ...], ...]:
        """What is run, one after another: modules with their arguments."""
        tests = ("pytest", "-s", *self.tests) if self.tests else ()
        return tuple(filter(None, (tests, self.program)))

    @property
    def files(self) -> tuple[str, ...]:
        """Return where it begins: its files, of which one may not exist."""
        program = self.program[0].replace(".", "/") if self.program else ""
        return (*self.tests, *((f"{program}.py", f"{program}/__main__.py") if program else ()))


SOAKS = (
    Soak(
        name="translation",
        does="judges a million positions in simulated worlds of every kind",
        program=("tests.support.mirror_world", "--positions", "1000000"),
    ),
    Soak(
        name="moved",
        does="pauses, wakes and restarts the source job of a failover, and looks for a second job",
        tests=("tests/e2e/soak_moved.py",),
    ),
    Soak(
        name="clearing",
        does="clears the tasks of a failed and of a finished failover in many orders",
        program=("tests.e2e.soak_clearing",),
    ),
    Soak(
        name="failback",
        does="moves a job to the target and home twice under writes, and once by a mirror "
        "that was turned round",
        tests=("tests/e2e/soak_failback.py",),
    ),
    Soak(
        name="drill",
        does="compares clusters and files before and after two drills, one of them killed",
        tests=("tests/integration/soak_drill.py",),
    ),
    Soak(
        name="groups",
        does="syncs groups beside MirrorMaker 2's own sync, and counts what each repeats",
        tests=("tests/integration/soak_groups.py",),
    ),
    Soak(
        name="connect",
        does="resets and alters the offsets of MirrorMaker 2 3.6 and 4.3 under writes, and judges "
        "the plans",
        tests=("tests/integration/soak_connect.py",),
    ),
    Soak(
        name="disaster",
        does="loses the source at two random moments, and its storage too, and compares forecast "
        "and truth",
        tests=("tests/e2e/soak_losses.py", "tests/e2e/soak_disaster.py"),
    ),
    Soak(
        name="kills",
        does="kills a worker, or Airflow's parts in turn, between each two steps, planned and in a "
        "disaster",
        tests=("tests/e2e/soak_kills.py",),
    ),
    Soak(
        name="fleet",
        does="moves 9 light jobs in three waves, one of them broken, while Airflow is killed",
        program=("tests.e2e.soak_fleet",),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run of a soak, as its row has it."""

    date: str
    commit: str
    minutes: str
    result: str

    @property
    def passed(self) -> bool:
        return self.result.startswith(PASSED)


class Soaks:
    """Some soaks of a checkout, and the last run of each by the table of its page."""

    def __init__(self, root: Path = ROOT, soaks: tuple[Soak, ...] = SOAKS) -> None:
        self.root, self.page = root, root / "CONTRIBUTING.md"
        self.soaks = {soak.name: soak for soak in soaks}
        self.runs = dict(_rows(self.page))

    def is_proved(self, name: str) -> bool:
        """Tell whether a soak has passed since its code changed."""
        run = self.runs.get(name)
        return run is not None and run.passed and not self.has_changed(name, run.commit)

    def has_changed(self, name: str, commit: str) -> bool:
        """Tell whether the checkout's code of a soak differs from a commit, or may differ."""
        # An unknown commit is an error: nothing shows that the code is the same.
        return self._git("diff", "--quiet", commit, "--", *self._code(name)).returncode != 0

    def run(self, name: str) -> None:
        """Run a soak to its end, and rewrite the table."""
        commit = self._git("rev-parse", "--short", "HEAD").stdout.strip()
        if self.has_changed(name, "HEAD"):
            commit = UNCOMMITTED
        began = time.monotonic()
        result = self._result(name)
        minutes = f"{(time.monotonic() - began) / 60:.0f}"
        run = Run(
            date=f"{datetime.now(UTC):%Y-%m-%d}", commit=commit, minutes=minutes, result=result
        )
        self.write({name: run})

    def log(self, name: str) -> Path:
        """Return where all that a soak prints is kept."""
        return self.root / "build" / "soaks" / f"{name}.log"

    def write(self, runs: Mapping[str, Run] = MappingProxyType({})) -> None:
        """Rewrite the table with new runs."""
        # Hours have passed: another soak may have written its row meanwhile.
        self.runs = {**dict(_rows(self.page)), **runs}
        before, _, rest = self.page.read_text().partition(BEGIN)
        _, _, after = rest.partition(END)
        rows = "\n".join(map(self._row, self.soaks))
        self.page.write_text(f"{before}{BEGIN}\n{HEAD}\n{rows}\n{END}{after}")

    def line(self, name: str) -> str:
        """Return what the last run of a soak shows, in one line."""
        run = self.runs.get(name)
        if run is None:
            return f"{name:12} has never run"
        changed = self.has_changed(name, run.commit)
        stale = "; HAS NOT RUN SINCE ITS CODE CHANGED" if changed else ""
        return f"{name:12} {run.date} {run.commit:>11} {run.minutes:>4} min  {run.result}{stale}"

    def _row(self, name: str) -> str:
        cells = ("never", "", "", "", "")
        if run := self.runs.get(name):
            since = "changed" if self.has_changed(name, run.commit) else "the same"
            cells = (run.date, run.commit, run.minutes, run.result, since)
        return f"| {' | '.join((name, self.soaks[name].does, *cells))} |"

    def _result(self, name: str) -> str:
        self.log(name).parent.mkdir(parents=True, exist_ok=True)
        with self.log(name).open("w+", errors="replace") as log:
            results = [self._execute(command, log) for command in self.soaks[name].commands]
        figures = "; ".join(filter(None, (figures for _, figures in results)))
        # A soak whose tests were skipped ends well, and has no figures.
        passed = all(code == 0 and figures for code, figures in results)
        return f"{PASSED if passed else 'FAILED'}: {figures or 'no figures'}"

    def _execute(self, command: tuple[str, ...], log: TextIO) -> tuple[int, str]:
        """Run one command; return its exit code and the last figures that it has printed."""
        begin = log.seek(0, os.SEEK_END)
        ended = subprocess.run(
            [sys.executable, "-m", *command],
            cwd=self.root,
            stdout=log,
            stderr=subprocess.STDOUT,
            check=False,
        )
        log.seek(begin)
        return ended.returncode, "".join(re.findall("figures: (.+)", log.read())[-1:])

    def _code(self, name: str) -> tuple[str, ...]:
        """Return what a soak runs, as pathspecs of git."""
        files = [Path(file) for file in self.soaks[name].files]
        conftests = [folder / "conftest.py" for file in files for folder in file.parents]
        todo = [self.root / file for file in (*files, *conftests)]
        used: set[Path] = set()
        while todo:
            if (file := todo.pop()) not in used and file.exists():
                used.add(file)
                todo += _imports(file, self.root)
        # Every soak imports this file, for its figures alone.
        used.discard(self.root / "tests" / "soaks.py")
        return (*CODE, *sorted(str(file.relative_to(self.root)) for file in used))

    def _git(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [GIT, *arguments], cwd=self.root, capture_output=True, text=True, check=False
        )


def _imports(file: Path, root: Path) -> Iterator[Path]:
    """Yield which files of the tests a file imports; some may not exist."""
    for node in ast.walk(ast.parse(file.read_bytes())):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        for name in names:
            if name.partition(".")[0] == "tests":
                place = root / name.replace(".", "/")
                yield from (place.with_suffix(".py"), place / "__init__.py")


def _rows(page: Path) -> Iterator[tuple[str, Run]]:
    """Yield the name and the last run of each soak that has run."""
    _, _, table = page.read_text().partition(BEGIN)
    rows = [line for line in table.partition(END)[0].splitlines() if line.startswith("| ")]
    for row in rows[1:]:
        name, _, date, commit, minutes, result, _ = [each.strip() for each in row.split("|")[1:-1]]
        if commit:
            yield name, Run(date=date, commit=commit, minutes=minutes, result=result)


def main() -> int:
    """Run soaks, and return 0 if each of those that were named is proved."""
    soaks = Soaks()
    parser = argparse.ArgumentParser(prog="tests.soaks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(soaks.soaks)}")
    parser.add_argument("--show", action="store_true", help="run none; rewrite the table")
    options = parser.parse_args()
    if unknown := set(options.names) - soaks.soaks.keys():
        parser.error(f"no soak is called {', '.join(unknown)}: they are {', '.join(soaks.soaks)}")
    # An exception lets subprocess.run end the soak, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    names = options.names or list(soaks.soaks)
    for name in names:
        if not options.show and (options.names or not soaks.is_proved(name)):
            soaks.run(name)
        _say(soaks.line(name))
    soaks.write()
    return 0 if all(map(soaks.is_proved, names)) else 1


if __name__ == "__main__":
    sys.exit(main())
