"""The bounds that two neighbouring syncs put on the positions between them.

``g(p)`` is the truth: the largest target position that misses no replicated record at or after
source position ``p``. An *extra* is a target offset that copies no new record: a transaction
marker, a record copied twice, another writer's record. For the syncs (u1, d1) and (u2, d2) of an
epoch and u1 < p < u2:

- Always ``d1 + 1 <= g(p) <= d2``: both offsets rise, and MirrorMaker 2 copies in order.
- Without extras between d1 and d2, at most ``u2 - p`` records lie from p to u2, and at most
  ``p - u1`` from u1 to p. So
  ``max(d1 + 1, d2 - (u2 - p)) <= g(p) <= min(d2, d1 + (p - u1))``.

An example: the syncs 100 -> 50 and 200 -> 130. Always ``51 <= g(p) <= 130``. Without extras, the
lower bound is 51 up to p = 121, and rises by 1 with each position after it: g(190) >= 120. The
upper bound rises by 1 with each position up to p = 180, and is 130 after it: g(150) <= 100.

The lower bound holds if the epoch has copied all records from p on that older copies may exist of
(``lows``). The functions take ints, or numpy arrays, number by number.
"""


def lower_bound(before_down: int) -> int:
    """Return the lowest target offset that a record after a sync can have."""
    return before_down + 1


def low_rises_from(low: int, after_up: int, after_down: int) -> int:
    """Return the position after which the lower bound rises, without extras: 121 above."""
    return after_up - (after_down - low)


def high_rises_until(before_up: int, before_down: int, after_down: int) -> int:
    """Return the position up to which the upper bound rises, without extras: 180 above."""
    return after_down - before_down + before_up


def begins_epoch(source_step: int, target_step: int) -> bool:
    """Tell whether an extra surely lies between two syncs: the target grew by more.

    Then MirrorMaker 2 went back between the two, or may have: it may have passed the second sync,
    gone back, and copied that sync's record a second time.
    """
    return target_step > source_step


def lacks_records(source_step: int, target_step: int) -> bool:
    """Tell whether a source offset between two syncs was surely not copied between them."""
    return source_step > target_step
