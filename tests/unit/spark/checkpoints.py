"""Checkpoints written by hand, byte by byte as Spark writes them."""

import json
from collections.abc import Mapping
from pathlib import Path

METADATA = '{"batchWatermarkMs":0,"batchTimestampMs":1795250096229,"conf":{}}'
QUERY_ID = "f9935b59-ce2d-43f1-9db5-7073e52f8d53"


def orders(*offsets: int) -> str:
    """Return the Kafka source's line for topic orders, partitions 0 and up."""
    partitions = {str(number): offset for number, offset in enumerate(offsets)}
    return json.dumps({"orders": partitions}, separators=(",", ":"))


def batch(*sources: str, version: str = "v1", metadata: str = METADATA) -> str:
    return "\n".join([version, metadata, *sources])


def commit(version: str = "v1", body: str = '{"nextBatchWatermarkMs":0}') -> str:
    return f"{version}\n{body}"


def start(offset: str) -> str:
    return f"\0v1\n{offset}"


def write(root: Path, files: Mapping[str, str]) -> Path:
    """Write a checkpoint: its metadata, and the files given by their path below it."""
    for name, text in {"metadata": f'{{"id":"{QUERY_ID}"}}', **files}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def simple(root: Path, **changes: str) -> Path:
    """Write one that committed batches 0 and 1, up to orders[0]=4 and orders[1]=6."""
    files = {
        "sources/0/0": start(orders(1, 2)),
        "offsets/0": batch(orders(2, 3)),
        "offsets/1": batch(orders(4, 6)),
        "commits/0": commit(),
        "commits/1": commit(),
    }
    return write(root, files | {name.replace("__", "/"): text for name, text in changes.items()})
