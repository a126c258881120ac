"""The epochs of each log: which have caught up, what was copied again, which levels count."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mm2_offsets_logs import PLACE  # type: ignore[import-not-found] # comes by --py-files
from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - as everybody names it

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.window import WindowSpec

MAX_OFFSET: Final = 2**63 - 1
LEVEL: Final = (*PLACE, "level")


def epochs_of(kept: DataFrame) -> DataFrame:
    """Add each sync's epoch and its neighbours there; to the last, what the next begins with."""
    log = Window.partitionBy(*PLACE).orderBy("i")
    around = [
        function(name).over(log).alias(f"{word}_{name}")
        for word, function in (("last", F.lag), ("next", F.lead))
        for name in ("u", "d")
    ]
    u, last_u, next_u = F.col("u"), F.col("last_u"), F.col("next_u")
    return (
        kept.select("*", *around)
        .select(
            *(*PLACE, "cut", "u", "d", "detours", "i"),
            F.coalesce(u <= last_u, F.col("i") == 0).alias("first"),
            (next_u.isNull() | (next_u <= u)).alias("final"),
            F.when(next_u > u, next_u).alias("next_u"),
            F.when(next_u > u, F.col("next_d")).alias("next_d"),
            F.when(u > last_u, last_u).alias("last_u"),
            F.when(u > last_u, F.col("last_d")).alias("last_d"),
            F.when(next_u <= u, F.struct("next_u", "next_d")).alias("rewind"),
        )
        .select("*", F.sum(F.when(F.col("first"), 1)).over(log).alias("epoch"))
    )


def caught_up(epochs: DataFrame) -> DataFrame:
    """Add whether a sync's epoch has copied all that the earlier ones may have copied.

    This is ``_outruns`` of core: an epoch is asked, by a row of its own, about each earlier one
    that may have gone on past its last sync, and counts the records that it has from there on.
    """
    epoch, everything = Window.partitionBy(*PLACE, "epoch"), Window.partitionBy(*PLACE)
    asked = _asked_about(epochs)
    falling = F.desc(F.coalesce("ask.u", "u")), F.asc(F.col("ask").isNotNull())
    sync = F.when(F.col("ask").isNull(), F.struct("u", "last_u", "records", "count"))
    at = F.last(sync, ignorenulls=True).over(epoch.orderBy(*falling))
    past = (
        F.when(F.col("at.u") == F.col("ask.u"), 0)
        .when(F.col("at.last_u").isNull(), 1)
        .otherwise(
            F.greatest(F.col("at.records") - (F.col("ask.u") - F.col("at.last_u")), F.lit(1))
        )
    )
    outruns = F.col("all") - F.col("at.count") + past >= F.col("ask.unsynced")
    by = F.min(F.when(F.col("ask").isNotNull(), F.when(outruns, F.col("epoch")))).over(
        Window.partitionBy(*PLACE, "of")
    )
    older = everything.orderBy("epoch").rangeBetween(Window.unboundedPreceding, -1)
    never = F.lit(MAX_OFFSET)
    return (
        asked.withColumn("at", at)
        .withColumn("of", F.coalesce("ask.of", "epoch"))
        .withColumn("by", by)
        .where("ask is null")
        .withColumn("latest", F.max(F.coalesce("by", never)).over(older))
        .withColumn("caught_up", F.coalesce(F.col("latest") <= F.col("epoch"), F.lit(col=True)))
        .drop("lasts", "records", "count", "all", "ask", "at", "of", "by", "latest")
    )


def _asked_about(epochs: DataFrame) -> DataFrame:
    """Count each epoch's records, and add to its last sync a row for each earlier epoch."""
    epoch, everything = Window.partitionBy(*PLACE, "epoch"), Window.partitionBy(*PLACE)
    u, last_u = F.col("u"), F.col("last_u")
    # None is asked about the first epoch, where the sync that never was is.
    records = F.when(last_u >= 0, F.least(u - last_u, F.col("d") - F.col("last_d")))
    last = F.struct(
        F.col("epoch").alias("of"),
        u.alias("u"),
        (F.col("rewind.next_d") - F.col("d") - 1).alias("unsynced"),
    )
    lasts = F.collect_list(F.when(F.col("rewind").isNotNull(), last)).over(everything)
    itself = F.array(F.lit(None).cast("struct<of:bigint,u:bigint,unsynced:bigint>"))
    earlier = F.filter("lasts", lambda each: each["of"] < F.col("epoch"))
    counted = (
        epochs.withColumn("lasts", lasts)
        .withColumn("records", F.coalesce(records, F.lit(0)))
        .withColumn("count", F.sum("records").over(epoch.orderBy("i")))
        .withColumn("all", F.max("count").over(epoch))
    )
    return counted.select(
        "*",
        F.explode(F.when(F.col("final"), F.concat(itself, earlier)).otherwise(itself)).alias("ask"),
    )


def copied_again(epochs: DataFrame) -> DataFrame:
    """Add, to the first row, from where on each rewind may have copied again what no sync shows.

    This is ``rewind_begin`` of core: as many records as there was room for on the target, counted
    back from the rewind along the syncs of the epoch before it.
    """
    epoch = Window.partitionBy(*PLACE, "epoch")
    newer = epoch.orderBy(F.desc("i")).rowsBetween(Window.unboundedPreceding, -1)
    none, one = F.lit(0), F.lit(1)
    u, next_u, to, gap = F.col("u"), F.col("next_u"), F.col("to.next_u"), F.col("gap")
    room, records = F.col("room"), F.col("records")
    passed = (u >= 0) & (u < to)
    steps = F.least(next_u - u, F.col("next_d") - F.col("d")) - F.greatest(next_u - to, none)
    found = F.when(room <= 0, F.least(next_u, to)).when(records >= room, u + records - room)
    lowest = F.least(F.min(F.when(u >= 0, u)).over(epoch), to)
    left = gap - F.coalesce(F.sum("used").over(epoch), none)
    begin = F.coalesce(F.max(F.when(passed, found)).over(epoch), F.greatest(lowest - left, none))
    rewind = F.struct(begin.alias("begin"), to.alias("end"), F.col("to.next_d").alias("high"))
    rewinds = F.collect_list(F.when(F.col("final"), F.col("rewind")))
    return (
        epochs.withColumn("to", F.max("rewind").over(epoch))
        .withColumn(
            "gap", F.max(F.when(F.col("final"), F.col("to.next_d") - F.col("d") - 1)).over(epoch)
        )
        .withColumn("records", F.when(passed, steps))
        .withColumn("used", F.when(passed, F.greatest(records, one)))
        .withColumn("room", gap - F.coalesce(F.sum("used").over(newer), none))
        .withColumn("rewind", F.when(to.isNotNull(), rewind))
        .withColumn("all", rewinds.over(Window.partitionBy(*PLACE)))
        .withColumn("rewinds", F.when(F.col("i") == 0, F.col("all")))
        .drop("to", "gap", "records", "used", "room", "rewind", "all")
    )


def _newer(*by: str) -> WindowSpec:
    """Return the window of the syncs of newer epochs."""
    newest_first = Window.partitionBy(*by).orderBy(F.desc("epoch"))
    return newest_first.rangeBetween(Window.unboundedPreceding, -1)


def levels_of(epochs: DataFrame) -> DataFrame:
    """Return the syncs that can be the floor of a position, for each level of ``stretches``.

    A level is an epoch and all before it. One that is not the newest counts from position
    ``since`` on, where no newer epoch has come as far as those before it.
    """
    newer, everything = _newer(*PLACE), Window.partitionBy(*PLACE)
    final = F.col("final")
    since = F.max(F.when(final, F.least("u", F.lit(MAX_OFFSET - 1)) + 1))
    known = epochs.select(
        "*", F.max("caught_up").over(newer).alias("enough"), since.over(newer).alias("since")
    )
    level = F.struct(F.col("epoch").alias("level"), F.coalesce("since", F.lit(0)).alias("since"))
    counts = final & ~F.coalesce("enough", F.lit(col=False))
    known = known.withColumn("levels", F.collect_list(F.when(counts, level)).over(everything))
    return (
        known.drop("since")
        .select(
            "*",
            (F.size("levels") > 1).alias("several"),
            F.explode(F.filter("levels", lambda one: one["level"] >= F.col("epoch"))).alias("l"),
        )
        .select("*", "l.*", (F.col("l.since") == 0).alias("newest"))
        .withColumn("begins", F.min(F.when(F.col("first"), F.col("u"))).over(_newer(*LEVEL)))
        .where("begins is null or u < begins")
    )
