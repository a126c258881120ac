"""Partitions of the target that a checkpoint does not know: Spark reads them from the beginning."""

from collections.abc import Sequence
from typing import NamedTuple

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.core import TopicPartition
from airflow_mm2_offsets.errors import TranslationRefusedError
from airflow_mm2_offsets.migration.plan import Need
from airflow_mm2_offsets.spark.rewriting import Asked, KeptFile, Use


class NewPartitions(NamedTuple):
    """What they ask for."""

    needs: list[Need]
    """That the beginning of each is that of the source's copies."""
    notes: list[str]


def new_partitions(
    pair: ClusterPair, files: Sequence[KeptFile], *, ask_source: bool, check: bool
) -> NewPartitions:
    """Return what must hold of the target's partitions that the checkpoint does not know.

    On the source the job would read them from the beginning, too, once it saw them.

    Args:
        pair: The clusters.
        files: The kept files; the last one has the newest batch.
        ask_source: Whether the source may be asked for its partitions.
        check: Whether anything must hold; else they are only told of.

    Raises:
        TranslationRefusedError: The source has no such partition, and the target has records.
    """
    known: dict[str, set[int]] = {}
    for topic, partition, _ in files[-1].asked():
        known.setdefault(topic, set()).add(partition)
    source = pair.source.topics(known) if ask_source else {}
    found = NewPartitions([], [])
    for topic, partition in _unknown(pair, known):
        name = pair.naming.target_topic(topic)
        on_target = TopicPartition(name, partition)
        place = f"{on_target}, which the checkpoint does not know,"
        found.notes.append(f"{place} is read from its beginning")
        high = pair.target.watermarks([on_target])[on_target].high
        if not check or not high:
            continue
        if topic in source and partition >= source[topic].partitions:
            raise TranslationRefusedError(
                f"{place} has held records up to {high}, and the source has no such partition: "
                f"the job would read what is not its own; where it names its partitions (assign), "
                f"say allow_new_partitions"
            )
        asked = Asked(topic, partition, 0)
        found.needs.append(Need(file=files[-1].name, use=Use.BEGINNING, asked=asked))
    return found


def _unknown(pair: ClusterPair, known: dict[str, set[int]]) -> list[tuple[str, int]]:
    names = {topic: pair.naming.target_topic(topic) for topic in known}
    held = pair.target.topics(names.values())
    return [
        (topic, partition)
        for topic, name in names.items()
        if name in held  # else the translation says so, as of any topic that is missing
        for partition in sorted(set(range(held[name].partitions)) - known[topic])
    ]
