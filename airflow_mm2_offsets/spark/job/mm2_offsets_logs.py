"""The syncs of each topic and partition in log order, and which of them count."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - as everybody names it

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

PLACE: Final = ("topic", "partition")


def logs_of(syncs: DataFrame) -> DataFrame:
    """Return the ``log`` of each topic and partition: its sound syncs (offset, u, d), in order."""
    numbers = ("partition", "upstream", "downstream", "offset")
    sound = syncs.where(" and ".join(f"{name} >= 0" for name in numbers) + " and topic is not null")
    known = {"offset": "offset", "u": "upstream", "d": "downstream"}
    sync = F.struct(
        # That none is null is told to Spark, which else looks at each again and again.
        *(F.coalesce(F.col(name).cast("bigint"), F.lit(0)).alias(to) for to, name in known.items())
    )
    return sound.groupBy(*PLACE).agg(F.sort_array(F.collect_list(sync)).alias("log"))


def only_rises(log: str) -> Column:
    """Return whether each sync follows the one before without a rewind, a detour or another doubt.

    Nearly all logs are like that. Both offsets rise, and the target's by no more than one beyond
    the source's: see ``PartitionSyncs`` of core.
    """
    steps = F.size(log) - 1
    return F.forall(
        F.zip_with(
            F.slice(log, F.lit(1), steps),
            F.slice(log, F.lit(2), steps),
            lambda one, other: (
                (other["u"] > one["u"])
                & (other["d"] > one["d"])
                & (other["d"] - one["d"] - 1 <= other["u"] - one["u"])
            ),
        ),
        lambda rises: rises,
    )


def kept_syncs(logs: DataFrame) -> DataFrame:
    """Return the syncs that count, in log order, behind one of (-1, -1) that never was.

    What lies before the first is bounded by the target's beginning, as if that one had been.
    """
    logs = logs.withColumn("state", F.aggregate("log", _no_syncs(), _follow))
    left = F.array_except(
        F.sequence(F.col("state.start"), F.col("state.size") - 1), F.col("state.dropped")
    )
    logs = logs.select(*PLACE, "log", "state", left.alias("left"))
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
        *PLACE, F.col("state.cut"), F.posexplode(F.concat(F.array(virtual), real)).alias("i", "s")
    ).select(*PLACE, "cut", "i", "s.*")


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
