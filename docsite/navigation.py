"""What mkdocs.yml says of the site's pages; ``pages`` and the tests read it."""

from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

Titles = Mapping[PurePosixPath, str]
"""Places in the site's sources, and what the navigation calls the page there."""


def read_titles(root: Path) -> Titles:
    """Return the pages of the navigation, in its order."""
    config = yaml.safe_load((root / "mkdocs.yml").read_text(encoding="utf-8"))
    return dict(_titles(config["nav"]))


def _titles(entries: list[Any], section: str = "") -> Iterator[tuple[PurePosixPath, str]]:
    """Yield each page under an entry; a page without a title is that of its section."""
    for entry in entries:
        if isinstance(entry, str):
            yield PurePosixPath(entry), section
            continue
        for title, below in entry.items():
            if isinstance(below, str):
                yield PurePosixPath(below), title
            else:
                yield from _titles(below, title)
