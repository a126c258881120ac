"""Finds the pair of clusters of an operator's task."""

from airflow.providers.common.compat.sdk import BaseOperator

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.core.mode import FailoverMode
from airflow_mm2_offsets.hooks.mm2 import Mm2OffsetHook
from airflow_mm2_offsets.operators.settings import is_true, parse_mode
from airflow_mm2_offsets.planning.lost_parts import quick


def pair_of(task: BaseOperator, *, timeout: float | None = None) -> ClusterPair:
    """Return the clusters that a task's ``mm2_conn_id`` names, as the job moves between them.

    ``exchanged`` says whether it moves against the copying. In a disaster a source or Connect that
    does not answer is given up early: it is expected, and each step waits for it again.
    ``timeout`` (seconds) counts instead, where it is given.

    Raises:
        ConfigurationError: A connection or a field is wrong.
    """
    conn_id = str(getattr(task, "mm2_conn_id", Mm2OffsetHook.default_conn_name))
    exchanged = is_true(task, "exchanged")
    if timeout is not None:
        return Mm2OffsetHook(conn_id, exchanged=exchanged, timeout=timeout).get_conn()
    pair = Mm2OffsetHook(conn_id, exchanged=exchanged).get_conn()
    mode = parse_mode(task.task_id, getattr(task, "mode", FailoverMode.PLANNED))
    return quick(pair) if mode is FailoverMode.DISASTER else pair
