"""Plans and forecasts that XCom holds in brief: stored in a file, and read back whole.

The operators store them; whoever needs all partitions of what XCom holds calls ``whole_plan``.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

from upath import UPath

from airflow_mm2_offsets.core.brief import LOCATION, is_brief, rows_of
from airflow_mm2_offsets.core.plan import digest_of
from airflow_mm2_offsets.errors import ConfigurationError, PlanError, as_class
from airflow_mm2_offsets.storage import open_location, read_bytes

OpenPlace = Callable[[str], UPath]
"""Opens a location with the caller's credentials: in Airflow ``hooks.storage.storage_path``."""


def _open(location: str) -> UPath:
    return open_location(location, PlanError)


def whole_plan(content: Mapping[str, Any], open_place: OpenPlace = _open) -> Mapping[str, Any]:
    """Return the whole plan that an XCom holds, or that lies in the file that its brief names.

    The file is the one that the brief was made of: its digest is compared. Forecasts are read in
    the same way.

    Args:
        content: The JSON of a plan or forecast, whole or in brief (``core.brief``).
        open_place: Opens the file's location. By default without Airflow's connections.

    Raises:
        PlanError: The file is gone, damaged, out of reach, or of another plan.
    """
    if not is_brief(content):
        return content
    location = str(content[LOCATION])
    try:
        path = open_place(location)
    except ConfigurationError as error:
        raise as_class(PlanError, error, f"{location}: {error}") from error
    try:
        return _parse(read_bytes(path, PlanError), content["digest"])
    except ValueError as problem:
        raise PlanError(
            f"{problem}; XCom holds only the {len(rows_of(content))} worst partitions, and this "
            f"file should hold all: clear the task that wrote this XCom, and all tasks after it",
            file=location,
        ) from problem


def _parse(data: bytes | None, digest: object) -> Mapping[str, Any]:
    """Return what a file holds; raise ValueError, with the reason, unless it has this digest."""
    if data is None:
        raise ValueError("the file is gone")
    try:
        content = json.loads(data.decode())
        said, computed = content["digest"], digest_of(content)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ValueError("it is damaged: it holds no JSON object with a digest") from None
    if said != computed:
        raise ValueError(f"it was changed: its digest is {said!r}, its content's {computed!r}")
    if said != digest:
        raise ValueError(f"it is another one: its digest is {said!r}, and in XCom {digest!r}")
    whole: Mapping[str, Any] = content
    return whole
