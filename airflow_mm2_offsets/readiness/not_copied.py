"""Positions that are not copied yet where copies keep offsets: a later step waits for them.

Where there are offset syncs such a position has an answer already, a bounded one. Here it has none
until it is copied, and the lag decides whether the wait will end. ``target`` calls this.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from airflow_mm2_offsets.core import Basis, Direction, FailoverPlan, Status, Translation
from airflow_mm2_offsets.core.identity import ABORT_STEP
from airflow_mm2_offsets.core.readiness import ReadinessCheck
from airflow_mm2_offsets.core.readiness_names import CheckName
from airflow_mm2_offsets.readiness.answers import MAX_LISTED, failed, ok
from airflow_mm2_offsets.readiness.pair_request import PairRequest

_ENDS_BY_COPYING = frozenset({Basis.NOT_REPLICATED_YET, Basis.OPEN_TRANSACTION})
_STEP = "wait until the copying has caught up, or raise max_lag_records"


def part_by_wait(
    request: PairRequest, plan: FailoverPlan
) -> tuple[FailoverPlan, tuple[Translation, ...]]:
    """Return the plan without the positions that a later step waits for, and these.

    A disaster waits for nothing. Nor does the way home, where all that was read is copied. Offset
    syncs that lie above the target's end are of a truncated topic, and no wait ends that.
    """
    is_forward = request.pair.direction is Direction.FORWARD
    if request.pair.has_syncs or not is_forward or request.policy.source_may_be_lost:
        return plan, ()
    waiting = tuple(
        each.translation
        for each in plan.partitions
        if each.translation.status is Status.REFUSED and each.translation.basis in _ENDS_BY_COPYING
    )
    settled = tuple(each for each in plan.partitions if each.translation not in waiting)
    return replace(plan, partitions=settled), waiting


def check_waiting(request: PairRequest, waiting: Sequence[Translation]) -> Iterator[ReadinessCheck]:
    """Yield whether the wait for these positions can end, by ``max_lag_records``."""
    if not waiting:
        return
    limit = request.thresholds.max_lag_records
    found = _read_positions(request, waiting)
    failures = [each for each in found if each.hangs or each.lag > limit]
    for each in failures:
        yield failed(
            CheckName.TRANSLATION,
            each.sentence,
            ABORT_STEP if each.hangs else _STEP,
            threshold=f"<= {limit:.0f}",
            number=each.lag,
            subject=str(each.answer.topic_partition),
        )
    if not failures:
        yield _will_end(found, limit)


def _will_end(found: "Sequence[_Waiting]", limit: float) -> ReadinessCheck:
    listed = "; ".join(each.sentence for each in found[:MAX_LISTED])
    more = f"; and {len(found) - MAX_LISTED} more" if len(found) > MAX_LISTED else ""
    return ok(
        CheckName.TRANSLATION,
        f"{len(found)} topic-partitions are not copied up to the job's position yet; the failover "
        f"waits for them before it translates (wait_replicated): {listed}{more}",
        threshold=f"<= {limit:.0f}",
        number=max(each.lag for each in found),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Waiting:
    """A position that is not copied yet."""

    answer: Translation
    lag: int
    """The offsets before it that the target does not have."""
    open_from: int | None
    """Where a transaction is open on the target although the source has decided all before the
    position, and everything is copied: no copying ends it."""

    @property
    def hangs(self) -> bool:
        return self.open_from is not None

    @property
    def sentence(self) -> str:
        subject = f"{self.answer.topic_partition} at {self.answer.position}"
        if self.hangs:
            return (
                f"{subject}: a transaction is open on the target from {self.open_from} on, and all "
                f"that the source holds is copied: its end will not come"
            )
        return f"{subject}: {self.lag} offsets before it are not copied"


def _read_positions(request: PairRequest, waiting: Sequence[Translation]) -> list[_Waiting]:
    """Read how far each was copied by now.

    In this order: what the source has decided lies below its end that is read afterwards, and once
    the target's end has come as far, the target's last stable offset must have, too.
    """
    pair = request.pair
    names = {each.topic_partition: pair.on_target(each.topic_partition) for each in waiting}
    decided = pair.source.watermarks(names, isolation="read_committed")
    source = pair.source.watermarks(names)
    target = pair.target.watermarks(names.values())
    stable = pair.target.watermarks(names.values(), isolation="read_committed")
    found = []
    for answer in waiting:
        key = answer.topic_partition
        name = names[key]
        is_copied = target[name].high >= source[key].high
        end = stable[name].high
        hangs = is_copied and end < min(answer.position, decided[key].high)
        lag = max(0, answer.position - target[name].high)
        found.append(_Waiting(answer=answer, lag=lag, open_from=end if hangs else None))
    return found
