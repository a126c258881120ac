"""Translates columns of source offsets to target offsets, inside a Spark job.

Give this one file to ``spark-submit --py-files``; it needs nothing but PySpark. All that it adds
to a plan are native expressions and joins: no row passes through Python, and both batch and
streaming DataFrames can be translated::

    from mm2_offsets_sql import decode_syncs, segments, translate

    syncs = decode_syncs(spark.read.format("kafka")...load())
    known = segments(syncs).cache()
    table = translate(table, known, topic="topic", partition="partition", offset="offset")

Rules and answers are those of ``SyncIndex.translate`` without further evidence, in the package
that this file comes from; "core" below is that package's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - as everybody names it

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.window import WindowSpec

MAX_OFFSET: Final = 2**63 - 1
EXTRAS: Final = ("possible", "none")
COLUMNS: Final = ("target", "low", "high", "status", "basis")
"""What ``translate`` adds."""

_PLACE = ("topic", "partition")
_LEVEL = (*_PLACE, "level")
_SEGMENT = (
    *("begin", "end", "at_low", "at_high", "low", "low_knee", "high", "high_knee", "basis"),
)
_WHOLE = ("tinyint", "smallint", "int", "bigint")
_TEXT = ("string",)
_FRAME = 6
"""The bytes of a key beside the topic's name: its length, and the partition."""
_VALUE = 16
_CELL_SEGMENTS = 32
"""So many segments share a cell, about: the width of its bins follows those alone."""


# The offset-syncs topic.


def decode_syncs(records: DataFrame) -> DataFrame:
    """Return the offset syncs of records of the offset-syncs topic, one row for each record.

    A record that is no offset sync never fails the job: its ``problem`` says what is wrong, and
    everything else about it but its ``offset`` is null. ``segments`` passes it over.

    Args:
        records: As read by Spark's Kafka source: ``key``, ``value`` and ``offset`` count.

    Returns:
        ``topic``, ``partition``, ``upstream``, ``downstream``, ``offset`` (that of the record in
        the offset-syncs topic) and ``problem`` (null where there is none).
    """
    key, value = F.col("key"), F.col("value")
    name = key.substr(F.lit(3), F.length(key) - _FRAME)
    partition = _number(key.substr(F.length(key) - 3, F.lit(4)))
    upstream, downstream = (_number(value.substr(F.lit(at), F.lit(8))) for at in (1, 9))
    named = F.length(key) - _FRAME == _number(key.substr(F.lit(1), F.lit(2)))
    problem = (
        F.when(key.isNull(), "the key is absent")
        .when(
            ~F.coalesce(named & (F.length(key) > _FRAME), F.lit(col=False)),
            "the key's length is wrong",
        )
        .when(F.encode(name.cast("string"), "UTF-8") != name, "the topic's name is not UTF-8")
        .when(partition.isNull(), "the partition is negative")
        .when(
            ~F.coalesce(F.length(value) == _VALUE, F.lit(col=False)), "the value's length is wrong"
        )
        .when(upstream.isNull() | downstream.isNull(), "an offset is negative")
    )
    decoded = {
        "topic": name.cast("string"),
        "partition": partition.cast("int"),
        "upstream": upstream,
        "downstream": downstream,
    }
    return records.select("key", "value", "offset", problem.alias("problem")).select(
        *(F.when(F.col("problem").isNull(), each).alias(name) for name, each in decoded.items()),
        "offset",
        "problem",
    )


def _number(digits: Column) -> Column:
    """Return the number that big-endian bytes stand for; null for a negative one, and for none."""
    text = F.hex(digits)
    return F.when(F.substring(text, 1, 1) < "8", F.conv(text, 16, 10).cast("bigint"))


# What is known between the syncs.


def segments(syncs: DataFrame, *, extras: str = "possible") -> DataFrame:
    """Return what is known of each stretch between neighbouring syncs: a row for each.

    The rows of a topic and partition share all positions out between them. Keep them (``cache()``,
    or a table) where they are used more than once, as ``translate`` does.

    Args:
        syncs: ``topic``, ``partition``, ``upstream``, ``downstream`` and ``offset``, their order.
            Rows with a null or a negative number are passed over.
        extras: ``none`` where it is known that the target holds no offset that copies no new
            record: transaction markers, records copied twice, records of other writers.

    Returns:
        ``topic``, ``partition``; ``begin`` and ``end``, the first and the last position; for
        ``begin`` itself ``at_low`` and ``at_high`` where it is a sync; for each other position p
        ``low + max(0, p - low_knee)`` and ``high - max(0, high_knee - p)`` bound the answer: a
        null ``low`` is a refusal, a null ``high`` means the target's end; ``basis``.

    Raises:
        ValueError: ``extras`` is unknown.
    """
    if extras not in EXTRAS:
        raise ValueError(f"extras {extras!r} is unknown; it must be one of {', '.join(EXTRAS)}")
    epochs = _again(_caught_up(_epochs(_kept(syncs))))
    return _joined(_swept(_bounded(_levels(epochs), extras)))


def _kept(syncs: DataFrame) -> DataFrame:
    """Return the syncs that count, in log order, behind one of (-1, -1) that never was.

    What lies before the first is bounded by the target's beginning, as if that one had been.
    """
    numbers = ("partition", "upstream", "downstream", "offset")
    sound = syncs.where(" and ".join(f"{name} >= 0" for name in numbers) + " and topic is not null")
    sync = F.struct("offset", F.col("upstream").alias("u"), F.col("downstream").alias("d"))
    logs = sound.groupBy(*_PLACE).agg(F.sort_array(F.collect_list(sync)).alias("log"))
    logs = logs.withColumn("state", F.aggregate("log", _no_syncs(), _follow))
    left = F.array_except(
        F.sequence(F.col("state.start"), F.col("state.size") - 1), F.col("state.dropped")
    )
    logs = logs.select(*_PLACE, "log", "state", left.alias("left"))
    real = F.transform(
        "left",
        lambda at: F.struct(
            F.get("log", at)["u"].alias("u"), F.get("log", at)["d"].alias("d"), _no_detours()
        ),
    )
    virtual = F.struct(
        F.lit(-1).cast("bigint").alias("u"), F.lit(-1).cast("bigint").alias("d"), "state.detours"
    )
    return logs.select(
        *_PLACE, F.col("state.cut"), F.posexplode(F.concat(F.array(virtual), real)).alias("i", "s")
    ).select(*_PLACE, "cut", "i", "s.*")


def _no_detours() -> Column:
    return F.array().cast("array<struct<u:bigint,d:bigint,grown:bigint>>").alias("detours")


def _no_syncs() -> Column:
    unknown = F.lit(None).cast("bigint")
    return F.struct(
        F.lit(0).alias("size"),
        F.lit(0).alias("start"),  # where the log starts: the topic was made again there
        F.lit(col=False).alias("cut"),
        *(unknown.alias(name) for name in ("before_u", "before_d", "u", "d")),
        F.array().cast("array<int>").alias("dropped"),
        _no_detours(),
    )


def _follow(state: Column, sync: Column) -> Column:
    """Return what is known after one more sync: ``PartitionSyncs._append`` of core."""
    u, d = sync["u"], sync["d"]
    same = (u == state["u"]) & (d == state["d"])
    between = (state["before_u"] < u) & (u < state["u"]) & (state["before_d"] < d)
    grown, step = d - state["d"] - 1, u - state["u"]
    open_ = F.filter(state["detours"], lambda each: each["grown"] > u - each["u"])
    detour = F.struct(state["u"].alias("u"), state["d"].alias("d"), grown.alias("grown"))
    detours = F.concat(open_, F.when(grown > step, F.array(detour)).otherwise(_no_detours()))

    def after(**changed: Column) -> Column:
        names = ("start", "cut", "before_u", "before_d", "u", "d", "dropped", "detours")
        kept = ((state["size"] + 1).alias("size"), *(changed.get(n, state[n]) for n in names))
        return F.struct(*(each.alias(n) for n, each in zip(("size", *names), kept, strict=True)))

    last = {"before_u": state["u"], "before_d": state["d"], "u": u, "d": d}
    return (
        F.when(state["u"].isNull(), after(u=u, d=d))
        .when((u > state["u"]) & (d > state["d"]), after(**last, detours=detours))
        .when(
            same | (between & (d < state["d"])),
            after(dropped=F.concat(state["dropped"], F.array(state["size"]))),
        )
        .when(d > state["d"], after(**last))
        .otherwise(
            after(
                start=state["size"],
                cut=F.lit(col=True),
                before_u=F.lit(None).cast("bigint"),
                before_d=F.lit(None).cast("bigint"),
                u=u,
                d=d,
                dropped=F.array().cast("array<int>"),
                detours=_no_detours(),
            )
        )
    )


def _epochs(kept: DataFrame) -> DataFrame:
    """Add each sync's epoch and its neighbours there; to the last, what the next begins with."""
    log = Window.partitionBy(*_PLACE).orderBy("i")
    around = [
        function(name).over(log).alias(f"{word}_{name}")
        for word, function in (("last", F.lag), ("next", F.lead))
        for name in ("u", "d")
    ]
    u, last_u, next_u = F.col("u"), F.col("last_u"), F.col("next_u")
    return (
        kept.select("*", *around)
        .select(
            *(*_PLACE, "cut", "u", "d", "detours", "i"),
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


def _caught_up(epochs: DataFrame) -> DataFrame:
    """Add whether a sync's epoch has copied all that the earlier ones may have copied.

    This is ``_outruns`` of core: an epoch is asked, by a row of its own, about each earlier one
    that may have gone on past its last sync, and counts the records that it has from there on.
    """
    epoch, everything = Window.partitionBy(*_PLACE, "epoch"), Window.partitionBy(*_PLACE)
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
    asked = counted.select(
        "*",
        F.explode(F.when(F.col("final"), F.concat(itself, earlier)).otherwise(itself)).alias("ask"),
    )
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
        Window.partitionBy(*_PLACE, "of")
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


def _again(epochs: DataFrame) -> DataFrame:
    """Add, to the first row, from where on each rewind may have copied again what no sync shows.

    This is ``rewind_begin`` of core: as many records as there was room for on the target, counted
    back from the rewind along the syncs of the epoch before it.
    """
    epoch = Window.partitionBy(*_PLACE, "epoch")
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
        .withColumn("all", rewinds.over(Window.partitionBy(*_PLACE)))
        .withColumn("rewinds", F.when(F.col("i") == 0, F.col("all")))
        .drop("to", "gap", "records", "used", "room", "rewind", "all")
    )


def _newer(*by: str) -> WindowSpec:
    """Return the window of the syncs of newer epochs."""
    newest_first = Window.partitionBy(*by).orderBy(F.desc("epoch"))
    return newest_first.rangeBetween(Window.unboundedPreceding, -1)


def _levels(epochs: DataFrame) -> DataFrame:
    """Return the syncs that can be the floor of a position, for each level of ``stretches``.

    A level is an epoch and all before it. One that is not the newest counts from position
    ``since`` on, where no newer epoch has come as far as those before it.
    """
    newer, everything = _newer(*_PLACE), Window.partitionBy(*_PLACE)
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
        .withColumn("begins", F.min(F.when(F.col("first"), F.col("u"))).over(_newer(*_LEVEL)))
        .where("begins is null or u < begins")
    )


def _bounded(levels: DataFrame, extras: str) -> DataFrame:
    """Return a row for each sync and each stretch behind one: ``bounds_of`` of core.

    The columns ``low`` and ``high`` hold from their knee on, and up to it: past it, one record
    on the source is one on the target.
    """
    rising = Window.partitionBy(*_LEVEL).orderBy("u")
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
        *(*_LEVEL, "cut", "since", "several", "newest", "detours", "rewinds", d.alias("floor")),
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
    before = Window.partitionBy(*_PLACE).orderBy(*order)
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
        *(*_PLACE, *fields, "high", "high_knee", "basis", after, F.explode(parts).alias("part"))
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
    rising = Window.partitionBy(*_PLACE).orderBy("at")
    after = F.lead("at").over(rising)

    def latest(kind: str, *names: str) -> Column:
        found = F.when(F.col("kind") == kind, F.struct(*names))
        return F.last(found, ignorenulls=True).over(rising)

    joined = events.select(
        *(*_PLACE, "cut", "several", "at", after.alias("after")),
        latest("top", "high", "high_knee", "basis").alias("top"),
        latest("bottom", "floor", "low", "low_knee").alias("bottom"),
        F.min("detour").over(rising).alias("detour"),
        F.first("rewinds", ignorenulls=True).over(Window.partitionBy(*_PLACE)).alias("rewinds"),
    ).where("after is null or after > at")
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
    return _merged(
        joined.select(
            *_PLACE,
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
    )


def _merged(rows: DataFrame) -> DataFrame:
    """Return one row for a sync and the stretch behind it: that is half as many."""
    rising = Window.partitionBy(*_PLACE).orderBy("begin")
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
            *_PLACE,
            F.coalesce("before.begin", "begin").alias("begin"),
            "end",
            F.col("before.low").alias("at_low"),
            F.col("before.high").alias("at_high"),
            *("low", "low_knee", "high", "high_knee", "basis"),
        )
    )


def _low(position: Column, prefix: str = "") -> Column:
    past = position - F.col(f"{prefix}low_knee")
    return F.col(f"{prefix}low") + F.greatest(past, F.lit(0))


def _high(position: Column, prefix: str = "") -> Column:
    short = F.col(f"{prefix}high_knee") - position
    return F.col(f"{prefix}high") - F.greatest(short, F.lit(0))


# The lookup of a position's segment.


def translate(
    rows: DataFrame,
    known: DataFrame,
    *,
    topic: Column | str = "topic",
    partition: Column | str = "partition",
    offset: Column | str = "offset",
    prefix: str = "",
    broadcast: bool = True,
) -> DataFrame:
    """Return ``rows`` with the target's offsets: each row once, whatever it holds.

    Args:
        rows: A batch or streaming DataFrame, as of a table that keeps where each of its rows came
            from in Kafka.
        known: What ``segments`` returned, kept; it is read three times.
        topic: The column of the topic's name on the source.
        partition: The column of the partition, a whole number.
        offset: The column of the position on the source, a whole number.
        prefix: What the names of the new columns begin with.
        broadcast: Whether each executor gets all segments, about 150 bytes for each sync. Without,
            the rows are shuffled, by pieces of the partitions, so that a large one is no skew.

    Returns:
        ``rows`` with ``target``, the offset to read from so that nothing is lost, ``low`` and
        ``high``, which bound the truth (null where it is the target's end), ``status`` (exact,
        bounded or refused) and ``basis``, what the answer rests on or why it was refused: that of
        core, or ``not-a-position`` where the offset is null or negative.

    Raises:
        ValueError: A new column's name is taken, or a column is of another type.
    """
    names = [f"{prefix}{name}" for name in COLUMNS]
    asked = _asked(rows, {"topic": topic, "partition": partition, "position": offset}, names)
    found = _looked_up(asked, known, broadcast=broadcast)
    at_low, begin, basis = (F.col(f"_mm2_{name}") for name in ("at_low", "begin", "basis"))
    at_sync = at_low.isNotNull() & (_position() == begin)
    low = F.when(at_sync, at_low).otherwise(_low(_position(), "_mm2_"))
    high = F.when(at_sync, F.col("_mm2_at_high")).otherwise(_high(_position(), "_mm2_"))
    status = F.when(low.isNull(), "refused").when(low == high, "exact").otherwise("bounded")
    basis = (
        F.when(_position().isNull(), "not-a-position")
        .when(begin.isNull(), "never-replicated")
        .when(at_sync & (basis != "copying-again"), "sync")
        .otherwise(basis)
    )
    added = dict(zip(names, (low, low, high, status, basis), strict=True))
    inner = [name for name in found.columns if name.startswith("_mm2_")]
    return found.withColumns(added).drop(*inner)


def _asked(rows: DataFrame, given: dict[str, Column | str], names: list[str]) -> DataFrame:
    """Return ``rows`` with what is asked about each, after a look at names and types."""
    taken = {name.lower() for name in rows.columns} & {name.lower() for name in names}
    if taken:
        raise ValueError(f"there is a column {min(taken)} already; give another prefix")
    asked = {name: F.col(each) if isinstance(each, str) else each for name, each in given.items()}
    types = dict(rows.select(*(each.alias(name) for name, each in asked.items())).dtypes)
    for name, kind in types.items():
        wanted = _TEXT if name == "topic" else _WHOLE
        if kind not in wanted:
            raise ValueError(f"the {name}'s column is {kind}; it must be {' or '.join(wanted)}")
    offset = asked["position"].cast("bigint")
    return rows.withColumns(
        {
            "_mm2_topic": asked["topic"],
            "_mm2_partition": asked["partition"].cast("bigint"),
            "_mm2_position": F.when(offset >= 0, offset),
        }
    )


def _looked_up(asked: DataFrame, known: DataFrame, *, broadcast: bool) -> DataFrame:
    """Add the segment of each position, as ``_mm2_begin`` and so on, by three equal joins.

    The line of a partition is cut into cells, and each cell into bins of about one segment; so a
    position meets no more than a few, however unlike the segments are in length.
    """
    places, cells, bins = (_inner(each) for each in _binned(known))
    placed = asked.join(F.broadcast(places), ["_mm2_topic", "_mm2_partition"], "left")
    placed = placed.withColumn("_mm2_along", _along(_position(), "_mm2_"))
    placed = placed.withColumn("_mm2_cell", F.expr("int(shiftright(_mm2_along, _mm2_shift))"))
    celled = placed.join(F.broadcast(cells), ["_mm2_place", "_mm2_cell"], "left")
    rest = "_mm2_along - shiftleft(bigint(_mm2_cell), _mm2_shift)"
    celled = celled.withColumn("_mm2_bin", F.expr(f"int(shiftright({rest}, _mm2_bin_shift))"))
    return celled.join(
        F.broadcast(bins) if broadcast else bins,
        (F.col("_mm2_bin") == F.col("_mm2_of_bin"))
        & (F.col("_mm2_cell_id") == F.col("_mm2_of_cell"))
        & _position().between(F.col("_mm2_begin"), F.col("_mm2_end")),
        "left",
    )


def _binned(known: DataFrame) -> tuple[DataFrame, DataFrame, DataFrame]:
    """Return the partitions, their cells, and the segments in each bin of those."""
    ends = known.groupBy(*_PLACE).agg(
        F.min("end").alias("head"), F.max("begin").alias("tail"), F.count("*").alias("segments")
    )
    width = F.greatest(F.col("tail") - F.col("head"), F.lit(0).cast("bigint"))
    places = ends.select(
        *(*_PLACE, "head", width.alias("width")),
        _shift(width, F.col("segments") / _CELL_SEGMENTS).alias("shift"),
        F.row_number().over(Window.orderBy(*_PLACE)).alias("place"),
    )
    on_line = known.join(F.broadcast(places), [*_PLACE]).select(
        *("place", "shift", *_SEGMENT),
        _along(F.col("begin")).alias("first"),
        _along(F.col("end")).alias("last"),
    )
    in_cells = _cut(on_line, "shift", "cell").select(
        *("place", "cell", *_SEGMENT),
        F.expr("greatest(first - shiftleft(cell, shift), 0L)").alias("first"),
        F.expr("least(last - shiftleft(cell, shift), shiftleft(1L, shift) - 1)").alias("last"),
    )
    cells = (
        in_cells.groupBy("place", "cell")
        .agg(F.max("last").alias("width"), F.count("*").alias("segments"))
        .select(
            *("place", "cell"),
            _shift(F.col("width"), F.col("segments")).alias("bin_shift"),
            F.row_number().over(Window.orderBy("place", "cell")).alias("cell_id"),
        )
    )
    bins = _cut(in_cells.join(F.broadcast(cells), ["place", "cell"]), "bin_shift", "of_bin")
    return (
        places.select(*_PLACE, "place", "head", "width", "shift"),
        cells.withColumn("cell", F.col("cell").cast("int")),
        # Two int columns are one bigint to Spark's hash joins.
        bins.select(F.col("cell_id").alias("of_cell"), F.expr("int(of_bin) of_bin"), *_SEGMENT),
    )


def _along(position: Column, prefix: str = "") -> Column:
    """Return how far along its partition's line a position is; both ends are one place each."""
    head, width = F.col(f"{prefix}head"), F.col(f"{prefix}width")
    return F.least(F.greatest(position, head) - head, width)


def _shift(width: Column, parts: Column) -> Column:
    """Return by how many bits to shift numbers up to ``width`` to leave about ``parts``."""
    each = (width.cast("double") + 1) / F.greatest(parts.cast("double"), F.lit(1.0))
    return F.least(F.greatest(F.ceil(F.log2(each)), F.lit(0)), F.lit(62)).cast("int")


def _cut(rows: DataFrame, shift: str, name: str) -> DataFrame:
    """Return a row for each part, ``shift`` bits wide, of the line that a row lies in."""
    parts = f"explode(sequence(shiftright(first, {shift}), shiftright(last, {shift})))"
    return rows.select("*", F.expr(parts).alias(name))


def _inner(frame: DataFrame) -> DataFrame:
    return frame.select(*(F.col(name).alias(f"_mm2_{name}") for name in frame.columns))


def _position() -> Column:
    return F.col("_mm2_position")
