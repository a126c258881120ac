"""Which section of the changelog a release has."""

import pytest

from release.changelog import is_rehearsal, section
from release.errors import ReleaseError

TEXT = """# Changelog

## Unreleased

- new

## [0.2.0] - 2026-12-01

### Added

- second

## 0.1.0

- first
"""


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("0.2.0", "## [0.2.0] - 2026-12-01\n\n### Added\n\n- second\n"),
        ("0.1.0", "## 0.1.0\n\n- first\n"),
    ],
)
def test_a_version_has_its_own_section(version: str, expected: str) -> None:
    """With its heading, up to the next version's."""
    assert section(TEXT, version, rehearsal=False) == expected


def test_only_a_rehearsal_takes_what_is_unreleased() -> None:
    """A release whose section still has another name is refused, with the names that are there."""
    assert section(TEXT, "0.3.0", rehearsal=True) == "## Unreleased\n\n- new\n"
    with pytest.raises(
        ReleaseError, match=r"no section 0\.3\.0, only Unreleased, 0\.2\.0, 0\.1\.0"
    ):
        section(TEXT, "0.3.0", rehearsal=False)


def test_an_empty_section_is_refused() -> None:
    """Users must learn what they get."""
    with pytest.raises(ReleaseError, match="says nothing under '## Unreleased'"):
        section("## Unreleased\n\n## 0.1.0\n\n- first\n", "0.2.0", rehearsal=True)


def test_a_tag_makes_the_release_and_names_its_version() -> None:
    """Other tags of the commit don't count; a release's tag of another version is refused."""
    assert is_rehearsal([], "0.2.0")
    assert is_rehearsal(["nightly", "verified"], "0.2.0")
    assert not is_rehearsal(["nightly", "v0.2.0"], "0.2.0")
    with pytest.raises(ReleaseError, match=r"tag v0\.1\.0, but the version is 0\.2\.0"):
        is_rehearsal(["v0.1.0"], "0.2.0")
