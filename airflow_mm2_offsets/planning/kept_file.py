"""Reads and writes what a failover keeps as JSON, with a digest: plans and forecasts."""

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from upath import UPath

from airflow_mm2_offsets.errors import PlanError
from airflow_mm2_offsets.storage import read_bytes, write_text

T = TypeVar("T")


def read_kept_file(path: UPath, parse: Callable[[Any], T], *, kind: str, step: str) -> T | None:
    """Return what a file holds; None when there is no such file.

    Args:
        path: The file.
        parse: Makes the value of its JSON.
        kind: What messages call it.
        step: What to do about a file that can't be used.

    Raises:
        PlanError: The file can't be read, was not made by this release, or was changed since.
    """
    data = read_bytes(path, PlanError)
    if data is None:
        return None
    try:
        return parse(json.loads(data.decode()))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        problem = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
        raise PlanError(f"is not a usable {kind}: {problem}; {step}", file=str(path)) from error


def write_kept_file(path: UPath, content: Mapping[str, Any]) -> None:
    """Write JSON to a file, whole or not at all.

    Raises:
        PlanError: The file can't be written.
    """
    write_text(path, json.dumps(content, indent=1), PlanError)
