"""How far MirrorMaker 2 has copied: the lag, and holes that the source's retention left."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from airflow_mm2_offsets.core import TopicPartition, Watermarks
from airflow_mm2_offsets.core.epochs import PartitionSyncs
from airflow_mm2_offsets.core.positions import by_topic_partition
from airflow_mm2_offsets.core.readiness import ReadinessCheck
from airflow_mm2_offsets.core.readiness_names import CheckName
from airflow_mm2_offsets.errors import Mm2OffsetsError
from airflow_mm2_offsets.planning.connect_claims import read_claims
from airflow_mm2_offsets.planning.offset_evidence import PairWatermarks
from airflow_mm2_offsets.readiness.answers import (
    GIVE_CHECKPOINT,
    NO_TOPIC,
    failed,
    ok,
    unknown,
    warning,
    worst_first,
)
from airflow_mm2_offsets.readiness.pair_request import PairRequest, Part


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyProgress:
    """How far one partition was copied."""

    partition: TopicPartition
    watermarks: Watermarks
    """On the source."""
    last_copied: int | None
    """The last source offset that is known as copied; None if none is."""
    says_connect: bool
    """Whether Connect has committed an offset of it, or the target's end shows it. Syncs alone lag
    behind."""

    @property
    def lag(self) -> int:
        """The most records that are not copied."""
        begin = self.watermarks.low if self.last_copied is None else self.last_copied + 1
        return max(0, self.watermarks.high - begin)

    @property
    def hole(self) -> int:
        """The offsets that the source deleted before they were copied."""
        return 0 if self.last_copied is None else max(0, self.watermarks.low - self.last_copied - 1)


def check_replication(request: PairRequest) -> Iterator[ReadinessCheck]:
    """Yield the lag of each topic-partition, and the holes."""
    progress = _read_progress(request)
    if not progress:
        for name in (CheckName.REPLICATION_LAG, CheckName.HOLES):
            yield unknown(name, NO_TOPIC, GIVE_CHECKPOINT)
        return
    yield from _check_lag(progress, request.thresholds.max_lag_records)
    positions = by_topic_partition(request.positions or {})
    holes = [_hole(each, positions.get(each.partition)) for each in progress if each.hole]
    none = ok(CheckName.HOLES, "the source has deleted nothing that was not copied")
    yield from worst_first(CheckName.HOLES, holes, otherwise=none)


def _check_lag(progress: list[CopyProgress], limit: float) -> Iterator[ReadinessCheck]:
    by_lag = sorted(progress, key=lambda each: -each.lag)
    worst, threshold = by_lag[0], f"<= {limit:.0f}"
    total = sum(each.lag for each in progress)
    value = f"at most {worst.lag} records ({worst.partition}), {total} in all"
    behind = [
        failed(
            CheckName.REPLICATION_LAG,
            f"{each.partition}: at most {each.lag} records are not copied: the source ends at "
            f"{each.watermarks.high}, and the last copied offset is "
            f"{'unknown' if each.last_copied is None else each.last_copied}",
            "wait until MirrorMaker 2 has caught up, give it more tasks, or raise max_lag_records",
            threshold=threshold,
            number=each.lag,
            subject=str(each.partition),
        )
        for each in by_lag
        if each.lag > limit
    ]
    fine = ok(CheckName.REPLICATION_LAG, value, threshold=threshold, number=worst.lag)
    yield from worst_first(CheckName.REPLICATION_LAG, behind, otherwise=fine)


def _hole(progress: CopyProgress, position: int | None) -> ReadinessCheck:
    """Return what a hole means: only records that the job has yet to read are lost to it."""
    low, high = progress.watermarks.low, progress.watermarks.high
    value = (
        f"{progress.partition}: the source begins at {low}, and the last copied offset is "
        f"{progress.last_copied}: up to {progress.hole} records never reached the target"
    )
    subject = str(progress.partition)
    if not progress.says_connect:
        step = "Connect would tell: offset syncs alone lag behind the copies"
        return warning(CheckName.HOLES, value, step, subject=subject)
    if low == high:
        step = "no record is left to tell: transaction markers at the end look the same"
        return warning(CheckName.HOLES, value, step, subject=subject)
    if position is not None and position >= low:
        step = f"the job has read them (it stands at {position}), other readers may not have"
        return warning(CheckName.HOLES, value, step, subject=subject)
    step = "copy them again from elsewhere, or accept the gap; lengthen the source's retention"
    return failed(CheckName.HOLES, value, step, subject=subject)


def _read_progress(request: PairRequest) -> list[CopyProgress]:
    ends = request.first_ends()
    syncs, copied = _syncs(request), _committed(request)
    progress = []
    for partition, watermarks in sorted(ends.items()):
        known = [copied[partition]] if partition in copied else []
        if partition in syncs:
            known.append(syncs[partition].last.upstream)
        progress.append(
            CopyProgress(
                partition=partition,
                watermarks=watermarks,
                last_copied=max(known, default=None),
                says_connect=partition in copied,
            )
        )
    return progress


def _syncs(request: PairRequest) -> Mapping[TopicPartition, PartitionSyncs]:
    if Part.SYNCS not in request.reached:
        return {}
    try:
        partitions = request.syncs().index.partitions
    except Mm2OffsetsError:  # ``syncs_emitted`` reports it
        return {}
    return {partition: syncs for partition, syncs in partitions.items() if len(syncs)}


def _copied_by_end(request: PairRequest) -> dict[TopicPartition, int]:
    """Return the last copied offsets of copies that keep them: the target's end shows these."""
    if Part.TARGET not in request.reached:
        return {}
    ends = PairWatermarks.read(request.pair, request.first_ends(), ask_source=False).target
    return {key: each.high - 1 for key, each in ends.items()}


def _committed(request: PairRequest) -> dict[TopicPartition, int]:
    """Return the offsets that Connect has committed; none where it tells none."""
    if not request.pair.has_syncs:
        return _copied_by_end(request)
    try:
        claims = read_claims(request.pair)
    except Mm2OffsetsError:  # ``connector_running`` reports it
        return {}
    return {key: min(each.values()) for key, each in claims.items()}
