"""One document of a settings file."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from airflow_mm2_offsets.config.entries import Entries, Entry, flatten
from airflow_mm2_offsets.config.keys import shown_key


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A table as it was parsed, and the lines of its keys where the parser knows them."""

    content: Mapping[str, Any] = field(repr=False)
    """May hold secrets."""
    lines: Mapping[str, int] = field(default_factory=dict, repr=False)
    lone_words: Collection[str] = field(default=(), repr=False)
    """Keys that may be no names: a password in a file of its own is read as a key, too."""

    def entries(self, file: Path) -> Entries:
        """Return the texts by their keys, joined by dots."""
        return {
            key: Entry(value=value, origin=f"{self._place(key)} in {file}")
            for key, value in flatten(self.content)
        }

    def _place(self, key: str) -> str:
        if key not in self.lone_words and (shown := shown_key(key)):
            return shown
        line = self.lines.get(key)
        return f"line {line}" if line else "a key that is not shown"
