"""Whether connectors have the state that is waited for; the trigger asks."""

from collections.abc import Iterable, Iterator

from airflow_mm2_offsets.connect.admin import TargetState
from airflow_mm2_offsets.connect.client import ConnectClient, ConnectorStatus


def find_missing(
    connect: ConnectClient, names: Iterable[str], state: TargetState, *, with_tasks: Iterable[str]
) -> list[str]:
    """Return what is missing until each connector and its tasks have a state.

    Args:
        connect: The Connect worker.
        names: Of the connectors.
        state: STOPPED is reached when the tasks are gone.
        with_tasks: The connectors that must have a task to be RUNNING. A MirrorCheckpointConnector
            has none as long as no consumer group matches.

    Raises:
        ConnectError: Connect refused, or has no such connector.
        ClusterUnreachableError: Connect did not answer.
    """
    demanding = set(with_tasks)
    return [
        problem
        for name in names
        for problem in _missing(connect.status(name), state, needs_task=name in demanding)
    ]


def _missing(status: ConnectorStatus, state: TargetState, *, needs_task: bool) -> Iterator[str]:
    if status.state != state:
        yield f"connector {status.name} is {status.state}"
    if state is TargetState.STOPPED:
        if status.tasks:
            yield f"{len(status.tasks)} tasks of connector {status.name} are still there"
        return
    if needs_task and not status.tasks:
        yield f"connector {status.name} has no task: its topics match nothing yet"
    for task in status.tasks:
        if task.state != state:
            reason = f" ({task.trace})" if task.trace else ""
            yield f"task {task.id} of connector {status.name} is {task.state}{reason}"
