"""Where a position can be on the target, given the two syncs around it.

``g(p)`` is the truth: the largest target position that misses no replicated record at or after
source position ``p``. With syncs (u1, d1) and (u2, d2) around ``p``, u1 < p < u2:

- always ``d1 + 1 <= g <= d2``, for the syncs of an epoch rise on both sides;
- where no target offset between d1 and d2 is an extra one, at most ``u2 - p`` records lie from p
  to u2 and at most ``p - u1`` from u1 to p, so
  ``max(d1 + 1, d2 - (u2 - p)) <= g <= min(d2, d1 + (p - u1))``;
- where the target was read, the same holds counted in records that it delivered.
"""

from dataclasses import dataclass

from airflow_mm2_offsets.core.evidence import Evidence, Extras, TargetWindow
from airflow_mm2_offsets.core.stretch import Stretch, SyncPoint


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """``low <= g(p) <= high``; ``high`` is None where the target's end bounds it."""

    low: int
    high: int | None

    def __and__(self, older: "Bounds") -> "Bounds":
        """Return the bounds of the truth where some records may exist only in ``older``.

        Those may as well have been copied again since the last sync, so ``older`` does not bound
        the truth from above.
        """
        return Bounds(low=min(self.low, older.low), high=self.high)

    def up_to(self, high: int) -> "Bounds":
        """Return the bounds of the truth where the records may exist again, up to ``high``."""
        return self if self.high is None else Bounds(low=self.low, high=max(self.high, high))


def bounds_of(stretch: Stretch, evidence: Evidence) -> Bounds:
    """Return the bounds of ``g`` at the stretch's position."""
    floor, ceiling = stretch.floor, stretch.ceiling
    if floor and stretch.is_sync:
        return Bounds(low=floor.downstream, high=floor.downstream)
    # Where the target has deleted its beginning, 0 becomes a refusal: the copy may be gone.
    low = floor.downstream + 1 if floor else 0
    if ceiling is None:
        return Bounds(low=low, high=None)
    bounds = Bounds(low=low, high=ceiling.downstream)
    if evidence.target_window and counts(stretch, evidence):
        bounds = _counted(stretch.position, floor, ceiling, bounds, evidence.target_window)
    elif evidence.extras is Extras.NONE and not _extras_proven(floor, ceiling):
        bounds = _measured(stretch.position, floor, ceiling, bounds)
    if stretch.rewind:
        # The ceiling was copied again: only the newer copy bounds the truth from above.
        return Bounds(low=bounds.low, high=stretch.rewind.downstream)
    return bounds


def counts(stretch: Stretch, evidence: Evidence) -> bool:
    """Tell whether records can be counted on the target between the stretch's syncs."""
    if not (evidence.sole_writer and evidence.target_window and stretch.ceiling):
        return False
    first = stretch.floor.downstream if stretch.floor else 0
    if evidence.target:
        first = max(first, evidence.target.low)
    return evidence.target_window.covers(first, stretch.ceiling.downstream)


def _extras_proven(floor: SyncPoint | None, ceiling: SyncPoint) -> bool:
    """Tell whether the target grew by more than the source: then some offsets are extra."""
    if floor is None:
        return False
    return ceiling.downstream - floor.downstream > ceiling.upstream - floor.upstream


def _measured(position: int, floor: SyncPoint | None, ceiling: SyncPoint, wide: Bounds) -> Bounds:
    low = max(wide.low, ceiling.downstream - (ceiling.upstream - position))
    high = ceiling.downstream
    if floor:
        high = min(high, floor.downstream + (position - floor.upstream))
    return Bounds(low=low, high=high)


def _counted(
    position: int, floor: SyncPoint | None, ceiling: SyncPoint, wide: Bounds, window: TargetWindow
) -> Bounds:
    low = window.back_from(ceiling.downstream, ceiling.upstream - position)
    high = None
    # A floor that was copied again within the window is no place to count from.
    if floor and window.delivers(floor.downstream):
        high = window.on_from(floor.downstream, position - floor.upstream)
    return Bounds(
        low=wide.low if low is None else max(wide.low, low),
        high=ceiling.downstream if high is None else min(ceiling.downstream, high),
    )
