"""Refuses a key of a DAG run's conf that no param has, before anything is done.

Airflow takes such a key in silence: with ``dryrun`` in place of ``dry_run`` a job would be moved.
``check``, ``preview`` of a fleet and the first tasks of the example DAGs call it.
"""

from collections.abc import Iterator
from typing import Any

from airflow.providers.common.compat.sdk import Context

from airflow_mm2_offsets.errors import ConfigurationError, did_you_mean
from airflow_mm2_offsets.operators.failing import fails_at_once

_OF_AIRFLOW = frozenset({"openlineage"})
"""What ``TriggerDagRunOperator`` adds by itself."""


@fails_at_once()
def check_run_conf(context: Context) -> None:
    """Raise where the conf of the run has a key that no param of the DAG or of a task has.

    An example DAG gives it to its first task as ``pre_execute``. A DAG that declares no param at
    all reads its conf by ``dag_run.conf``, if it reads it: nothing is compared there.

    Raises:
        ConfigurationError: Each such key is named, with the nearest param.
    """
    values: Any = context
    conf = getattr(values.get("dag_run"), "conf", None) or {}
    params = {*_params(values.get("dag"))}
    unknown = sorted(set(map(str, conf)) - params - _OF_AIRFLOW)
    if unknown and params:
        problems = [f"{key!r}{_nearest(key, params)}" for key in unknown]
        raise ConfigurationError(
            f"the conf of this run has {'; '.join(problems)}; the DAG {values['dag'].dag_id} "
            f"declares no such param, so nothing would go by it, and nothing was touched. Correct "
            f"the conf and trigger a new run; a key of your own needs a param in the DAG",
            setting="conf",
        )


def _nearest(key: str, params: set[str]) -> str:
    similar = did_you_mean(key.lower(), params, otherwise="")
    return f" ({similar})" if similar else ""


def _params(dag: Any) -> Iterator[str]:  # noqa: ANN401 - Airflow's, of any release
    for owner in (dag, *getattr(dag, "tasks", ())):
        yield from getattr(owner, "params", None) or ()
