"""The segments of any log: which bounds hold from which position on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mm2_offsets_epochs import (  # type: ignore[import-not-found] # comes by --py-files
    LEVEL,
    MAX_OFFSET,
    caught_up,
    copied_again,
    epochs_of,
    levels_of,
)
from mm2_offsets_logs import (  # type: ignore[import-not-found] # comes by --py-files
    PLACE,
    kept_syncs,
)
from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - as everybody names it

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def stretches_of(logs: DataFrame, extras: str) -> DataFrame:
    """Return what is known of each stretch between neighbouring syncs: a row for each.

    The rows of a topic and partition share all positions out between them.

    Args:
        logs: As of ``logs_of``.
        extras: See ``segments``.

    Returns:
        ``topic``, ``partition``; ``begin`` and ``end``, the first and the last position; for
        ``begin`` itself ``at_low`` and ``at_high`` where it is a sync; for each other position p
        ``low + max(0, p - low_knee)`` and ``high - max(0, high_knee - p)`` bound the answer: a
        null ``low`` is a refusal, a null ``high`` means the target's end; ``basis``.
    """
    epochs = copied_again(caught_up(epochs_of(kept_syncs(logs))))
    return _merged(_joined(_swept(_bounded(levels_of(epochs), extras))))


def _bounded(levels: DataFrame, extras: str) -> DataFrame:
    """Return a row for each sync and each stretch behind one: ``bounds_of`` of core.

    The columns ``low`` and ``high`` hold from their knee on, and up to it: past it, one record
    on the source is one on the target.
    """
    rising = Window.partitionBy(*LEVEL).orderBy("u")
    u, d, next_u, next_d = (F.col(name) for name in ("u", "d", "next_u", "next_d"))
    levels = levels.select(
        "*", F.lead("u").over(rising).alias("above_u"), F.lead("d").over(rising).alias("above_d")
    )
    measured = F.lit(col=False)
    if extras == "none":
        # More on the target than on the source proves extras; before the first sync, nothing can.
        measured = next_u.isNotNull() & ((u < 0) | (next_d - d <= next_u - u))
    low_knee = F.when(measured, next_u - (next_d - d - 1)).otherwise(MAX_OFFSET)
    # Where the ceiling was copied again, only the newer copy bounds the truth from above.
    straight = measured & (u >= 0) & (F.col("above_d") == next_d)
    high_knee = F.when(straight, next_d - d + u).otherwise(0)
    basis = (
        F.when(u < 0, "before-first-sync")
        .when(next_u.isNull(), "after-last-sync")
        .otherwise("between-syncs")
    )
    top = F.when(next_u.isNotNull(), F.col("above_d"))
    end = F.coalesce(F.col("above_u") - 1, F.lit(MAX_OFFSET))
    here = _row(u, u, d, F.lit(MAX_OFFSET), d, F.lit(0), F.lit("sync"))
    low = F.least(d, F.lit(MAX_OFFSET - 1)) + 1
    after = _row(F.least(u, end) + 1, end, low, low_knee, top, high_knee, basis)
    rows = levels.select(
        *(*LEVEL, "cut", "since", "several", "newest", "detours", "rewinds", d.alias("floor")),
        F.explode(F.array(F.when(u >= 0, here), F.when((u < end) | (u < 0), after))).alias("row"),
    )
    # The first row of all brings the detours along, also where it has no position.
    brings = F.col("newest") & (F.col("floor") < 0)
    return rows.where((F.col("row.end") >= F.col("since")) | brings).select("*", "row.*")


def _row(*values: Column) -> Column:
    names = ("begin", "end", "low", "low_knee", "high", "high_knee", "basis")
    typed = [each.cast("bigint") for each in values[:-1]] + [values[-1]]
    return F.struct(*(each.alias(name) for name, each in zip(names, typed, strict=True)))


def _swept(rows: DataFrame) -> DataFrame:
    """Return where, along the positions, which bound begins to hold.

    The lowest bound is that of the level whose floor is the oldest, for the target offsets of an
    epoch lie all below those of a newer one. So in the order of the floors each row holds from
    where all before it have ended.
    """
    order = (F.asc("floor"), F.asc("is_after"), F.desc("level"), F.asc("end"))
    before = Window.partitionBy(*PLACE).orderBy(*order)
    before = before.rowsBetween(Window.unboundedPreceding, -1)
    begin, since = F.col("begin"), F.col("since")
    low, knee = F.col("low"), F.col("low_knee")
    # Before ``since``, an older level answers what it does there.
    waits = F.struct(
        (since - 1).alias("end"),
        (low + F.greatest(since - knee, F.lit(0))).alias("low"),
        F.lit(MAX_OFFSET).alias("low_knee"),
    )
    own = F.struct("end", "low", "low_knee")
    parts = F.array(F.when((since > 0) & (begin <= since), waits), own)
    fields = ("cut", "several", "newest", "level", "since", "floor", "detours", "rewinds", "begin")
    after = (low > F.col("floor")).alias("is_after")
    rows = rows.select(
        *(*PLACE, *fields, "high", "high_knee", "basis", after, F.explode(parts).alias("part"))
    ).where("part is not null")
    ended = F.coalesce(F.max("end").over(before), F.lit(-1))
    return (
        rows.select("*", "part.*")
        .withColumn("ended", ended)
        .select("*", F.explode(_events()).alias("event"))
        .where("event is not null")
        .select("*", "event.*")
    )


def _events() -> Column:
    """Return where a row begins to bound from above, and from below, and where detours begin."""

    def event(at: Column, kind: str, **more: Column) -> Column:
        fields = {"at": at, "kind": F.lit(kind), "detour": F.lit(None).cast("bigint"), **more}
        return F.struct(*(each.alias(name) for name, each in fields.items()))

    begin, end, ended = F.col("begin"), F.col("end"), F.col("ended")
    bounds = F.array(
        F.when(F.col("newest") & (begin <= end), event(begin, "top")),
        F.when(end > ended, event(ended + 1, "bottom")),
    )
    detours = F.transform("detours", lambda one: event(one["u"] + 1, "detour", detour=one["d"]))
    begins = F.transform("rewinds", lambda one: event(one["begin"], "rewind"))
    ends = F.transform("rewinds", lambda one: event(one["end"], "rewind"))
    none = F.array().cast("array<struct<at:bigint,kind:string,detour:bigint>>")
    return F.concat(bounds, detours, F.coalesce(begins, none), F.coalesce(ends, none))


def _joined(events: DataFrame) -> DataFrame:
    """Return the segments: what bounds from above and from below, and until where."""
    rising = Window.partitionBy(*PLACE).orderBy("at")
    after = F.lead("at").over(rising)

    def latest(kind: str, *names: str) -> Column:
        found = F.when(F.col("kind") == kind, F.struct(*names))
        return F.last(found, ignorenulls=True).over(rising)

    joined = events.select(
        *(*PLACE, "cut", "several", "at", after.alias("after")),
        latest("top", "high", "high_knee", "basis").alias("top"),
        latest("bottom", "floor", "low", "low_knee").alias("bottom"),
        F.min("detour").over(rising).alias("detour"),
        F.first("rewinds", ignorenulls=True).over(Window.partitionBy(*PLACE)).alias("rewinds"),
    ).where("after is null or after > at")
    return _bounding(joined)


def _bounding(joined: DataFrame) -> DataFrame:
    """Return the bounds of what bounds a segment, unless it is refused."""
    covering = F.filter("rewinds", lambda one: F.col("at").between(one["begin"], one["end"] - 1))
    cover = F.array_max(F.transform(covering, lambda one: one["high"]))
    top = F.col("top")
    covered = F.coalesce(cover >= top["high"], F.lit(col=False))
    detoured = F.coalesce(F.col("detour") <= F.col("bottom.floor"), F.lit(col=False))
    again = F.col("several") | F.col("detour").isNotNull()
    unknown = F.col("top.basis") == "before-first-sync"
    refused = F.col("cut") & (unknown | (again & (F.col("bottom.floor") < 0)))
    basis = (
        F.when(F.col("cut") & unknown, "history-cut")
        .when(again, "copying-again")
        .otherwise(F.col("top.basis"))
    )
    low = F.when(detoured, F.col("detour") + 1).otherwise(F.col("bottom.low"))
    low_knee = F.when(detoured, F.lit(MAX_OFFSET)).otherwise(F.col("bottom.low_knee"))
    return joined.select(
        *PLACE,
        F.col("at").alias("begin"),
        F.coalesce(F.col("after") - 1, F.lit(MAX_OFFSET)).alias("end"),
        F.when(~refused, low).alias("low"),
        low_knee.alias("low_knee"),
        F.when(~refused, F.when(covered, cover).otherwise(top["high"])).alias("high"),
        F.when(covered, F.lit(0)).otherwise(top["high_knee"]).alias("high_knee"),
        basis.alias("basis"),
        ((F.col("top.basis") == "sync") & ~refused).alias("is_sync"),
        again.alias("again"),
    )


def _merged(rows: DataFrame) -> DataFrame:
    """Return one row for a sync and the stretch behind it: that is half as many."""
    rising = Window.partitionBy(*PLACE).orderBy("begin")
    sync = F.struct(
        *("begin", "is_sync", "again"),
        _low(F.col("begin")).alias("low"),
        _high(F.col("begin")).alias("high"),
    )
    rows = rows.withColumn("sync", sync)
    one, other = F.lag("sync").over(rising), F.struct("is_sync", "again")
    joins = one["is_sync"] & ~other["is_sync"] & (one["again"] == other["again"])
    rows = rows.withColumn("before", F.when(joins, one))
    gone = F.coalesce(F.lead(F.col("before").isNotNull()).over(rising), F.lit(col=False))
    return (
        rows.withColumn("gone", gone)
        .where("not gone")
        .select(
            *PLACE,
            F.coalesce("before.begin", "begin").alias("begin"),
            "end",
            F.col("before.low").alias("at_low"),
            F.col("before.high").alias("at_high"),
            *("low", "low_knee", "high", "high_knee", "basis"),
        )
    )


def _low(position: Column) -> Column:
    past = position - F.col("low_knee")
    return F.col("low") + F.greatest(past, F.lit(0))


def _high(position: Column) -> Column:
    short = F.col("high_knee") - position
    return F.col("high") - F.greatest(short, F.lit(0))
