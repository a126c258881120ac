"""Checkpoints to migrate, between two clusters that are in sync."""

from pathlib import Path
from typing import Any

from upath import UPath

from airflow_mm2_offsets.migration import (
    DEFAULT_OPTIONS,
    MigrationOptions,
    migrate_checkpoint,
)
from tests.support.pairs import Pair
from tests.unit.spark.checkpoints import batch, commit, orders, start, write


def ends(first: int, rest: int = 3) -> str:
    return orders(first, rest, rest, rest)


def write_checkpoint(root: Path, **changes: str) -> UPath:
    """Write a checkpoint at orders[0] = 7, with state, and with all that lies beside."""
    files = {
        "sources/0/0": start(ends(0, 0)),
        "offsets/3": batch(ends(1, 0)),
        "offsets/4": batch(ends(4, 1)),
        "offsets/5": batch(ends(7)),
        "offsets/.5.crc": "of the original",
        "commits/4": commit(),
        "commits/5": commit(),
        "commits/.5.crc": "sum",
        "state/0/0/5.delta": "state" * 1000,
        "state/0/0/.5.delta.crc": "sum",
        "state/0/0/.6.delta.abc.tmp": "half",
        "_mm2_migration.json": "of an earlier move",
        ".metadata.crc": "sum",
    }
    changed = {name.replace("__", "/"): text for name, text in changes.items()}
    return UPath(write(root / "original", files | changed))


def migrate(
    clusters: Pair, original: UPath, target: UPath, options: MigrationOptions = DEFAULT_OPTIONS
) -> dict[str, Any]:
    return migrate_checkpoint(clusters.pair, original, target, options)
