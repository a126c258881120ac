"""Changes the rule in small ways, one at a time, and runs tests: each change must fail one.

``make mutants`` runs it. A change that no test notices survives: either the code is not needed, or
a test is missing, or the change makes no difference, which is to be argued in CONTRIBUTING.md.

The changes follow from the syntax tree of the given files: ``<=`` for ``<``, ``+ 1`` and ``- 1``
dropped, ``and`` for ``or``, one condition of several dropped, ``not`` dropped, an ``if`` that is
never true, ``min`` for ``max``. Each is made in a copy of the checkout. The tests that have noticed
one run first for the next: most changes are noticed by few tests.
"""

import argparse
import ast
import os
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Final

CORE: Final = "airflow_mm2_offsets/core"
FILES: Final = tuple(
    f"{CORE}/{name}.py"
    for name in (
        *("bounds", "bracket", "bracket_bounds", "epochs", "lows", "segments"),
        *(
            "duplicates",
            "rules",
            "refusals",
            "evidence",
            "content",
            "counting",
            "last_copy",
            "search_ranges",
        ),
        *("inverse", "inverse_content", "inverse_evidence", "rows"),
    )
)
TESTS: Final = ("tests/unit/core", "tests/unit/planning", "tests/unit/test_moved_offsets.py")

_PAIRS: Final[tuple[tuple[type[ast.cmpop], type[ast.cmpop]], ...]] = (
    (ast.Lt, ast.LtE),
    (ast.Gt, ast.GtE),
    (ast.Eq, ast.NotEq),
    (ast.Is, ast.IsNot),
    (ast.In, ast.NotIn),
)
_NEIGHBOURS: Final = dict(_PAIRS) | {after: before for before, after in _PAIRS}
_FAILED: Final = re.compile(r"^FAILED (?P<test>\S+::.*?)( - .*)?$", re.MULTILINE)
"""A line of pytest's summary."""
_OTHER_END: Final = {"min": "max", "max": "min"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One change of one file."""

    place: str
    """File and line."""
    old: str
    new: str
    source: bytes
    """The whole file, changed."""

    def __str__(self) -> str:
        """Return a row of the table, without the result."""
        return f"{self.place} | `{self.old}` | `{self.new}`"


def mutants_of(path: Path, root: Path) -> Iterator[Mutant]:
    """Yield every change of a file."""
    text = path.read_text(encoding="utf-8")
    lines = text.encode().splitlines(keepends=True)
    starts = [sum(map(len, lines[:number])) for number in range(len(lines) + 1)]
    for node, changes in _nodes(ast.parse(text)):
        begin = starts[node.lineno - 1] + node.col_offset
        end = starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
        for changed in changes:
            # A change may bind less tightly than what stood there.
            new = f"({ast.unparse(changed)})"
            source = text.encode()[:begin] + new.encode() + text.encode()[end:]
            place = f"{path.relative_to(root)}:{node.lineno}"
            yield Mutant(place=place, old=ast.unparse(node), new=new[1:-1], source=source)


def _nodes(tree: ast.AST) -> Iterator[tuple[ast.expr, list[ast.expr]]]:
    """Yield each expression that may change, and what it becomes."""
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.Assert):
            continue
        if isinstance(child, ast.If) and getattr(child.test, "id", "") != "TYPE_CHECKING":
            yield child.test, [ast.Constant(value=False)]
        if isinstance(child, ast.expr):
            yield child, [*_changes(child)]
        yield from _nodes(child)


def _changes(node: ast.expr) -> Iterator[ast.expr]:
    match node:
        case ast.Compare(ops=ops):
            for at, operator in enumerate(ops):
                changed = deepcopy(node)
                changed.ops[at] = _NEIGHBOURS[type(operator)]()
                yield changed
        case ast.BinOp(op=ast.Add() | ast.Sub(), right=ast.Constant(value=1)):
            yield node.left
        case ast.BinOp(op=ast.BitAnd()) | ast.IfExp():
            operands = [each for each in ast.iter_child_nodes(node) if isinstance(each, ast.expr)]
            yield from operands[-2:]
        case ast.BoolOp(op=operator, values=values):
            yield ast.BoolOp(ast.Or() if isinstance(operator, ast.And) else ast.And(), values)
            for at in range(len(values)):
                left = [*values[:at], *values[at + 1 :]]
                yield left[0] if len(left) == 1 else ast.BoolOp(operator, left)
        case ast.UnaryOp(op=ast.Not()):
            yield node.operand
        case ast.Call(func=ast.Name(id=name)) if name in _OTHER_END:
            yield ast.Call(ast.Name(_OTHER_END[name]), node.args, node.keywords)
        case ast.ListComp() | ast.GeneratorExp() | ast.SetComp() | ast.DictComp():
            yield from _without_conditions(node)


def _without_conditions(node: ast.expr) -> Iterator[ast.expr]:
    for at, child in enumerate(ast.walk(node)):
        if isinstance(child, ast.comprehension):
            for number in range(len(child.ifs)):
                changed = deepcopy(node)
                del [*ast.walk(changed)][at].ifs[number]  # type: ignore[attr-defined]
                yield changed


def _copy(root: Path, to: Path) -> None:
    tracked = subprocess.check_output(["git", "ls-files", "-zco", "--exclude-standard"], cwd=root)  # noqa: S607
    for name in filter(None, tracked.decode().split("\0")):
        if (root / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, to / name)


def _run(checkout: Path, tests: Sequence[str], timeout: float) -> tuple[str, str]:
    """Return what became of a change (killed, survived, timeout, or error) and by which test."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        ran = subprocess.run(
            command,
            cwd=checkout,
            env=environment,
            timeout=timeout,
            check=False,
            capture_output=True,
        )
    except subprocess.TimeoutExpired:
        return "timeout", ""
    failed = _FAILED.search(ran.stdout.decode(errors="replace"))
    result = {0: "survived", 1: "killed"}.get(ran.returncode, "error")
    return result, failed["test"] if failed else ""


def _judge(drawn: Sequence[Mutant], root: Path, options: argparse.Namespace) -> int:
    """Make each change in a copy of the checkout; return 1 if the tests fail without any."""
    results: Counter[str] = Counter()
    with TemporaryDirectory(prefix="mutants-") as folder:
        checkout = Path(folder)
        _copy(root, checkout)
        started = time.monotonic()
        if _run(checkout, options.tests, options.timeout)[0] != "survived":
            sys.stdout.write("the tests fail, or take too long, without any change\n")
            return 1
        sys.stdout.write(f"the tests take {time.monotonic() - started:.0f} s\n\n")
        sys.stdout.write("place | before | after | result\n---|---|---|---\n")
        killers: list[str] = []
        for mutant in drawn:
            file = checkout / mutant.place.partition(":")[0]
            original = file.read_bytes()
            file.write_bytes(mutant.source)
            result, killer = _run(checkout, killers, options.timeout) if killers else ("", "")
            if result != "killed":
                result, killer = _run(checkout, options.tests, options.timeout)
            killers = [*filter(None, [killer]), *(each for each in killers if each != killer)][:20]
            file.write_bytes(original)
            results[result] += 1
            sys.stdout.write(f"{mutant} | {result}\n")
            sys.stdout.flush()
    counts = ", ".join(f"{number} {result}" for result, number in sorted(results.items()))
    sys.stdout.write(f"\nseed {options.seed}: {counts}\n")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.support.mutants", description=__doc__)
    parser.add_argument("files", nargs="*", default=FILES, help="the files to change")
    parser.add_argument("--tests", nargs="+", default=TESTS, help="what pytest runs")
    parser.add_argument("--most", type=int, default=60, help="so many changes, drawn by the seed")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--timeout", type=float, default=600.0, help="seconds for each change")
    options = parser.parse_args()
    root = Path.cwd()
    files = [root / name for name in options.files if (root / name).exists()]
    mutants = [*chain.from_iterable(mutants_of(path, root) for path in files)]
    drawn = Random(options.seed).sample(mutants, min(options.most, len(mutants)))  # noqa: S311
    sys.stdout.write(f"{len(drawn)} of {len(mutants)} changes\n")
    return _judge(drawn, root, options)


if __name__ == "__main__":
    sys.exit(main())
