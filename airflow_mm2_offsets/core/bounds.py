"""The bounds that two neighbouring syncs put on the positions between them.

``g(p)`` is the truth: the largest target position that misses no replicated record at or after
source position ``p``. With syncs (u1, d1) and (u2, d2) of an epoch around ``p``, u1 < p < u2:

- always ``d1 + 1 <= g <= d2``, for both offsets rise, and MirrorMaker 2 copies in order;
- where no target offset between d1 and d2 is an extra one, at most ``u2 - p`` records lie from p
  to u2 and at most ``p - u1`` from u1 to p, so
  ``max(d1 + 1, d2 - (u2 - p)) <= g <= min(d2, d1 + (p - u1))``.

The lower bound holds if the epoch has copied all records from p on that older copies may exist of
(``coverage``). The functions hold for ints and, number by number, for numpy's arrays.
"""


def lower_bound(before_down: int) -> int:
    """Return the lowest target offset that a record after a sync's can have."""
    return before_down + 1


def lower_knee(low: int, after_up: int, after_down: int) -> int:
    """Return from which position on the lower bound rises with it, where nothing is extra."""
    return after_up - (after_down - low)


def upper_knee(before_up: int, before_down: int, after_down: int) -> int:
    """Return up to which position the upper bound rises with it, where nothing is extra."""
    return after_down - before_down + before_up


def proves_extras(source_step: int, target_step: int) -> bool:
    """Tell whether some target offset between two syncs copies no new record."""
    return target_step > source_step


def is_rewind(source_step: int, target_step: int) -> bool:
    """Tell whether MirrorMaker 2 copies again from one sync to the next."""
    return (source_step <= 0) & (target_step > 0)


def may_hide_rewind(source_step: int, target_step: int) -> bool:
    """Tell whether MirrorMaker 2 may have come further than the next sync, and copied again.

    To copy one record beyond that sync, and the sync's own record twice, takes two offsets more.
    """
    return (source_step > 0) & (target_step - 1 > source_step)


def lacks_records(source_step: int, target_step: int) -> bool:
    """Tell whether a source offset between two syncs was surely not copied between them."""
    return source_step > target_step


def may_lack_records(source_step: int, target_step: int) -> bool:
    """Tell whether one may not have been: what the target has gained more can hide that."""
    return source_step != target_step
