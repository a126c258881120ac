"""Refuses to hand a job over that would get more names of topics than an argument takes."""

from collections.abc import Mapping
from typing import Any

from upath import UPath

from airflow_mm2_offsets.errors import NotReadyError
from airflow_mm2_offsets.operators.long_result_options import LongResultOptions
from airflow_mm2_offsets.planning.subscribe_pattern import JobPatterns
from airflow_mm2_offsets.planning.topic_list import find_long_list
from airflow_mm2_offsets.spark.control import read_driver
from airflow_mm2_offsets.spark.handover import describe_start


def check_topic_list(task: Any, topics: str, control: UPath | None) -> None:  # noqa: ANN401 - a HandOver
    """Raise where the list is too long; a job with a pattern takes no notice of it.

    Args:
        task: The task that hands over: its ``subscribe_pattern``, and ``read``.
        topics: The topics' names on the target, separated by commas.
        control: The source job's control location; None where it has none, or it is lost.

    Raises:
        NotReadyError: The list is too long for an argument.
        ConfigurationError: The option is invalid.
        StopError: The control location can't be read.
    """
    problem = find_long_list(topics, LongResultOptions.parse().argument_max_bytes)
    if problem is None or _patterns(task, control).are_used:
        return
    raise NotReadyError(f"{describe_start(None)}: {problem}")


def _patterns(task: Any, control: UPath | None) -> JobPatterns:  # noqa: ANN401 - a HandOver
    # Empty text has a meaning of its own: the job subscribes by name.
    requested = None if task.subscribe_pattern == "None" else task.subscribe_pattern
    driver = read_driver(control) if control is not None else None
    read = task.read if isinstance(task.read, Mapping) else {}
    source = driver.subscribe_patterns.get(str(read.get("query_id")), ()) if driver else ()
    return JobPatterns(requested=requested, source=source)
