"""Finds what would make a failover fail, before anything is stopped."""

import logging
from collections.abc import Callable, Collection, Mapping

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.connect.client import ConnectClient, ConnectorStatus
from airflow_mm2_offsets.core import Basis, Positions
from airflow_mm2_offsets.errors import Mm2OffsetsError
from airflow_mm2_offsets.kafka.cluster import KafkaCluster
from airflow_mm2_offsets.kafka.config import BOOTSTRAP_SERVERS
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


def find_problems(
    pair: ClusterPair,
    positions: Positions,
    *,
    reads_from: Collection[str] = (),
    patterns: JobPatterns = NO_PATTERNS,
    options: PlanOptions = DEFAULT_OPTIONS,
) -> list[str]:
    """Return what stands in the way of moving a job, each as one sentence.

    Args:
        pair: The clusters.
        positions: Where the job stands now on the source; it may still run.
        reads_from: The bootstrap servers that the job was given, where they are known.
        patterns: The patterns that the job on the target subscribes with.
        options: How its positions are to be translated.
    """
    problems = [*_problem(pair.source.describe), *_problem(pair.target.describe)]
    if pair.connect:
        problems += _connect_problems(pair, pair.connect)
    if problems:
        return problems
    if problems := _job_problems(pair, reads_from):
        return problems  # its positions are those of another cluster
    problems = _pattern_problems(pair, positions, patterns)
    # A partition that is missing would be found missing by the translation as well.
    return problems + (
        _partition_problems(pair, positions) or _translation_problems(pair, positions, options)
    )


def _pattern_problems(pair: ClusterPair, positions: Positions, patterns: JobPatterns) -> list[str]:
    try:
        return find_pattern_problems(pair, positions, patterns)
    except Mm2OffsetsError as error:
        return [str(error)]


def _problem(ask: Callable[[], object]) -> list[str]:
    try:
        ask()
    except Mm2OffsetsError as error:
        return [str(error)]
    return []


def _job_problems(pair: ClusterPair, reads_from: Collection[str]) -> list[str]:
    given = set(reads_from)
    if not given or given & _addresses(pair.source):
        return []
    named = ", ".join(sorted(given))
    if given & _addresses(pair.target):
        problem = (
            f"the job reads {named}, which is the {pair.target.name} and not the "
            f"{pair.source.name}: give the checkpoint and the control location of the job on the "
            f"source, or the connection that names the clusters the other way round"
        )
        return [problem]
    # A broker has other names in other networks: that they differ proves nothing.
    log.warning(
        "The job reads %s, and the %s calls itself %s: see that they are one cluster",
        named,
        pair.source.name,
        ", ".join(sorted(_addresses(pair.source))),
    )
    return []


def _addresses(cluster: KafkaCluster) -> set[str]:
    """Return where a cluster is known to be reached: as we were told, and as it says itself."""
    told = str(cluster.config[BOOTSTRAP_SERVERS]).split(",")
    return {server.strip() for server in told} | set(cluster.describe().brokers)


def _connect_problems(pair: ClusterPair, connect: ConnectClient) -> list[str]:
    naming = pair.naming
    try:
        name = connect.find_mirror_source(naming.source_alias, naming.target_alias)
        status = connect.status(name)
    except Mm2OffsetsError as error:
        return [str(error)]
    return [f"Connect at {connect.url}: {problem}" for problem in _state_problems(status)]


def _state_problems(status: ConnectorStatus) -> list[str]:
    name = status.name
    if status.state != "RUNNING":
        return [f"connector {name} is {status.state}; {_state_step(status.state, name)}"]
    if not status.tasks:
        step = "its topics setting matches no topic of the source: correct it"
        return [f"connector {name} runs without a task; {step}"]
    return [
        f"task {task.id} of connector {name} is {task.state}"
        f"{f' ({task.trace})' if task.trace else ''}; {_state_step(task.state, name)}"
        for task in status.tasks
        if task.state != "RUNNING"
    ]


def _state_step(state: str, name: str) -> str:
    return _STATE_STEPS.get(state, _OTHER_STATE_STEP).format(name=name)


def _partition_problems(pair: ClusterPair, positions: Positions) -> list[str]:
    """Tell where a checkpoint's partitions are not those of the topics on both sides.

    Spark's startingOffsets must name exactly the partitions that the job is assigned.
    """
    return [
        *_compare(
            pair.source,
            positions,
            {topic: topic for topic in positions},
            missing="the checkpoint is of another cluster, or the topic was made again: check both",
            extra="the job has yet to take them up: let it commit a batch with them",
        ),
        *_compare(
            pair.target,
            positions,
            {topic: pair.naming.target_topic(topic) for topic in positions},
            missing="MirrorMaker 2 adds them within its refresh.topics.interval.seconds",
            extra="Spark wants a position for each: let the job on the source take them up, or "
            "make the topic again with as many as the source has",
        ),
    ]


def _compare(
    cluster: KafkaCluster,
    positions: Positions,
    names: Mapping[str, str],
    *,
    missing: str,
    extra: str,
) -> list[str]:
    try:
        topics = cluster.topics(names.values())
    except Mm2OffsetsError as error:
        return [str(error)]
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
        place, there = f"{cluster.name}: topic {name}", set(range(topics[name].partitions))
        if lacking := sorted(set(partitions) - there):
            problems.append(f"{place} lacks partitions {lacking} of the checkpoint; {missing}")
        if more := sorted(there - set(partitions)):
            problems.append(f"{place} has partitions {more}, the checkpoint has not; {extra}")
    return problems


def _translation_problems(
    pair: ClusterPair, positions: Positions, options: PlanOptions
) -> list[str]:
    try:
        plan = plan_failover(pair, positions, options=options)
    except Mm2OffsetsError as error:
        return [str(error)]
    return [
        f"{each.topic_partition} at {each.position}: {each.reason}{_refusal_step(each.basis)}"
        for each in plan.refused
    ]


def _refusal_step(basis: Basis) -> str:
    return f"; {_REFUSAL_STEPS[basis]}" if basis in _REFUSAL_STEPS else ""
