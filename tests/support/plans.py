"""Failover plans of any partitions, drawn by Hypothesis: for tests of what is told of a plan."""

from random import Random

from hypothesis import strategies as st

from airflow_mm2_offsets.core import (
    Basis,
    FailoverPlan,
    Fallback,
    OnUnmapped,
    PartitionPlan,
    Status,
    Strategy,
    Translation,
)
from airflow_mm2_offsets.core.ids import ClusterIds, PairIds

MOST_OFFSET, MOST_SPAN = 2**60, 50


def _line(random: Random, topic: str, partition: int) -> PartitionPlan:
    """Return a partition of any status; as with strategy linear, it may start above its low."""
    status = random.choice([*Status])
    low, is_refused = random.randrange(MOST_OFFSET), status is Status.REFUSED
    high = low + random.randrange(MOST_SPAN)
    answer = Translation(
        topic=topic,
        partition=partition,
        position=random.randrange(MOST_OFFSET),
        status=status,
        basis=random.choice([*Basis]),
        reason="the record there was found",
        target=None if is_refused else random.randint(low, high),
        low=None if is_refused else low,
        high=None if is_refused or random.random() < 0.2 else high,
    )
    fallback = Fallback(
        kind=OnUnmapped.LATEST, position=random.randrange(MOST_OFFSET), reason="the user's word"
    )
    return PartitionPlan(
        translation=answer,
        target_topic=f"source.{topic}",
        pending=random.randrange(MOST_SPAN),
        fallback=fallback if is_refused and random.random() < 0.5 else None,
    )


@st.composite
def plans(draw: st.DrawFn, most: int = 60) -> FailoverPlan:
    """A plan of 1 to ``most`` partitions of up to three topics."""
    # A draw for each field of each line would take ten times as long.
    random = Random(draw(st.integers(0, 2**32)))  # noqa: S311 - no secret
    return make_plan(random, draw(st.integers(1, most)))


def make_plan(random: Random, partitions: int) -> FailoverPlan:
    """Return a plan of so many partitions of up to three topics."""
    names = [(f"orders-{n % 3}", n // 3) for n in range(partitions)]
    topics = sorted({topic for topic, _ in names})
    return FailoverPlan(
        created_at="2026-11-21T09:10:00+00:00",
        strategy=Strategy.LINEAR,
        syncs_read=2,
        syncs_skipped=0,
        partitions=tuple(_line(random, topic, number) for topic, number in names),
        ids=PairIds(
            source=ClusterIds(cluster_id="one", topic_ids={each: f"s-{each}" for each in topics}),
            target=ClusterIds(
                cluster_id="two", topic_ids={f"source.{each}": f"t-{each}" for each in topics}
            ),
        ),
    )
