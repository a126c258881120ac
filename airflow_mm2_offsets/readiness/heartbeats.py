"""Heartbeats on the target: how many seconds MirrorMaker 2 lags, and whether clocks agree."""

from collections.abc import Iterator

from airflow_mm2_offsets.core.readiness import ReadinessCheck
from airflow_mm2_offsets.core.readiness_names import CheckName
from airflow_mm2_offsets.errors import Mm2OffsetsError
from airflow_mm2_offsets.planning.heartbeats import read_heartbeats
from airflow_mm2_offsets.readiness.answers import failed, ok, seconds, unknown, warning
from airflow_mm2_offsets.readiness.pair_request import PairRequest, Part


def check_heartbeats(request: PairRequest) -> Iterator[ReadinessCheck]:
    """Yield the age of the newest heartbeat, and times that lie in the future."""
    heartbeats = read_heartbeats(request.pair)
    times = heartbeats.times if heartbeats else ()
    if heartbeats is None:
        topic = request.pair.naming.heartbeats_topic()
        step = "run a MirrorHeartbeatConnector, and let MirrorMaker 2 copy its topic"
        yield unknown(CheckName.LAG_SECONDS, f"the target has no topic {topic}", step)
    elif not times:
        yield unknown(CheckName.LAG_SECONDS, f"{heartbeats.topic} on the target holds no heartbeat")
    else:
        yield _check_lag(request, heartbeats.topic, max(times))
    yield _check_clocks(request, [*times, *_sync_times(request)])


def _check_lag(request: PairRequest, topic: str, newest: int) -> ReadinessCheck:
    age, limit = request.age(newest), request.thresholds.max_lag_seconds
    value, threshold = f"the newest of {topic} is {seconds(age)} old", f"<= {seconds(limit)}"
    if age <= limit:
        return ok(CheckName.LAG_SECONDS, value, threshold=threshold, number=age)
    step = "see that the heartbeat connector runs and that MirrorMaker 2 copies its topic"
    return failed(
        CheckName.LAG_SECONDS, value, step, threshold=threshold, number=age, subject=topic
    )


def _sync_times(request: PairRequest) -> list[int]:
    if Part.SYNCS not in request.reached:
        return []
    try:
        return [record.timestamp()[1] for record in request.newest_syncs()]
    except Mm2OffsetsError:  # ``syncs_emitted`` reports it
        return []


def _check_clocks(request: PairRequest, times: list[int]) -> ReadinessCheck:
    """Compare with our clock: only a time in the future shows that clocks differ."""
    if not times:
        return unknown(CheckName.CLOCKS, "there is no heartbeat and no offset sync to compare with")
    ahead, limit = (max(times) - request.now) / 1000, request.thresholds.max_clock_drift
    threshold = f"<= {seconds(limit)}"
    if ahead <= limit:
        return ok(CheckName.CLOCKS, "no heartbeat or sync is from the future", threshold=threshold)
    value = f"the newest heartbeat or offset sync lies {seconds(ahead)} in the future"
    step = "see that Connect workers, brokers and Airflow keep time by NTP"
    return warning(CheckName.CLOCKS, value, step, threshold=threshold)
