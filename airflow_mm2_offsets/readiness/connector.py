"""The connector: does it run, with which settings?"""

from collections.abc import Iterator

from airflow_mm2_offsets.core.readiness import ReadinessCheck
from airflow_mm2_offsets.core.readiness_names import CheckName
from airflow_mm2_offsets.errors import ConnectError
from airflow_mm2_offsets.planning.checks import connector_problem, task_problems
from airflow_mm2_offsets.planning.mirror_config import find_differences, read_mirror_connector
from airflow_mm2_offsets.planning.mirror_connector import (
    DEFAULTS,
    EMIT_SYNCS,
    OFFSET_LAG_MAX,
    SYNCS_LOCATION,
    MirrorConnector,
)
from airflow_mm2_offsets.readiness.answers import (
    blocked,
    failed,
    of_sentences,
    ok,
    unknown,
    warning,
)
from airflow_mm2_offsets.readiness.pair_request import PairRequest


def check_states(request: PairRequest) -> Iterator[ReadinessCheck]:
    """Yield whether the connector and its tasks run."""
    connect, naming = request.pair.connect, request.pair.naming
    if connect is None:
        return
    try:
        name = connect.find_mirror_source(naming.source_alias, naming.target_alias)
        status = connect.status(name)
    except ConnectError as error:
        yield failed(CheckName.CONNECTOR_RUNNING, str(error))
        yield blocked(CheckName.TASKS_RUNNING, "the connector was not found")
        return
    problem = connector_problem(connect, status)
    if problem:
        yield failed(CheckName.CONNECTOR_RUNNING, *problem, subject=name)
        yield blocked(CheckName.TASKS_RUNNING, f"connector {name} does not run")
        return
    yield ok(CheckName.CONNECTOR_RUNNING, f"connector {name} is RUNNING")
    problems = task_problems(connect, status)
    for each in problems:
        yield failed(CheckName.TASKS_RUNNING, *each, subject=name)
    if not problems:
        yield ok(CheckName.TASKS_RUNNING, f"{len(status.tasks)} RUNNING")


def check_settings(request: PairRequest) -> Iterator[ReadinessCheck]:
    """Yield whether the connector's settings agree with the connection's."""
    try:
        connector = read_mirror_connector(request.pair)
    except ConnectError as error:
        yield blocked(CheckName.MIRROR_SETTINGS, str(error))
        yield blocked(CheckName.OFFSET_LAG_MAX, "the connector was not found")
        return
    # ``syncs_emitted`` names a connector without syncs; Connect takes no place of theirs then.
    skipped = {EMIT_SYNCS} if connector.emits_syncs else {EMIT_SYNCS, SYNCS_LOCATION}
    differences = [
        each.problem
        for each in find_differences(request.pair, connector)
        if each.field not in skipped
    ]
    agreed = "policy, separators, aliases and the place of the syncs agree with Connect"
    yield from of_sentences(CheckName.MIRROR_SETTINGS, differences, otherwise=agreed)
    yield _check_offset_lag(connector, request.thresholds.max_offset_lag)


def _check_offset_lag(connector: MirrorConnector, limit: float) -> ReadinessCheck:
    text = connector.config.get(OFFSET_LAG_MAX, DEFAULTS[OFFSET_LAG_MAX])
    value, threshold = (
        f"{OFFSET_LAG_MAX} is {text} in connector {connector.name}",
        f"<= {limit:.0f}",
    )
    lag = connector.number(OFFSET_LAG_MAX)
    if lag is None:
        return unknown(CheckName.OFFSET_LAG_MAX, value)
    if lag <= limit:
        return ok(CheckName.OFFSET_LAG_MAX, value, threshold=threshold)
    return warning(
        CheckName.OFFSET_LAG_MAX,
        f"{value}: where no evidence helps, so many records of a topic-partition are read again",
        "lower it",
        threshold=threshold,
        subject=connector.name,
    )
