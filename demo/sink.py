"""Reads what the streaming jobs have written."""

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pyarrow.parquet as pq


class Sink:
    """The Parquet output of the job on both clusters; each file is read once."""

    def __init__(self, folders: Iterable[Path]) -> None:
        """Take the folders without reading them."""
        self._folders = tuple(folders)
        self._read: set[Path] = set()
        self.numbers: Counter[int] = Counter()
        """How often each number was delivered."""

    def refresh(self) -> Counter[int]:
        """Read the files that are new, and return how often each number is there.

        Spark writes a batch under _temporary and moves it here whole.
        """
        for folder in self._folders:
            for file in folder.glob("batch_id=*/part-*.parquet"):
                if file not in self._read:
                    self._read.add(file)
                    values = pq.read_table(file, columns=["value"]).column("value").to_pylist()
                    self.numbers.update(json.loads(value)["number"] for value in values)
        return self.numbers
