"""``syncs`` and ``check-connection``: the offset syncs, and which parts answer."""

from collections.abc import Iterator, Sequence
from typing import Annotated

from typer import Option

from airflow_mm2_offsets.cli.clusters import ClusterOptions, find_clusters
from airflow_mm2_offsets.cli.command import answering, grouped
from airflow_mm2_offsets.cli.exit_codes import ExitCode, exit_code
from airflow_mm2_offsets.cli.output import Answer, waiting
from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.core import OffsetSync, SyncIndex, TopicPartition
from airflow_mm2_offsets.core.summary import table
from airflow_mm2_offsets.errors import TopicNotFoundError
from airflow_mm2_offsets.health import check_health
from airflow_mm2_offsets.kafka.syncs import SyncsSnapshot, read_syncs

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
        snapshot = read_syncs(pair.syncs_cluster, pair.syncs_topic, progress=tell)
    chosen = _chosen(snapshot.index, topic, partition)
    if not len(chosen):
        raise _none_of(pair.syncs_topic, snapshot.index, topic, partition)
    shown = [*_newest(chosen, limit)]
    return Answer(
        text=_text(pair, snapshot, shown, matching=len(chosen)),
        data={
            "syncs_topic": pair.syncs_topic,
            "location": pair.syncs_location.value,
            "total": len(snapshot.index),
            "skipped": snapshot.skipped_count,
            "matching": len(chosen),
            "syncs": [_to_json(each) for each in shown],
        },
    )


@grouped
@answering
def check_connection(where: ClusterOptions) -> Answer:
    """Tell which parts answer, and why others don't.

    The parts are both clusters, the offset-syncs topic, and Kafka Connect if its URL is set.
    """
    pair = find_clusters(where).pair
    with waiting("Checking"):
        parts = check_health(pair)
    failed = [each.error for each in parts if each.error]
    return Answer(
        text="\n".join(
            f"{'FAILED' if each.error else 'ok':6}  {each.part}: {each.error or each.answer}"
            for each in parts
        ),
        data={"ok": not failed, "parts": [each.to_json() for each in parts]},
        exit_code=exit_code(failed[0]) if failed else ExitCode.OK,
    )


def _chosen(index: SyncIndex, topic: str | None, partition: int | None) -> SyncIndex:
    return SyncIndex.of_partitions(
        {
            place: syncs
            for place, syncs in sorted(index.partitions.items())
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
    for (topic, partition), syncs in index.partitions.items():
        first = max(0, len(syncs) - limit) if limit else 0
        for at in range(first, len(syncs)):
            upstream, downstream = syncs[at]
            yield OffsetSync(
                topic=topic, partition=partition, upstream=upstream, downstream=downstream
            )


def _text(
    pair: ClusterPair, snapshot: SyncsSnapshot, shown: Sequence[OffsetSync], *, matching: int
) -> str:
    """Return the syncs as a table, and how many there are."""
    rows = [
        (TopicPartition(each.topic, each.partition), each.upstream, each.downstream)
        for each in shown
    ]
    skipped = snapshot.skipped_count
    others = f"; {skipped} records are not offset syncs" if skipped else ""
    return (
        f"{table(('partition', 'upstream', 'downstream'), rows)}\n\n"
        f"{len(rows)} of {matching} syncs shown; {pair.syncs_topic} on the {pair.syncs_location} "
        f"holds {len(snapshot.index)} in all{others}"
    )


def _to_json(sync: OffsetSync) -> dict[str, str | int]:
    return {
        "topic": sync.topic,
        "partition": sync.partition,
        "upstream": str(sync.upstream),
        "downstream": str(sync.downstream),
    }
