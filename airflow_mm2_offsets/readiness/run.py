"""Asks all families of checks, those of the clusters at the same time, and makes the report.

First it asks which parts answer. A family that needs a part which does not is not asked: so an
unreachable part costs one timeout, whatever depends on it.
"""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import NamedTuple

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.core.policy import Policy
from airflow_mm2_offsets.core.readiness import CheckStatus, ReadinessCheck, ReadinessReport
from airflow_mm2_offsets.core.readiness_names import CheckName
from airflow_mm2_offsets.errors import Mm2OffsetsError
from airflow_mm2_offsets.logins import without_login
from airflow_mm2_offsets.readiness.activity import check_groups, check_producers
from airflow_mm2_offsets.readiness.answers import blocked, failed, not_asked
from airflow_mm2_offsets.readiness.archive import check_archive
from airflow_mm2_offsets.readiness.connector import check_settings, check_states
from airflow_mm2_offsets.readiness.folders import check_folders
from airflow_mm2_offsets.readiness.heartbeats import check_heartbeats
from airflow_mm2_offsets.readiness.job import Job, read_job
from airflow_mm2_offsets.readiness.job_checks import check_job
from airflow_mm2_offsets.readiness.pair_request import PairRequest, Part
from airflow_mm2_offsets.readiness.prepare import find_parts, make_pair_request
from airflow_mm2_offsets.readiness.replication import check_replication
from airflow_mm2_offsets.readiness.request import ReadinessRequest
from airflow_mm2_offsets.readiness.syncs import check_syncs
from airflow_mm2_offsets.readiness.target import check_target
from airflow_mm2_offsets.readiness.under_way import (
    check_kept_ids,
    check_kept_plan_alone,
    is_under_way,
)


class _Family(NamedTuple):
    names: tuple[CheckName, ...]
    needs: frozenset[Part]
    ask: Callable[[PairRequest], Iterable[ReadinessCheck]]


_FAMILIES = (
    _Family(
        (CheckName.CONNECTOR_RUNNING, CheckName.TASKS_RUNNING),
        frozenset({Part.CONNECT}),
        check_states,
    ),
    _Family(
        (CheckName.MIRROR_SETTINGS, CheckName.OFFSET_LAG_MAX),
        frozenset({Part.CONNECT}),
        check_settings,
    ),
    _Family(
        (
            *(CheckName.JOB_CLUSTER, CheckName.SUBSCRIBE_PATTERN),
            CheckName.SOURCE_PARTITIONS,
            *(CheckName.TARGET_PARTITIONS, CheckName.TRANSLATION, CheckName.TARGET_RETENTION),
            CheckName.LOG_APPEND_TIME,
        ),
        frozenset({Part.TARGET}),
        check_target,
    ),
    _Family((CheckName.SYNCS_EMITTED, CheckName.SYNC_AGE), frozenset({Part.SYNCS}), check_syncs),
    _Family(
        (CheckName.REPLICATION_LAG, CheckName.HOLES), frozenset({Part.SOURCE}), check_replication
    ),
    _Family((CheckName.LAG_SECONDS, CheckName.CLOCKS), frozenset({Part.TARGET}), check_heartbeats),
    _Family(
        (CheckName.ARCHIVE_READABLE, CheckName.ARCHIVE_AGE, CheckName.TOPIC_IDS),
        frozenset(),
        check_archive,
    ),
    _Family((CheckName.ACTIVE_GROUPS,), frozenset({Part.SOURCE}), check_groups),
)
_SOURCE_MUST_ANSWER = frozenset({CheckName.TARGET_PARTITIONS, CheckName.TRANSLATION})
"""Checks of the target that mean nothing without the source, but in a disaster."""
_NOT_IN_DRILL = frozenset({CheckName.ACTIVE_GROUPS, CheckName.ACTIVE_PRODUCERS})
"""A drill stops nothing, so others may go on."""
_LOST_IN_DISASTER = frozenset(
    {
        *(CheckName.CONNECTOR_RUNNING, CheckName.TASKS_RUNNING),
        *(CheckName.SOURCE_PARTITIONS, CheckName.MIRROR_SETTINGS),
        *(CheckName.SYNCS_EMITTED, CheckName.SYNC_AGE, CheckName.REPLICATION_LAG),
        *(CheckName.LAG_SECONDS, CheckName.HOLES, CheckName.ARCHIVE_AGE),
    }
)
"""What nobody can mend once the source is lost: it is told, and stops no failover. The archive,
too, grows no younger; the forecast says what its age costs."""


def check_readiness(request: ReadinessRequest) -> ReadinessReport:
    """Ask everything that the policy needs, and return the report; errors are checks in it."""
    job, under_way = read_job(request), is_under_way(request)
    found = [*job.checks]
    found += _check_clusters(request, job, is_under_way=under_way)
    for name, more in request.more.items():
        found += _guarded(name, more)
    order = {name: number for number, name in enumerate(CheckName)}
    checks = sorted(_all(found, is_under_way=under_way), key=lambda check: order[check.name])
    return ReadinessReport(
        checks=tuple(_without_login(_by_policy(check, request.policy)) for check in checks),
        policy=request.policy,
        created_at=request.now().isoformat(timespec="seconds"),
        run_id=request.request_id or None,
        is_under_way=under_way,
    )


def _check_clusters(
    request: ReadinessRequest, job: Job, *, is_under_way: bool
) -> Iterator[ReadinessCheck]:
    try:
        pair = request.find_pair()
    except Mm2OffsetsError as error:
        yield failed(CheckName.CONNECTION, str(error))
        if not is_under_way:
            yield from check_job(request, job)
            yield from check_folders(request)
        return
    pool = ThreadPoolExecutor(max_workers=12, thread_name_prefix="readiness")
    try:
        parts = find_parts(pool, pair)
        if not is_under_way:
            # Storage is read here while the clusters answer.
            yield from check_job(request, job)
            yield from check_folders(request)
        connection, reached, checks = parts()
        yield connection
        if is_under_way:
            yield from _check_kept(request, job, pair, reached)
            return
        yield from checks
        yield from _check_pair(pool, request, job, pair, reached)
    finally:
        # All answers are there, or the caller was interrupted and must not wait for them.
        pool.shutdown(wait=False, cancel_futures=True)


def _check_pair(
    pool: ThreadPoolExecutor,
    request: ReadinessRequest,
    job: Job,
    pair: ClusterPair,
    reached: frozenset[Part],
) -> Iterator[ReadinessCheck]:
    pair_request = make_pair_request(request, job, pair, reached)
    families: list[tuple[_Family, Future[list[ReadinessCheck]]]] = [
        (family, pool.submit(_ask, family, pair_request)) for family in _FAMILIES
    ]
    yield from _check_kept(request, job, pair, reached)
    for _, future in families:
        yield from future.result()
    producers = _Family(
        (CheckName.ACTIVE_PRODUCERS,),
        frozenset({Part.SOURCE}),
        lambda asked: [check_producers(asked)],
    )
    yield from _ask(producers, pair_request)


def _check_kept(
    request: ReadinessRequest, job: Job, pair: ClusterPair, reached: frozenset[Part]
) -> Iterator[ReadinessCheck]:
    if Part.TARGET in reached:
        yield from check_kept_ids(request, job, pair, ask_source=Part.SOURCE in reached)
    else:
        yield from check_kept_plan_alone(request)


def _ask(family: _Family, request: PairRequest) -> list[ReadinessCheck]:
    """Return a family's checks; each that it does not give is unknown, with the reason."""
    if reason := _why_needless(family, request):
        return [not_asked(name, reason) for name in family.names]
    if request.pair.connect is None and family.needs == {Part.CONNECT}:
        value = "the connection names no Connect URL"
        if Part.CONNECT in request.expected:
            return [blocked(name, f"{Part.CONNECT} does not answer") for name in family.names]
        return [not_asked(name, value) for name in family.names]
    needs = family.needs
    if CheckName.TRANSLATION in family.names and not request.policy.source_may_be_lost:
        needs |= {Part.SOURCE}
    missing = sorted(needs - {*request.reached})
    if missing:
        return [blocked(name, f"{missing[0]} does not answer") for name in family.names]
    try:
        return list(family.ask(request))
    except Mm2OffsetsError as error:
        return [blocked(name, str(error)) for name in family.names]


def _why_needless(family: _Family, request: PairRequest) -> str:
    """Return why a family is not asked; empty text: it is."""
    if request.policy.leaves_job_alone and set(family.names) <= _NOT_IN_DRILL:
        return "a drill stops nothing"
    if Part.SYNCS in family.needs and not request.pair.has_syncs:
        return "the copies keep offsets (mapping identity): no offset syncs are needed"
    return ""


def _guarded(name: CheckName, ask: Callable[[], Iterable[ReadinessCheck]]) -> list[ReadinessCheck]:
    try:
        return list(ask())
    except Mm2OffsetsError as error:
        return [failed(name, str(error))]


def _all(found: list[ReadinessCheck], *, is_under_way: bool) -> list[ReadinessCheck]:
    """Return the checks, and for each name without one a check that was not asked."""
    value = "this failover is under way" if is_under_way else "not needed here"
    named = {check.name for check in found}
    return [*found, *(not_asked(name, value) for name in CheckName if name not in named)]


def _by_policy(check: ReadinessCheck, policy: Policy) -> ReadinessCheck:
    if not policy.source_may_be_lost or check.status is not CheckStatus.FAILED:
        return check
    if check.name in {CheckName.SOURCE_REACHABLE, CheckName.CONNECT_REACHABLE}:
        return replace(check, status=CheckStatus.UNKNOWN)
    if check.name in _LOST_IN_DISASTER:
        return replace(check, status=CheckStatus.WARNING)
    return check


def _without_login(check: ReadinessCheck) -> ReadinessCheck:
    """Return a check that shows no password of a location: reports lie in XCom and in chats."""
    return replace(
        check,
        value=without_login(check.value),
        remedy=without_login(check.remedy),
        subject=without_login(check.subject),
    )
