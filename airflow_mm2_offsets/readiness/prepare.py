"""Finds out which parts of a pair answer, and prepares what the families share."""

from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from airflow_mm2_offsets.archive import SyncArchive
from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.core import Direction, SyncsLocation, TopicPartition, Watermarks
from airflow_mm2_offsets.core.readiness import ReadinessCheck
from airflow_mm2_offsets.core.readiness_names import CheckName
from airflow_mm2_offsets.errors import ConfigurationError, Mm2OffsetsError
from airflow_mm2_offsets.kafka.cluster import KafkaCluster
from airflow_mm2_offsets.kafka.sync_log import SYNCS_PARTITION
from airflow_mm2_offsets.kafka.syncs import read_syncs
from airflow_mm2_offsets.kafka.tail import read_newest
from airflow_mm2_offsets.planning.ids import check_two_clusters
from airflow_mm2_offsets.planning.options import PlanOptions
from airflow_mm2_offsets.planning.subscribe_pattern import JobPatterns
from airflow_mm2_offsets.readiness.answers import failed, not_asked, ok
from airflow_mm2_offsets.readiness.job import Job
from airflow_mm2_offsets.readiness.pair_request import Once, PairRequest, Part
from airflow_mm2_offsets.readiness.request import ReadinessRequest


class PartAnswers(NamedTuple):
    """What of a pair answers."""

    connection: ReadinessCheck
    """Whether the two clusters are two."""
    reached: frozenset[Part]
    checks: list[ReadinessCheck]
    """One of each part."""


class _Answer(NamedTuple):
    text: str
    cluster_id: str | None = None


_NAMES = {
    Part.SOURCE: CheckName.SOURCE_REACHABLE,
    Part.TARGET: CheckName.TARGET_REACHABLE,
    Part.CONNECT: CheckName.CONNECT_REACHABLE,
}


def find_parts(pool: ThreadPoolExecutor, pair: ClusterPair) -> Callable[[], PartAnswers]:
    """Ask each part at the same time; call the result to wait for the answers."""
    questions: dict[Part, Callable[[], _Answer]] = {
        Part.SOURCE: partial(_describe, pair.source),
        Part.TARGET: partial(_describe, pair.target),
    }
    if pair.connect is not None:
        ask_version = pair.connect.check
        questions[Part.CONNECT] = lambda: _Answer(ask_version())
    asked = {part: pool.submit(question) for part, question in questions.items()}
    return partial(_wait, pair, asked)


def make_pair_request(
    request: ReadinessRequest, job: Job, pair: ClusterPair, reached: frozenset[Part]
) -> PairRequest:
    """Return what the families are asked; nothing is read yet."""
    checkpoint, driver = job.checkpoint, job.driver
    expected = {Part.SOURCE, Part.TARGET} | ({Part.CONNECT} if pair.connect else set())
    if Part.CONNECT not in reached:
        pair = replace(pair, connect=None)
    archive = _open_archive(request)
    options, plan_problem = _with_first_plan(request, pair)
    source = driver.subscribe_patterns.get(checkpoint.query_id, ()) if driver and checkpoint else ()
    pair_request = PairRequest(
        pair=pair,
        policy=request.policy,
        thresholds=request.thresholds,
        now=request.now().timestamp() * 1000,
        reached=reached,
        expected=expected,
        positions=checkpoint.positions if checkpoint else job.substitute,
        pending=checkpoint.pending if checkpoint else None,
        plan_options=replace(options, archive=archive),
        plan_problem=plan_problem,
        notes=job.notes,
        patterns=JobPatterns(requested=request.subscribe_pattern, source=source),
        syncs=Once(lambda: read_syncs(pair.syncs_cluster, pair.syncs_topic)),
        newest_syncs=Once(
            lambda: read_newest(
                pair.syncs_cluster, TopicPartition(pair.syncs_topic, SYNCS_PARTITION)
            )
        ),
        archived=None if archive is None else Once(archive.read),
        first_ends=Once(lambda: _read_ends(pair_request)),
    )
    return pair_request


def _with_first_plan(
    request: ReadinessRequest, pair: ClusterPair
) -> tuple[PlanOptions, str | None]:
    """Return the options with the plan that the way home needs, or why it can't be read."""
    options = request.plan_options
    if pair.direction is not Direction.EXCHANGED or options.first_plan is not None:
        return options, None
    try:
        return replace(options, first_plan=request.came_by()), None
    except Mm2OffsetsError as error:
        return options, str(error)


def _open_archive(request: ReadinessRequest) -> SyncArchive | None:
    # Opened in the caller's thread: Airflow's connections need it.
    if not request.archive:
        return None
    try:
        location = request.open(request.archive)
    except Mm2OffsetsError:
        return SyncArchive(request.archive)  # Its read gives the error.
    return SyncArchive(location, skip_damaged=request.skip_damaged)


def _wait(pair: ClusterPair, asked: "dict[Part, Future[_Answer]]") -> PartAnswers:
    checks: list[ReadinessCheck] = []
    answers: dict[Part, _Answer] = {}
    for part, name in _NAMES.items():
        if part not in asked:
            checks.append(not_asked(name, "the connection names no Connect URL"))
            continue
        try:
            answers[part] = asked[part].result()
            checks.append(ok(name, answers[part].text))
        except Mm2OffsetsError as error:
            checks.append(failed(name, str(error)))
    reached = set(answers)
    on_source = pair.syncs_location is SyncsLocation.SOURCE
    if pair.has_syncs and (Part.SOURCE if on_source else Part.TARGET) in reached:
        reached.add(Part.SYNCS)
    return PartAnswers(_check_two(pair, answers), frozenset(reached), checks)


def _check_two(pair: ClusterPair, answers: Mapping[Part, _Answer]) -> ReadinessCheck:
    ids = {part: answer.cluster_id for part, answer in answers.items()}
    try:
        check_two_clusters(pair, ids.get(Part.SOURCE), ids.get(Part.TARGET))
    except ConfigurationError as error:
        return failed(CheckName.CONNECTION, str(error))
    return ok(CheckName.CONNECTION, "the connection names two clusters")


def _describe(cluster: KafkaCluster) -> _Answer:
    info = cluster.describe()
    text = f"cluster {info.cluster_id or 'without an id'}, brokers {', '.join(info.brokers)}"
    return _Answer(text, info.cluster_id)


def _read_ends(request: PairRequest) -> dict[TopicPartition, Watermarks]:
    """Return the watermarks of the topics that the check is about, of those that exist."""
    source = request.pair.source
    infos = source.topics(request.topics()).values()
    partitions = [
        TopicPartition(info.name, number) for info in infos for number in range(info.partitions)
    ]
    return source.watermarks(partitions)
