"""The connector: does it run, with which settings?"""

from collections.abc import Iterator, Sequence

from airflow_mm2_offsets.connect.client import ConnectClient, ConnectorStatus
from airflow_mm2_offsets.core.readiness import CheckStatus, ReadinessCheck
from airflow_mm2_offsets.core.readiness_names import CheckName
from airflow_mm2_offsets.errors import ConnectError
from airflow_mm2_offsets.planning.checks import connector_problem, task_problems
from airflow_mm2_offsets.planning.connect_claims import describe_shared, read_claims
from airflow_mm2_offsets.planning.mirror_config import (
    Difference,
    as_connectors,
    find_differences,
    read_mirror_connectors,
    that_copy,
)
from airflow_mm2_offsets.planning.mirror_connector import (
    DEFAULTS,
    EMIT_SYNCS,
    OFFSET_LAG_MAX,
    SYNCS_LOCATION,
    MirrorConnector,
)
from airflow_mm2_offsets.readiness.answers import (
    MAX_LISTED,
    blocked,
    failed,
    of_sentences,
    ok,
    unknown,
    warning,
    worst_first,
)
from airflow_mm2_offsets.readiness.pair_request import PairRequest


def check_states(request: PairRequest) -> Iterator[ReadinessCheck]:
    """Yield whether the connectors that copy the job's topics, and their tasks, run."""
    connect, naming = request.pair.connect, request.pair.naming
    if connect is None:
        return
    try:
        found = connect.find_mirror_sources(naming.source_alias, naming.target_alias)
        connectors = _that_copy(request, as_connectors(found))
        statuses = [connect.status(each.name) for each in connectors]
    except ConnectError as error:
        yield failed(CheckName.CONNECTOR_RUNNING, str(error))
        yield blocked(CheckName.TASKS_RUNNING, "the connector was not found")
        return
    names, running = ", ".join(each.name for each in statuses), []
    down = []
    for status in statuses:
        if problem := connector_problem(connect, status):
            down.append(failed(CheckName.CONNECTOR_RUNNING, *problem, subject=status.name))
        else:
            running.append(status)
    fine = ok(CheckName.CONNECTOR_RUNNING, f"connector {names} is RUNNING")
    yield from worst_first(CheckName.CONNECTOR_RUNNING, down, otherwise=fine)
    if not running:
        yield blocked(CheckName.TASKS_RUNNING, f"connector {names} does not run")
        return
    yield from _check_tasks(connect, running)


def _check_tasks(
    connect: ConnectClient, statuses: Sequence[ConnectorStatus]
) -> Iterator[ReadinessCheck]:
    problems = [
        failed(CheckName.TASKS_RUNNING, *problem, subject=status.name)
        for status in statuses
        for problem in task_problems(connect, status)
    ]
    count = sum(len(status.tasks) for status in statuses)
    fine = ok(CheckName.TASKS_RUNNING, f"{count} RUNNING")
    yield from worst_first(CheckName.TASKS_RUNNING, problems, otherwise=fine)


def check_settings(request: PairRequest) -> Iterator[ReadinessCheck]:
    """Yield whether the connectors' settings agree with the connection's."""
    try:
        connectors = _that_copy(request, read_mirror_connectors(request.pair))
    except ConnectError as error:
        yield blocked(CheckName.MIRROR_SETTINGS, str(error))
        yield blocked(CheckName.OFFSET_LAG_MAX, "the connector was not found")
        return
    agreed = "policy, separators, aliases and the place of the syncs agree with Connect"
    differences = [each.problem for one in connectors for each in _differences(request, one)]
    shared = [warning(CheckName.MIRROR_SETTINGS, each) for each in _shared_partitions(request)]
    if differences or not shared:
        yield from of_sentences(CheckName.MIRROR_SETTINGS, differences, otherwise=agreed)
    yield from shared[:MAX_LISTED]
    lags = [_check_offset_lag(each, request.thresholds.max_offset_lag) for each in connectors]
    yield from worst_first(
        CheckName.OFFSET_LAG_MAX,
        [each for each in lags if each.status is not CheckStatus.OK],
        otherwise=lags[0],
    )


def _that_copy(
    request: PairRequest, connectors: Sequence[MirrorConnector]
) -> list[MirrorConnector]:
    """Return the connectors that may copy the job's topics; all where no job is given."""
    return that_copy(connectors, sorted(request.positions or ()))


def _differences(request: PairRequest, connector: MirrorConnector) -> Iterator[Difference]:
    # ``syncs_emitted`` names a connector without syncs; Connect takes no place of theirs then.
    skipped = {EMIT_SYNCS} if connector.emits_syncs else {EMIT_SYNCS, SYNCS_LOCATION}
    for each in find_differences(request.pair, connector):
        if each.field not in skipped:
            yield each


def _shared_partitions(request: PairRequest) -> Iterator[str]:
    """Yield each of the job's topic-partitions that several connectors claim."""
    try:
        claims = read_claims(request.pair)
    except ConnectError:  # ``connector_running`` reports it
        return
    topics = set(request.positions) if request.positions else None
    for key, by_connector in sorted(claims.items()):
        if len(by_connector) > 1 and (topics is None or key.topic in topics):
            yield describe_shared(key, by_connector)


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
