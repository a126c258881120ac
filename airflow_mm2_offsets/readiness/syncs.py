"""The offset-syncs topic: are there syncs, and are they new?"""

from collections.abc import Iterator

from airflow_mm2_offsets.core import TopicPartition
from airflow_mm2_offsets.core.readiness import ReadinessCheck
from airflow_mm2_offsets.core.readiness_names import CheckName
from airflow_mm2_offsets.errors import Mm2OffsetsError, SyncsTopicError
from airflow_mm2_offsets.planning.mirror_config import read_mirror_connectors, that_copy
from airflow_mm2_offsets.planning.mirror_connector import EMIT_SYNCS
from airflow_mm2_offsets.readiness.answers import failed, ok, seconds, unknown
from airflow_mm2_offsets.readiness.pair_request import PairRequest, Part


def check_syncs(request: PairRequest) -> Iterator[ReadinessCheck]:
    """Yield whether offset syncs are written at all, and the age of the newest."""
    pair = request.pair
    if (connector := _connector_without_syncs(request)) is not None:
        yield failed(
            CheckName.SYNCS_EMITTED,
            f"connector {connector} has {EMIT_SYNCS}=false: it writes no offset syncs",
            "set it to true, or take it out of the connector's settings",
            subject=connector,
        )
        yield unknown(CheckName.SYNC_AGE, "no offset syncs are written")
        return
    try:
        syncs = request.syncs()
    except SyncsTopicError as error:
        was_copied = Part.TARGET in request.reached and _has_copies(request)
        make = failed if was_copied else unknown
        yield make(CheckName.SYNCS_EMITTED, str(error))
        yield unknown(CheckName.SYNC_AGE, "there is no offset sync")
        return
    yield ok(CheckName.SYNCS_EMITTED, f"{len(syncs.index)} offset syncs in {pair.syncs_topic}")
    yield _check_age(request)


def _connector_without_syncs(request: PairRequest) -> str | None:
    if request.pair.connect is None:
        return None
    try:
        connectors = that_copy(read_mirror_connectors(request.pair), request.topics())
    except Mm2OffsetsError:  # ``connector_running`` reports it
        return None
    return next((each.name for each in connectors if not each.emits_syncs), None)


def _has_copies(request: PairRequest) -> bool:
    """Tell whether the target's copies of the job's topics hold records."""
    pair, topics = request.pair, request.topics()
    copies = pair.target.topics(map(pair.naming.target_topic, topics)).values()
    partitions = [
        TopicPartition(each.name, number) for each in copies for number in range(each.partitions)
    ]
    return any(each.high > 0 for each in pair.target.watermarks(partitions).values())


def _check_age(request: PairRequest) -> ReadinessCheck:
    """Compare the newest sync's age, unless no record waits for a sync."""
    times = [record.timestamp()[1] for record in request.newest_syncs()]
    if not times:
        return unknown(CheckName.SYNC_AGE, "the newest offset sync could not be read")
    age, limit = request.age(max(times)), request.thresholds.max_sync_age
    value, threshold = f"the newest offset sync is {seconds(age)} old", f"<= {seconds(limit)}"
    if age <= limit:
        return ok(CheckName.SYNC_AGE, value, threshold=threshold, number=age)
    waiting = _waiting(request)
    if waiting is None:
        return unknown(CheckName.SYNC_AGE, f"{value}; whether records wait for one is not known")
    if not waiting:
        fine = f"{value}, and no record is newer"
        return ok(CheckName.SYNC_AGE, fine, threshold=threshold, number=age)
    return failed(
        CheckName.SYNC_AGE,
        f"{value}, and {waiting} has newer records",
        "see that the connector runs and may write to the offset-syncs topic",
        threshold=threshold,
        number=age,
        subject=str(waiting),
    )


def _waiting(request: PairRequest) -> TopicPartition | str | None:
    """Return a partition with more new records than MirrorMaker 2 leaves without a sync.

    Empty text: there is none. None: the source does not answer. MirrorMaker 2 before 3.7 writes a
    sync only every ``offset.lag.max`` records.
    """
    if Part.SOURCE not in request.reached:
        return None
    partitions = request.syncs().index.partitions
    for partition, watermarks in request.first_ends().items():
        last = partitions[partition].last.upstream if partition in partitions else -1
        if watermarks.high - last - 1 > max(request.thresholds.max_offset_lag, 0):
            return partition
    return ""
