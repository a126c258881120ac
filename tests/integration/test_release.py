"""What git says of the commit that is released."""

import shutil
import subprocess
from pathlib import Path

import pytest

from release.checkout import Checkout
from release.errors import ReleaseError

GIT = shutil.which("git") or "git"


def git(folder: Path, *arguments: str) -> None:
    settings = ("-c", "user.name=test", "-c", "user.email=test@localhost")
    subprocess.run([GIT, "-C", str(folder), *settings, *arguments], check=True)


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    """A repository of one commit."""
    git(tmp_path, "init", "--quiet")
    (tmp_path / ".gitignore").write_text("/build\n")
    (tmp_path / "one.py").write_text("ONE = 1\n")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "--message", "Begin")
    return Checkout(folder=tmp_path)


def test_a_clean_tree_is_released(checkout: Checkout) -> None:
    """Files that are ignored change nothing, and are not exported."""
    (checkout.folder / "build").mkdir()
    (checkout.folder / "build" / "left").touch()
    checkout.require_clean()
    checkout.export(checkout.folder / "build" / "source")
    exported = {each.name for each in (checkout.folder / "build" / "source").iterdir()}
    assert exported == checkout.files() == {".gitignore", "one.py"}


@pytest.mark.parametrize("name", ["one.py", "two.py"])
def test_a_dirty_tree_is_refused(checkout: Checkout, name: str) -> None:
    """Whether a file was changed or never committed: what is tested must be what is released."""
    (checkout.folder / name).write_text("CHANGED = True\n")
    with pytest.raises(ReleaseError, match=rf"1 files differ from the last commit, .*{name}"):
        checkout.require_clean()


def test_the_commit_names_its_tags(checkout: Checkout) -> None:
    """All of them, and none of other commits."""
    assert checkout.tags() == ()
    git(checkout.folder, "tag", "v1.0.0")
    git(checkout.folder, "tag", "nightly")
    assert checkout.tags() == ("nightly", "v1.0.0")
    git(checkout.folder, "commit", "--quiet", "--allow-empty", "--message", "Go on")
    assert checkout.tags() == ()


def test_a_folder_without_git_is_refused(tmp_path: Path) -> None:
    """With git's own words."""
    with pytest.raises(ReleaseError, match="not a git repository"):
        Checkout(folder=tmp_path).commit_seconds()
