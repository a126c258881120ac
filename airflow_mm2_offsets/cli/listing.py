"""``syncs`` and ``check-connection``: what there is to translate with."""

from collections.abc import Iterator
from typing import Annotated

from typer import Option

from airflow_mm2_offsets.cli.exits import ExitCode, exit_code
from airflow_mm2_offsets.cli.framing import answering, grouped
from airflow_mm2_offsets.cli.output import Answer, waiting
from airflow_mm2_offsets.cli.where import ClusterOptions, find_clusters
from airflow_mm2_offsets.core import OffsetSync, SyncIndex, TopicPartition
from airflow_mm2_offsets.core.summary import table
from airflow_mm2_offsets.errors import TopicNotFoundError
from airflow_mm2_offsets.service.probing import probe, probe_to_json

SYNCS_EXAMPLE = """\
\b
Example:
  airflow-mm2-offsets syncs --topic orders --limit 5 --config mm2.toml"""

CHECK_EXAMPLE = """\
\b
Example:
  airflow-mm2-offsets check-connection --config mm2.toml"""

_NAMED = 20


@grouped
@answering
def syncs(
    *,
    topic: Annotated[
        str | None, Option("--topic", metavar="NAME", help="Only this one, by its source's name.")
    ] = None,
    partition: Annotated[
        int | None, Option("--partition", metavar="NUMBER", min=0, help="Only this one.")
    ] = None,
    limit: Annotated[
        int,
        Option("--limit", metavar="COUNT", min=0, help="The newest of each partition; 0: all."),
    ] = 10,
    where: ClusterOptions,
) -> Answer:
    """List offset syncs.

    Each says: source record UPSTREAM was written to target offset DOWNSTREAM.
    """
    pair = find_clusters(where).pair
    with waiting("Reading offset syncs") as tell:
        read = pair.read_syncs(progress=tell)
    chosen = _chosen(read.index, topic, partition)
    if not len(chosen):
        raise _none_of(pair.syncs_topic, read.index, topic, partition)
    shown = [*_newest(chosen, limit)]
    rows = [
        (TopicPartition(each.topic, each.partition), each.upstream, each.downstream)
        for each in shown
    ]
    return Answer(
        text=f"{table(('partition', 'upstream', 'downstream'), rows)}\n\n"
        f"{len(rows)} of {len(chosen)} syncs shown; {pair.syncs_topic} on the "
        f"{pair.syncs_location} holds {len(read.index)} in all"
        + (f", and {read.skipped_count} records that are none" if read.skipped_count else ""),
        data={
            "syncs_topic": pair.syncs_topic,
            "location": pair.syncs_location.value,
            "total": len(read.index),
            "skipped": read.skipped_count,
            "matching": len(chosen),
            "syncs": [_to_json(each) for each in shown],
        },
    )


@grouped
@answering
def check_connection(where: ClusterOptions) -> Answer:
    """Tell which parts answer, and why others don't.

    Asked are both clusters, the offset-syncs topic, and Kafka Connect where its URL is set.
    """
    pair = find_clusters(where).pair
    with waiting("Asking"):
        probed = probe(pair)
    failed = [each.error for each in probed if each.error]
    return Answer(
        text="\n".join(
            f"{'FAILED' if each.error else 'ok':6}  {each.part}: {each.error or each.found}"
            for each in probed
        ),
        data={"ok": not failed, "parts": [probe_to_json(each) for each in probed]},
        exit_code=exit_code(failed[0]) if failed else ExitCode.OK,
    )


def _chosen(index: SyncIndex, topic: str | None, partition: int | None) -> SyncIndex:
    return SyncIndex.of_partitions(
        {
            place: held
            for place, held in sorted(index.partitions.items())
            if topic in {None, place[0]} and partition in {None, place[1]}
        }
    )


def _none_of(
    syncs_topic: str, index: SyncIndex, topic: str | None, partition: int | None
) -> TopicNotFoundError:
    if topic is not None and partition is not None:
        wanted = str(TopicPartition(topic, partition))
    else:
        wanted = f"partition {partition}" if topic is None else f"topic {topic}"
    topics = sorted({name for name, _ in index})
    listed = ", ".join(topics[:_NAMED]) + (", ..." if len(topics) > _NAMED else "")
    return TopicNotFoundError(
        f"{syncs_topic} has no sync of {wanted}; it has syncs of {listed}: check the name (the "
        f"source's), and that MirrorMaker 2 copies it"
    )


def _newest(index: SyncIndex, limit: int) -> Iterator[OffsetSync]:
    """Yield the newest of each partition, in log order."""
    for (topic, partition), held in index.partitions.items():
        first = max(0, len(held) - limit) if limit else 0
        for at in range(first, len(held)):
            upstream, downstream = held[at]
            yield OffsetSync(
                topic=topic, partition=partition, upstream=upstream, downstream=downstream
            )


def _to_json(sync: OffsetSync) -> dict[str, str | int]:
    return {
        "topic": sync.topic,
        "partition": sync.partition,
        "upstream": str(sync.upstream),
        "downstream": str(sync.downstream),
    }
