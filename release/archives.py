"""Builds wheel and sdist of a commit, twice, and compares the bytes."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from release.checkout import Checkout
from release.errors import ReleaseError

UMASKS = (0o022, 0o077)
TIME_ZONES = ("UTC", "Pacific/Auckland")
"""The two builds differ in these, and in the folder: none of them may reach the bytes."""
TOOLS = "release/constraints.txt"


def build_twice(checkout: Checkout) -> dict[str, bytes]:
    """Return the archives by name, wheel and sdist.

    Raises:
        ReleaseError: The build failed, or two builds of the commit differ.
    """
    with tempfile.TemporaryDirectory(prefix="release-") as scratch:
        first, second = (build(checkout, Path(scratch) / f"build-{turn}", turn) for turn in (0, 1))
    if different := [
        name for name in first.keys() | second.keys() if not _same(name, first, second)
    ]:
        raise ReleaseError(
            f"two builds of one commit differ: {', '.join(sorted(different))}; unpack both and "
            f"compare, the cause is a time, a path, an order or a permission"
        )
    return first


def _same(name: str, first: dict[str, bytes], second: dict[str, bytes]) -> bool:
    return first.get(name) == second.get(name)


def build(checkout: Checkout, folder: Path, turn: int = 0) -> dict[str, bytes]:
    """Build the sdist of the commit, and the wheel from the sdist; return both by name."""
    source, out = folder / "source", folder / "out"
    before = os.umask(UMASKS[turn])
    try:
        checkout.export(source)
        uv = [str(Path(sys.executable).with_name("uv")), "build", "--quiet", "--python"]
        command = [*uv, sys.executable, "--build-constraints", str(source / TOOLS)]
        environment = os.environ | {
            "SOURCE_DATE_EPOCH": str(checkout.commit_seconds()),
            "TZ": TIME_ZONES[turn],
        }
        done = subprocess.run(  # noqa: S603 - the project's own uv
            [*command, "--out-dir", str(out), str(source)], env=environment, check=False
        )
    finally:
        os.umask(before)
    if done.returncode:
        raise ReleaseError(f"uv build ended with {done.returncode}: its message stands above")
    return {each.name: each.read_bytes() for each in (*out.glob("*.whl"), *out.glob("*.tar.gz"))}
