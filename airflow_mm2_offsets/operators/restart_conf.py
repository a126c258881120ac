"""The conf that starts a job on the source again after a roll-back.

By then the stop is withdrawn and the fence lifted: nothing that can be done without holds it up.
"""

import logging
from collections.abc import Mapping
from typing import Any

from airflow.providers.common.compat.sdk import Context

from airflow_mm2_offsets.errors import Mm2OffsetsError
from airflow_mm2_offsets.hooks.storage import storage_path
from airflow_mm2_offsets.operators.long_results import LongResults
from airflow_mm2_offsets.operators.settings import given
from airflow_mm2_offsets.planning.topic_list import find_long_list
from airflow_mm2_offsets.spark.checkpoint import read_checkpoint
from airflow_mm2_offsets.spark.offsets import format_offsets

log = logging.getLogger(__name__)


def complete_restart_conf(
    context: Context, conf: Mapping[str, Any] | None, checkpoint: str
) -> dict[str, Any]:
    """Return a conf with a value for each name; ``topic`` and ``starting_offsets`` are read.

    Args:
        context: Of the task that rolls back.
        conf: The conf; what it holds no value of comes from the checkpoint.
        checkpoint: The checkpoint location of the job that is restarted.

    Raises:
        Mm2OffsetsError: The checkpoint does not say what the job reads.
    """
    conf = dict(conf or {})
    if all(map(given, conf.values())):
        return conf
    positions = read_checkpoint(storage_path(checkpoint)).positions
    results, topics = LongResults.of(context, must_be_valid=False), ",".join(sorted(positions))
    if problem := find_long_list(topics, results.options.argument_max_bytes):
        log.warning("The job is started again all the same: %s", problem)
    offsets = _offsets_argument(results, format_offsets(positions), checkpoint)
    read = {"topic": topics, "starting_offsets": offsets}
    return {name: value if given(value) else read.get(name, value) for name, value in conf.items()}


def _offsets_argument(results: LongResults, text: str, checkpoint: str) -> str:
    """Return starting offsets as the job gets them; long ones lie in a file beside its checkpoint.

    In the target's folder the job may have no rights, and its storage may be why the failover is
    rolled back. Spark goes on from the checkpoint, and takes no notice of these offsets.
    """
    try:
        return results.offsets_argument(text, beside=f"{checkpoint.rstrip('/')}.restart.json")
    except Mm2OffsetsError as error:
        log.warning(
            "The starting offsets of the restart have more than %d bytes, and stay a text, which a "
            "program may not take as an argument; the job goes on from its checkpoint in any "
            "case: %s",
            *(results.options.argument_max_bytes, error),
        )
        return text
