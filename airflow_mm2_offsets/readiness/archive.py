"""The archive of offset syncs: can it be read, how old is it, which topics does it know?"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from airflow_mm2_offsets.archive import PairIdentity
from airflow_mm2_offsets.archive.values import TopicIds, was_recreated
from airflow_mm2_offsets.core.policy import Policy
from airflow_mm2_offsets.core.readiness import ReadinessCheck
from airflow_mm2_offsets.core.readiness_names import CheckName
from airflow_mm2_offsets.errors import Mm2OffsetsError
from airflow_mm2_offsets.planning.ids import read_ids
from airflow_mm2_offsets.readiness.answers import (
    blocked,
    failed,
    not_asked,
    ok,
    seconds,
    warning,
)
from airflow_mm2_offsets.readiness.pair_request import PairRequest, Part

if TYPE_CHECKING:
    from airflow_mm2_offsets.archive.history import ArchivedSyncs

_NAMES = (CheckName.ARCHIVE_READABLE, CheckName.ARCHIVE_AGE, CheckName.TOPIC_IDS)


def check_archive(request: PairRequest) -> Iterator[ReadinessCheck]:
    """Yield whether the archive can be used; it is of the pair as MirrorMaker 2 copies."""
    request = request.mirrored
    if not request.pair.has_syncs:
        yield from _without_syncs(request)
        return
    if request.archived is None or request.archive is None:
        yield from _without_archive(request.policy)
        return
    location, identity = request.archive.location, _identity(request)
    try:
        archived = request.archived()
        if archived.pair is not None:
            identity.check(archived.pair, location)
    except Mm2OffsetsError as error:
        yield failed(CheckName.ARCHIVE_READABLE, str(error))
        for name in _NAMES[1:]:
            yield blocked(name, "the archive can't be used")
        return
    if archived.as_of is None:
        missing = f"there is no archive in {location}"
        # A job names its archive for the disaster; a planned move does without.
        needs_it = request.policy.source_may_be_lost
        yield (failed if needs_it else warning)(CheckName.ARCHIVE_READABLE, missing)
        for name in _NAMES[1:]:
            yield (blocked if needs_it else not_asked)(name, "there is no archive")
        return
    yield ok(CheckName.ARCHIVE_READABLE, f"{len(archived)} offset syncs in {location}")
    yield _check_age(request, archived.as_of)
    yield from _check_ids(request, archived)


def _without_syncs(request: PairRequest) -> Iterator[ReadinessCheck]:
    value = "the copies keep offsets (mapping identity), and no offset syncs are archived"
    names: Iterable[CheckName] = _NAMES
    if request.archive is not None:
        # A plan refuses it, and would do so when the job has stopped.
        yield failed(
            CheckName.ARCHIVE_READABLE,
            f"archive {request.archive.location} is given; {value}",
            "leave archive out, or set the mapping to offset_syncs",
        )
        names = _NAMES[1:]
    for name in names:
        yield not_asked(name, value)


def _without_archive(policy: Policy) -> Iterator[ReadinessCheck]:
    step = "archive the offset syncs (docs/archive.md), and give archive"
    make = warning if policy.source_may_be_lost else not_asked
    yield make(CheckName.ARCHIVE_READABLE, "no archive is given", step)
    for name in _NAMES[1:]:
        yield not_asked(name, "no archive is given")


def _identity(request: PairRequest) -> PairIdentity:
    pair = request.pair
    ids = {
        part: cluster.describe().cluster_id if part in request.reached else None
        for part, cluster in ((Part.SOURCE, pair.source), (Part.TARGET, pair.target))
    }
    return PairIdentity(
        source=ids[Part.SOURCE], target=ids[Part.TARGET], syncs_topic=pair.syncs_topic
    )


def _check_age(request: PairRequest, as_of: int) -> ReadinessCheck:
    age, limit = request.age(as_of), request.thresholds.max_archive_age
    value, threshold = f"its last run was {seconds(age)} ago", f"<= {seconds(limit)}"
    if age <= limit:
        return ok(CheckName.ARCHIVE_AGE, value, threshold=threshold, number=age)
    step = "run the DAG that archives the offset syncs, and see why it did not run"
    return failed(CheckName.ARCHIVE_AGE, value, step, threshold=threshold, number=age)


def _check_ids(request: PairRequest, archived: "ArchivedSyncs") -> Iterator[ReadinessCheck]:
    if Part.TARGET not in request.reached:
        yield blocked(CheckName.TOPIC_IDS, "the target does not answer")
        return
    topics = archived.topics
    wanted = sorted(set(request.positions if request.positions is not None else topics))
    ids = read_ids(request.pair, wanted, ask_source=Part.SOURCE in request.reached)
    unknown_topics = [topic for topic in wanted if topic not in topics]
    for topic in unknown_topics:
        yield warning(
            CheckName.TOPIC_IDS,
            f"the archive does not know topic {topic}: without the syncs topic no failover could "
            f"translate its positions",
            "run the DAG that archives the offset syncs",
            subject=topic,
        )
    recreated = []
    for topic in wanted:
        now: TopicIds = (
            ids.source.topic_ids.get(topic),
            ids.target.topic_ids.get(request.pair.naming.target_topic(topic)),
        )
        if was_recreated(before := topics.get(topic, (None, None)), now):
            recreated.append(topic)
            yield failed(
                CheckName.TOPIC_IDS,
                f"topic {topic} had the ids {_text(before)} (source, target) when the archive "
                f"last saw it and has {_text(now)} now",
                "it was recreated: wait until MirrorMaker 2 has copied it again and archive that",
                subject=topic,
            )
    if not recreated and not unknown_topics:
        yield ok(CheckName.TOPIC_IDS, f"{len(wanted)} topics have the ids that the archive knows")


def _text(ids: TopicIds) -> str:
    return ", ".join(each or "none" for each in ids)
