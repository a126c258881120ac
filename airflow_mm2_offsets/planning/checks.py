"""Finds what would make a failover fail, before anything is stopped.

``readiness`` makes named checks of what is found here.
"""

import logging
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import NamedTuple

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.connect.client import ConnectClient, ConnectorStatus
from airflow_mm2_offsets.core import Basis, FailoverPlan, Positions
from airflow_mm2_offsets.errors import ClusterUnreachableError, Mm2OffsetsError
from airflow_mm2_offsets.kafka.cluster import KafkaCluster
from airflow_mm2_offsets.kafka.config import BOOTSTRAP_SERVERS
from airflow_mm2_offsets.planning.mirror_config import as_connectors, that_copy
from airflow_mm2_offsets.planning.options import DEFAULT_OPTIONS, PlanOptions
from airflow_mm2_offsets.planning.plan import plan_failover
from airflow_mm2_offsets.planning.subscribe_pattern import JobPatterns, find_pattern_problems

log = logging.getLogger(__name__)

NO_PATTERNS = JobPatterns()
_STATE_STEPS: Mapping[str, str] = {
    "PAUSED": "resume it (PUT /connectors/{name}/resume)",
    "STOPPED": "resume it (PUT /connectors/{name}/resume)",
    "FAILED": (
        "mend what its trace names (GET /connectors/{name}/status) and restart it (POST "
        "/connectors/{name}/restart?includeTasks=true)"
    ),
}
_OTHER_STATE_STEP = "see whether the workers run or are rebalancing, and check again"

_REFUSAL_STEPS: Mapping[Basis, str] = {
    Basis.NEVER_REPLICATED: (
        "see that the topics setting of its connector covers it; if its first record is new, "
        "check again in a minute"
    ),
    Basis.OUTSIDE_SOURCE: "check the checkpoint location and the source's connection",
    Basis.HISTORY_CUT: "let the job read on past that sync first",
    Basis.EXPIRED: "let the job catch up, and lengthen the target topic's retention",
}


class Problem(NamedTuple):
    """What is wrong, and what to do."""

    what: str
    step: str


def find_problems(
    pair: ClusterPair,
    positions: Positions,
    *,
    reads_from: Collection[str] = (),
    patterns: JobPatterns = NO_PATTERNS,
    options: PlanOptions = DEFAULT_OPTIONS,
) -> list[str]:
    """Return each problem that would make the move of a job fail, as one sentence.

    Args:
        pair: The clusters.
        positions: The job's positions on the source; it may still run.
        reads_from: The bootstrap servers in the job's options, if they are known.
        patterns: The patterns that the job on the target subscribes with.
        options: How its positions are to be translated.
    """
    problems = [
        *_or_error(partial(_cluster_problems, pair.source)),
        *_or_error(partial(_cluster_problems, pair.target)),
    ]
    problems += find_connect_problems(pair, positions)
    if problems:
        return problems
    if problems := job_cluster_problems(pair, reads_from):
        return problems  # The positions are those of another cluster.
    problems = _or_error(partial(find_pattern_problems, pair, positions, patterns))
    # The translation would report a missing partition again.
    return problems + (
        _partition_problems(pair, positions)
        or _or_error(partial(_translation_problems, pair, positions, options))
    )


def _or_error(find: Callable[[], list[str]]) -> list[str]:
    """Return the problems that ``find`` returns, or the message of the error that it raises."""
    try:
        return find()
    except Mm2OffsetsError as error:
        return [str(error)]


def _cluster_problems(cluster: KafkaCluster) -> list[str]:
    cluster.describe()
    return []


def job_cluster_problems(pair: ClusterPair, reads_from: Collection[str]) -> list[str]:
    """Return that the job reads the target, if it does; ``reads_from`` are its brokers."""
    servers = set(reads_from)
    if not servers or servers & _configured(pair.source):
        return []
    addresses = _addresses(pair.source)
    if servers & addresses:
        return []
    listed, source = ", ".join(sorted(servers)), ", ".join(sorted(addresses))
    if servers & _addresses(pair.target):
        problem = (
            f"the job reads {listed}, which is the {pair.target.name} and not the "
            f"{pair.source.name} ({source}): give the checkpoint and the control location of the "
            f"job on the source, or the connection that names the clusters the other way round"
        )
        return [problem]
    # A broker has other names in other networks: different addresses prove nothing.
    log.warning(
        "The job reads %s, and the %s calls itself %s: see that they are one cluster",
        listed,
        pair.source.name,
        source,
    )
    return []


def _addresses(cluster: KafkaCluster) -> set[str]:
    """Return a cluster's addresses: those that are configured, and those that it advertises."""
    try:
        return _configured(cluster) | set(cluster.describe().brokers)
    except ClusterUnreachableError:
        return _configured(cluster)


def _configured(cluster: KafkaCluster) -> set[str]:
    return {server.strip() for server in str(cluster.config[BOOTSTRAP_SERVERS]).split(",")}


def find_connect_problems(pair: ClusterPair, positions: Positions) -> list[str]:
    """Return why MirrorMaker 2 does not copy, as Connect says: each a sentence with what to do."""
    if pair.connect is None:
        return []
    return _or_error(partial(_connect_problems, pair, pair.connect, positions))


def _connect_problems(pair: ClusterPair, connect: ConnectClient, positions: Positions) -> list[str]:
    found = connect.find_mirror_sources(pair.naming.source_alias, pair.naming.target_alias)
    problems: list[Problem] = []
    for connector in that_copy(as_connectors(found), positions):
        status = connect.status(connector.name)
        problem = connector_problem(connect, status)
        problems += [problem] if problem else task_problems(connect, status)
    return ["; ".join(each) for each in problems]


def connector_problem(connect: ConnectClient, status: ConnectorStatus) -> Problem | None:
    """Return why a connector does not run; None if it does."""
    if status.state == "RUNNING":
        return None
    what = f"Connect at {connect.url}: connector {status.name} is {status.state}"
    return Problem(what, _state_step(status.state, status.name))


def task_problems(connect: ConnectClient, status: ConnectorStatus) -> list[Problem]:
    """Return which tasks of a connector do not run."""
    name, place = status.name, f"Connect at {connect.url}"
    if not status.tasks:
        step = "its topics setting matches no topic of the source: correct it"
        return [Problem(f"{place}: connector {name} runs without a task", step)]
    return [
        Problem(
            f"{place}: task {task.id} of connector {name} is {task.state}"
            f"{f' ({task.trace})' if task.trace else ''}",
            _state_step(task.state, name),
        )
        for task in status.tasks
        if task.state != "RUNNING"
    ]


def _state_step(state: str, name: str) -> str:
    return _STATE_STEPS.get(state, _OTHER_STATE_STEP).format(name=name)


def _partition_problems(pair: ClusterPair, positions: Positions) -> list[str]:
    """Return the partitions of the checkpoint or of a topic that the other does not have.

    Spark's startingOffsets must name exactly the partitions that the job is assigned.
    """
    on_source = partial(source_partition_problems, pair, positions)
    on_target = partial(target_partition_problems, pair, positions)
    return [*_or_error(on_source), *_or_error(on_target)]


def source_partition_problems(pair: ClusterPair, positions: Positions) -> list[str]:
    """Return the partitions that only the checkpoint or only the source has."""
    return _compare_partitions(
        pair.source,
        {topic: topic for topic in positions},
        positions,
        missing="the checkpoint is of another cluster, or the topic was recreated: check both",
        extra="the job does not read them yet: let it commit a batch with them",
    )


def target_partition_problems(pair: ClusterPair, positions: Positions) -> list[str]:
    """Return the partitions that only the checkpoint or only the target has."""
    return _compare_partitions(
        pair.target,
        {topic: pair.naming.target_topic(topic) for topic in positions},
        positions,
        missing="MirrorMaker 2 adds them within its refresh.topics.interval.seconds",
        extra="Spark needs a position for each: let the job on the source read them, or recreate "
        "the topic with as many partitions as the source has",
    )


def _compare_partitions(
    cluster: KafkaCluster,
    names: Mapping[str, str],
    positions: Positions,
    *,
    missing: str,
    extra: str,
) -> list[str]:
    topics = cluster.topics(names.values())
    problems = []
    for topic, partitions in positions.items():
        name = names[topic]
        if name not in topics:
            problems.append(
                f"{cluster.name} has no topic {name}: see that the topics setting of the "
                f"connector covers it, and that the replication policy of the mm2 connection is "
                f"the connector's"
            )
            continue
        subject, existing = f"{cluster.name}: topic {name}", set(range(topics[name].partitions))
        if absent := sorted(set(partitions) - existing):
            problems.append(f"{subject} lacks partitions {absent} of the checkpoint; {missing}")
        if surplus := sorted(existing - set(partitions)):
            problems.append(f"{subject} has partitions {surplus}, the checkpoint has not; {extra}")
    return problems


def _translation_problems(
    pair: ClusterPair, positions: Positions, options: PlanOptions
) -> list[str]:
    return refusals(plan_failover(pair, positions, options=options))


def refusals(plan: FailoverPlan) -> list[str]:
    """Return each partition that is refused, or whose answer is not safe, with the next step."""
    problems = []
    for answer in (*plan.refused, *plan.not_safe):
        step = _REFUSAL_STEPS.get(answer.basis)
        problems.append(
            f"{answer.topic_partition} at {answer.position}: {answer.reason}"
            f"{f'; {step}' if step else ''}"
        )
    return problems
