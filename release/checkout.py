"""What git says of the commit that is released."""

import subprocess
import tarfile
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

from release.errors import ReleaseError


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkout:
    """A folder with a git work tree; all that is released comes from its last commit."""

    folder: Path

    def require_clean(self) -> None:
        """Raise ReleaseError where a file is changed, or neither committed nor ignored."""
        if changed := self._git("status", "--porcelain").decode().splitlines():
            raise ReleaseError(
                f"{len(changed)} files differ from the last commit, first {changed[0]!r}: commit "
                f"or remove them, then release"
            )

    def files(self) -> frozenset[str]:
        """Return the paths of the commit's files."""
        listed = self._git("ls-tree", "-r", "-z", "--name-only", "--full-tree", "HEAD").decode()
        return frozenset(filter(None, listed.split("\0")))

    def commit(self) -> str:
        """Return the commit's full id."""
        return self._git("rev-parse", "HEAD").decode().strip()

    def commit_seconds(self) -> int:
        """Return when the commit was made, in seconds since 1970 (``SOURCE_DATE_EPOCH``)."""
        return int(self._git("log", "-1", "--format=%ct"))

    def tags(self) -> tuple[str, ...]:
        """Return the commit's tags."""
        return tuple(self._git("tag", "--points-at", "HEAD").decode().split())

    def export(self, folder: Path) -> None:
        """Write the commit's files into a new folder."""
        archive = self._git("archive", "--format=tar", "HEAD")
        with tarfile.open(fileobj=BytesIO(archive)) as tar:
            tar.extractall(folder, filter="data")

    def _git(self, *arguments: str) -> bytes:
        command = ["git", "-C", str(self.folder), *arguments]
        done = subprocess.run(command, capture_output=True, check=False)  # noqa: S603 - git
        if done.returncode:
            message = done.stderr.decode().strip()
            raise ReleaseError(f"{' '.join(command)} failed: {message}")
        return done.stdout
