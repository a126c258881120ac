"""A misspelt key of a run's conf: the first task refuses it, before anything is touched."""

from pathlib import Path
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import DAG, AirflowFailException, BaseOperator

from airflow_mm2_offsets.errors import ConfigurationError
from airflow_mm2_offsets.task_groups import failover_tasks
from airflow_mm2_offsets.task_groups.fleet import fleet_tasks
from tests.unit.dags.dags_folder import FILES, parse
from tests.unit.operators.worker import Worker

OF_THE_FAILOVER = {"orders_stream"}
"""The failover triggers it, with keys of its own such as ``drill``."""
NAMES = sorted({file.stem for file in FILES} - OF_THE_FAILOVER)


def _first_tasks(dag: DAG) -> list[Any]:
    return [task for task in dag.tasks if not task.upstream_task_ids]


def _example(name: str) -> DAG:
    """Return a DAG of the test's own: Airflow writes into its params what a run was given."""
    return next(dag for file in FILES if file.stem == name for dag in parse(file).dags.values())


@pytest.mark.parametrize("name", NAMES)
def test_each_example_refuses_a_misspelt_key(worker: Worker, tmp_path: Path, name: str) -> None:
    """The last letter of each key is missing, and each param is named."""
    dag = _example(name)
    assert dag.params
    worker.conf = {param[:-1]: "text" for param in dag.params}
    for task in _first_tasks(dag):
        with pytest.raises(ConfigurationError) as caught:
            worker.run(task)
        assert caught.value.fields["setting"] == "conf"
        assert isinstance(caught.value, AirflowFailException)
        named = [param for param in dag.params if f"did you mean {param}?" in str(caught.value)]
        assert named == [*dag.params]
    assert not worker.triggered
    assert not [*tmp_path.iterdir()]


def _own(kind: str) -> DAG:
    """Return a user's DAG with a group of ours, a param of the DAG and one of a task."""
    with DAG("evacuate", schedule=None, params={"ticket": ""}) as dag:
        if kind == "fleet":
            fleet_tasks(to="west")
        else:
            failover_tasks(job="orders", prefix_group_id=False)
        BaseOperator(task_id="tell", params={"channel": ""})
    return dag


def _first(dag: DAG) -> Any:  # noqa: ANN401 - as Airflow types a task
    return next(task for task in _first_tasks(dag) if task.task_id != "tell")


@pytest.mark.parametrize("kind", ["failover", "fleet"])
def test_a_users_own_dag_refuses_it_too(worker: Worker, kind: str) -> None:
    """A DAG without the param ``dry_run`` would move the job for real."""
    dag = _own(kind)
    worker.conf = {"ticket": "OPS-1", "dry_run": True}
    with pytest.raises(ConfigurationError, match="'dry_run'") as caught:
        worker.run(_first(dag))
    assert caught.value.fields["setting"] == "conf"


@pytest.mark.parametrize("kind", ["failover", "fleet"])
def test_the_params_of_a_users_own_dag_are_known(worker: Worker, kind: str) -> None:
    """Those of the DAG, those of a task, and what Airflow adds to a triggered run."""
    dag = _own(kind)
    worker.conf = {"ticket": "OPS-1", "channel": "night", "openlineage": {"parentRunId": "1"}}
    with pytest.raises(ConfigurationError, match="there is no file of jobs"):
        worker.run(_first(dag))


def test_a_dag_without_params_has_keys_of_its_own(worker: Worker) -> None:
    """Its templates read them by ``dag_run.conf``; no list of names says which."""
    with DAG("evacuate", schedule=None) as dag:
        failover_tasks(job="{{ dag_run.conf.name }}")
    worker.conf = {"name": "orders"}
    with pytest.raises(ConfigurationError, match="there is no file of jobs"):
        worker.run(_first_tasks(dag)[0])


def test_the_values_are_not_shown(worker: Worker) -> None:
    """A conf may hold secrets, and the error goes to logs and chats."""
    worker.conf = {"passwrd": "hunter2"}
    with pytest.raises(ConfigurationError) as caught:
        worker.run(_first_tasks(_example("mm2_failover"))[0])
    assert "hunter2" not in str(caught.value)
