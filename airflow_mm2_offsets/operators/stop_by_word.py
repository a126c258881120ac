"""The result of a stop that rests on the user's word, where the job's folder can't be reached."""

import logging
from typing import Any, Protocol

from airflow_mm2_offsets.logins import without_login
from airflow_mm2_offsets.spark.control import StopProof

log = logging.getLogger(__name__)


class StopNames(Protocol):
    """The fields that say which job a stop is of."""

    control: str | None
    request_id: str
    moved_to: str


def take_word(stop: StopNames, lost: str) -> dict[str, Any]:
    """Return the result of a stop that rests on the user's word: the job's folder is ``lost``."""
    step = "No fence stands on the source: see that nothing starts the old job there."
    if stop.control is not None:
        step += (
            f" When its storage is back: airflow-mm2-offsets fence raise {stop.control} "
            f"--request-id '{stop.request_id}' --moved-to '{stop.moved_to}'"
        )
    step = without_login(step)
    log.warning("By your word (source_is_gone) no driver runs: %s. %s", lost, step)
    return {
        "request_id": stop.request_id,
        "application_id": None,
        "batch_id": None,
        "clean": False,
        "error": lost,
        "proof": StopProof.ASSERTED.value,
        "next": step,
    }
