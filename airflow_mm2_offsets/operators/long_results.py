"""Keeps long results out of Airflow's database: XCom gets a brief, and storage has the whole.

The operators that push plans, forecasts and starting offsets call it. The sizes are options of
``[mm2_offsets]`` in Airflow's configuration.
"""

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from airflow.providers.common.compat.sdk import Context

from airflow_mm2_offsets.errors import Mm2OffsetsError
from airflow_mm2_offsets.hooks.storage import storage_path
from airflow_mm2_offsets.logins import without_login
from airflow_mm2_offsets.operators.long_result_options import (
    FOLDER,
    SECTION,
    LongResultOptions,
)
from airflow_mm2_offsets.planning.kept_file import write_kept_file
from airflow_mm2_offsets.spark.offsets_file import write_offsets

log = logging.getLogger(__name__)

Brief = Callable[[Mapping[str, Any], str], dict[str, Any]]
"""Makes a brief of JSON, given the location of the whole: see ``core.brief``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LongResults:
    """What a task does with results that are long."""

    options: LongResultOptions
    name: str
    """Of this task's files in the folder of the options: the same in each try."""

    @classmethod
    def of(cls, context: Context) -> "LongResults":
        """Return what Airflow's configuration says; see ``LongResultOptions.parse``.

        Raises:
            ConfigurationError: A size is no whole number from 1.
        """
        return cls(options=LongResultOptions.parse(), name=_name(context))

    def is_long(self, content: Mapping[str, Any]) -> bool:
        """Tell whether JSON is too long for XCom."""
        return len(json.dumps(content)) > self.options.xcom_max_bytes

    def keep(
        self,
        content: dict[str, Any],
        kind: str,
        brief: Brief,
        *,
        kept_at: str | None = None,
        beside: str | None = None,
    ) -> dict[str, Any]:
        """Return what XCom gets: JSON, or its brief where it is long and storage has the whole.

        What can't be stored stays whole, with a warning: XCom is better than nothing.

        Args:
            content: The JSON.
            kind: What messages and the file's name call it: ``plan``.
            brief: Makes the brief.
            kept_at: The file that holds it already.
            beside: Where to write it, if nothing holds it; None: in the folder of the options.
        """
        if not self.is_long(content):
            return content
        location = kept_at or beside or self._place(f"{kind}.json")
        # A location with a login must not reach XCom.
        if location is None or without_login(location) != location:
            log.warning(
                "The %s has more than %d bytes, and is in XCom whole: no file holds it. Give "
                "[%s] %s, a folder on your storage, in Airflow's configuration",
                *(kind, self.options.xcom_max_bytes, SECTION, FOLDER),
            )
            return content
        try:
            if kept_at is None:
                write_kept_file(storage_path(location), content)
        except Mm2OffsetsError as error:
            log.warning("The %s is in XCom whole, for it could not be stored: %s", kind, error)
            return content
        return brief(content, location)

    def offsets_argument(self, text: str, *, beside: str | None = None) -> str:
        """Return starting offsets as a job gets them: as text, or ``@`` and the file with the text.

        Args:
            text: Spark's JSON text.
            beside: A file, such as the plan's, that the offsets are written beside; None: in the
                folder of the options.

        Raises:
            PlanError: The file beside ``beside`` can't be written.
        """
        if len(text.encode()) <= self.options.argument_max_bytes:
            return text
        if beside is not None and without_login(beside) == beside:
            return write_offsets(text, beside, storage_path)
        why = f"no folder is known: give plan_path, or [{SECTION}] {FOLDER}"
        location = self._place("json")
        if location is not None and without_login(location) == location:
            try:
                return write_offsets(text, location, storage_path)
            except Mm2OffsetsError as error:
                why = str(error)
        log.warning(
            "The starting offsets have more than %d bytes, and stay a text, which a program may "
            "not take as an argument (a job under StopControl needs none): %s",
            *(self.options.argument_max_bytes, why),
        )
        return text

    def _place(self, ending: str) -> str | None:
        folder = self.options.folder
        return f"{folder.rstrip('/')}/{self.name}.{ending}" if folder else None


def _name(context: Context) -> str:
    """Return what tells a task's files from those of all others; no storage objects to it."""
    instance: Any = context["ti"]
    task = f"{instance.dag_id}__{instance.run_id}__{instance.task_id}__{instance.map_index}"
    readable = "".join(each if each.isalnum() or each in "-_." else "-" for each in task)
    return f"{readable[:150]}.{sha256(task.encode()).hexdigest()[:8]}"
