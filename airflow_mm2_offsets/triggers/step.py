"""The part of a step that runs in the triggerer."""

import time
from contextlib import AbstractContextManager, nullcontext

from airflow.triggers.base import BaseTrigger

from airflow_mm2_offsets.observability import Step, run_step


def waits_for_task(trigger: BaseTrigger) -> AbstractContextManager[None]:
    """Give a wait a span, and each line of its log the run's id.

    One triggerer waits for many tasks at once: nothing here is global.
    """
    task = getattr(trigger, "task_instance", None)
    if task is None:  # of an asset's watcher, or not run by a triggerer
        return nullcontext()
    return run_step(
        Step(
            name=task.task_id.rpartition(".")[2],
            dag_id=task.dag_id,
            run_id=task.run_id,
            task_id=task.task_id,
            began=time.time(),
            conn_id=getattr(trigger, "mm2_conn_id", None),
            is_wait=True,
        )
    )
