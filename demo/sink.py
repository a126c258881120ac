"""Reads what the streaming jobs have written."""

import json
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

import pyarrow.parquet as pq
from upath import UPath


class Sink:
    """The Parquet output of the job on both clusters; each file is read once."""

    def __init__(self, folders: Iterable[Path | UPath]) -> None:
        """Take the folders without reading them."""
        self._folders = tuple(folders)
        self._read: set[str] = set()
        self.numbers: Counter[int] = Counter()
        """How often each number was delivered."""

    def first_record(self, folder: Path) -> datetime:
        """Return when the first file of one folder was written.

        Raises:
            ValueError: It has none.
        """
        files = folder.glob("batch_id=*/part-*.parquet")
        return datetime.fromtimestamp(min(file.stat().st_mtime for file in files), UTC)

    def refresh(self) -> Counter[int]:
        """Read the files that are new, and return how often each number is there.

        Spark writes a batch under _temporary and moves it here whole.
        """
        for folder in self._folders:
            for file in folder.glob("batch_id=*/part-*.parquet"):
                if str(file) not in self._read:
                    self._read.add(str(file))
                    self.numbers.update(_numbers(file))
        return self.numbers


def _numbers(file: Path | UPath) -> list[int]:
    with file.open("rb") as content:
        values = pq.read_table(content, columns=["value"]).column("value").to_pylist()
    return [json.loads(value)["number"] for value in values]
