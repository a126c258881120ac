"""Tells from an archive where partitions ended when its runs saw them; the forecast calls it."""

from collections.abc import Collection
from typing import TYPE_CHECKING

from airflow_mm2_offsets.archive.values import NO_IDS, newer_ids, was_recreated
from airflow_mm2_offsets.core import TopicPartition
from airflow_mm2_offsets.core.forecast_rules import EndSample

if TYPE_CHECKING:
    from airflow_mm2_offsets.archive.history import ArchivedSyncs


def end_samples(
    archived: "ArchivedSyncs", partitions: Collection[TopicPartition]
) -> dict[TopicPartition, list[EndSample]]:
    """Return the ends of partitions in order of time, of their topics' last incarnation alone.

    A source end below an earlier one shows a truncated or recreated topic: what was before counts
    no more.
    """
    since = _last_recreated(archived)
    rows = [
        row
        for incarnation in archived.incarnations
        for row in archived.watermarks(incarnation).to_pylist()
    ]
    samples: dict[TopicPartition, list[EndSample]] = {each: [] for each in partitions}
    for row in sorted(rows, key=lambda row: row["time"]):
        found = samples.get(TopicPartition(row["topic"], row["partition"]))
        if found is None or row["source_high"] is None or row["time"] < since.get(row["topic"], 0):
            continue
        if found and row["source_high"] < found[-1].source_end:
            found.clear()
        found.append(EndSample(row["time"], row["source_high"], row["target_high"]))
    return samples


def _last_recreated(archived: "ArchivedSyncs") -> dict[str, int]:
    """Return the time of the first run that saw the last incarnation of a recreated topic."""
    ids, since = dict.fromkeys(archived.topics, NO_IDS), {}
    for _, run in archived.runs:
        for topic, now in run.topics.items():
            before = ids.get(topic, NO_IDS)
            if was_recreated(before, now):
                since[topic] = run.time
            ids[topic] = newer_ids(before, now)
    return since
