"""A commit is built twice, and both builds must give the same bytes."""

from pathlib import Path

import pytest

from release import archives
from release.checkout import Checkout
from release.errors import ReleaseError

SAME = {"ours.whl": b"wheel", "ours.tar.gz": b"sdist"}


@pytest.mark.parametrize(
    ("second", "different"),
    [
        (SAME | {"ours.whl": b"wheel of another time"}, r"ours\.whl"),
        ({"ours.whl": b"wheel"}, r"ours\.tar\.gz"),
        (SAME | {"theirs.whl": b""}, r"theirs\.whl"),
    ],
)
def test_two_builds_that_differ_are_refused(
    monkeypatch: pytest.MonkeyPatch, second: dict[str, bytes], different: str
) -> None:
    """In a file's bytes, or in a file that only one of them has."""
    monkeypatch.setattr(archives, "build", lambda _checkout, _folder, turn: (SAME, second)[turn])
    with pytest.raises(ReleaseError, match=f"two builds of one commit differ: {different};"):
        archives.build_twice(Checkout(folder=Path()))


def test_two_builds_that_agree_are_the_release(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each runs in a folder of its own."""
    folders = []

    def build(_checkout: Checkout, folder: Path, _turn: int) -> dict[str, bytes]:
        folders.append(folder)
        return dict(SAME)

    monkeypatch.setattr(archives, "build", build)
    assert archives.build_twice(Checkout(folder=Path())) == SAME
    assert len(set(folders)) == 2
