"""Which section of the changelog a release has."""

import re
from collections.abc import Iterable

from release.errors import ReleaseError

_HEADING = re.compile(r"^## \[?(?P<name>[^\s\]]+)\]?(?: - \d{4}-\d\d-\d\d)?$", re.MULTILINE)


def is_rehearsal(tags: Iterable[str], version: str) -> bool:
    """Tell whether a commit with these tags is no release; a release's tag names the version.

    Raises:
        ReleaseError: The tag names another version.
    """
    releases = [tag for tag in tags if re.match(r"v\d", tag)]
    if releases and f"v{version}" not in releases:
        raise ReleaseError(
            f"the commit has the tag {releases[0]}, but the version is {version}: correct "
            f"airflow_mm2_offsets/__init__.py, or the tag"
        )
    return not releases


def section(changelog: str, version: str, *, rehearsal: bool) -> str:
    """Return what the changelog says of a version, with its heading.

    Args:
        changelog: A text in the format of Keep a Changelog.
        version: As in ``## 0.2.0 - 2026-12-01``.
        rehearsal: Take the section ``Unreleased`` where the version has none yet.

    Raises:
        ReleaseError: The section is absent, or says nothing.
    """
    sections = _sections(changelog)
    names = [version, "Unreleased"] if rehearsal else [version]
    name = next((name for name in names if name in sections), None)
    if name is None:
        raise ReleaseError(
            f"CHANGELOG.md has no section {version}, only {', '.join(sections) or 'none at all'}: "
            f"rename Unreleased to '{version} - YYYY-MM-DD', and commit"
        )
    heading, text = sections[name]
    if not text.strip():
        raise ReleaseError(f"CHANGELOG.md says nothing under {heading!r}: write what users get")
    return f"{heading}\n\n{text.strip()}\n"


def _sections(changelog: str) -> dict[str, tuple[str, str]]:
    headings = list(_HEADING.finditer(changelog))
    ends = [each.start() for each in headings[1:]] + [len(changelog)]
    return {
        each["name"]: (each[0], changelog[each.end() : end])
        for each, end in zip(headings, ends, strict=False)
    }
