"""Who else uses the source: consumer groups and producers of the job's topics."""

from collections.abc import Iterator

from airflow_mm2_offsets.core.readiness import ReadinessCheck
from airflow_mm2_offsets.core.readiness_names import CheckName
from airflow_mm2_offsets.readiness.answers import (
    GIVE_CHECKPOINT,
    MAX_LISTED,
    NO_TOPIC,
    ok,
    unknown,
    warning,
)
from airflow_mm2_offsets.readiness.pair_request import PairRequest

_SPARK_GROUP = "spark-kafka-"
"""How Spark names the groups of its queries (``KafkaSourceProvider``): the job's own is one."""


def check_groups(request: PairRequest) -> Iterator[ReadinessCheck]:
    """Yield the consumer groups with members on the job's topics."""
    topics = request.topics()
    if not topics:
        yield unknown(CheckName.ACTIVE_GROUPS, NO_TOPIC, GIVE_CHECKPOINT)
        return
    readers = {
        group: read
        for group, read in request.pair.source.readers(topics).items()
        if not group.startswith(_SPARK_GROUP)
    }
    for group, read in sorted(readers.items())[:MAX_LISTED]:
        yield warning(
            CheckName.ACTIVE_GROUPS,
            f"consumer group {group} reads {', '.join(sorted(read))} on the source",
            "move it too, or leave it on the source knowingly",
            subject=group,
        )
    if (rest := len(readers) - MAX_LISTED) > 0:
        yield warning(CheckName.ACTIVE_GROUPS, f"{rest} more consumer groups")
    if not readers:
        yield ok(CheckName.ACTIVE_GROUPS, "no other consumer group reads the job's topics")


def check_producers(request: PairRequest) -> ReadinessCheck:
    """Tell by how much the source's ends have moved since they were first read.

    While the source is up this is as it should be: MirrorMaker 2 copies what is written. In a
    disaster it shows that the source lives.
    """
    before = request.first_ends()
    if not before:
        return unknown(CheckName.ACTIVE_PRODUCERS, NO_TOPIC, GIVE_CHECKPOINT)
    after = request.pair.source.watermarks(before)
    moved = sum(after[each].high - watermarks.high for each, watermarks in before.items())
    value = f"the source's ends have moved by {moved} offsets during this check"
    if moved > 0 and request.policy.source_may_be_lost:
        step = "the source is alive and written to: stop its producers, or use the policy planned"
        return warning(CheckName.ACTIVE_PRODUCERS, value, step)
    return ok(CheckName.ACTIVE_PRODUCERS, value)
