"""``syncs`` and ``check-connection``: the offset syncs, and which parts answer."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

from airflow_mm2_offsets.cli.clusters import ClusterOptions, find_clusters
from airflow_mm2_offsets.cli.command import answering, grouped
from airflow_mm2_offsets.cli.exit_codes import ExitCode, exit_code
from airflow_mm2_offsets.cli.numbers import Number
from airflow_mm2_offsets.cli.output import Answer
from airflow_mm2_offsets.cli.params import Option
from airflow_mm2_offsets.cli.terminal import waiting
from airflow_mm2_offsets.errors import ErrorFields, TopicNotFoundError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from airflow_mm2_offsets.clusters import ClusterPair
    from airflow_mm2_offsets.core import OffsetSync, SyncIndex
    from airflow_mm2_offsets.kafka.syncs import SyncsSnapshot

SYNCS_EXAMPLE = """\
\b
Example:
  airflow-mm2-offsets syncs --topic orders --limit 5 --config mm2.toml"""

CHECK_EXAMPLE = """\
\b
Example:
  airflow-mm2-offsets check-connection --config mm2.toml"""

_MAX_LISTED = 20
"""The most topics that an error lists."""


@grouped
@answering
def syncs(
    *,
    topic: Annotated[
        str | None, Option("--topic", metavar="NAME", help="Only this one, by its source's name.")
    ] = None,
    partition: Annotated[
        int | None,
        Option(
            "--partition", metavar="NUMBER", type=Number(int, 0, 2**31 - 1), help="Only this one."
        ),
    ] = None,
    limit: Annotated[
        int,
        Option(
            "--limit",
            metavar="COUNT",
            type=Number(int),
            help="The newest of each partition; 0: all.",
        ),
    ] = 10,
    pair_options: ClusterOptions,
) -> Answer:
    """List offset syncs.

    Each says: source record UPSTREAM was written to target offset DOWNSTREAM.
    """
    from airflow_mm2_offsets.kafka.syncs import read_syncs

    pair = find_clusters(pair_options).pair
    with waiting("Reading offset syncs"):
        snapshot = read_syncs(pair.syncs_cluster, pair.syncs_topic)
    selected = _select(snapshot.index, topic, partition)
    if not len(selected):
        raise _no_syncs(pair.syncs_topic, snapshot.index, topic, partition)
    newest = [*_newest(selected, limit)]
    return _answer(pair, snapshot, newest, matching=len(selected))


@grouped
@answering
def check_connection(pair_options: ClusterOptions) -> Answer:
    """Tell which parts answer, and why others don't.

    The parts are both clusters, the offset-syncs topic, and Kafka Connect if its URL is set.
    """
    from airflow_mm2_offsets import connection_check

    pair = find_clusters(pair_options).pair
    with waiting("Checking"):
        parts = connection_check.check_connection(pair)
    errors = [part.error for part in parts if part.error]
    return Answer(
        text="\n".join(
            f"{'FAILED' if part.error else 'ok':6}  {part.part}: {part.error or part.answer}"
            for part in parts
        ),
        data={"ok": not errors, "parts": [part.to_json() for part in parts]},
        exit_code=exit_code(errors[0]) if errors else ExitCode.OK,
    )


def _select(index: "SyncIndex", topic: str | None, partition: int | None) -> "SyncIndex":
    from airflow_mm2_offsets.core import SyncIndex

    return SyncIndex.of_partitions(
        {
            key: syncs
            for key, syncs in sorted(index.partitions.items())
            if topic in {None, key.topic} and partition in {None, key.partition}
        }
    )


def _no_syncs(
    syncs_topic: str, index: "SyncIndex", topic: str | None, partition: int | None
) -> TopicNotFoundError:
    fields: ErrorFields = {} if topic is None else {"topic": topic}
    if partition is not None:
        fields["partition"] = partition
    subject = f"partition {partition}" if topic is None else "it"
    topics = sorted({name for name, _ in index})
    listed = ", ".join(topics[:_MAX_LISTED]) + (", ..." if len(topics) > _MAX_LISTED else "")
    return TopicNotFoundError(
        f"{syncs_topic} has no sync of {subject}; it has syncs of {listed}: check the name (the "
        f"source's), and that MirrorMaker 2 copies it",
        **fields,
    )


def _newest(index: "SyncIndex", limit: int) -> "Iterator[OffsetSync]":
    """Yield the newest of each partition, in log order."""
    from airflow_mm2_offsets.core import OffsetSync

    for key, syncs in index.partitions.items():
        first = max(0, len(syncs) - limit) if limit else 0
        for upstream, downstream in (syncs[at] for at in range(first, len(syncs))):
            yield OffsetSync(**key._asdict(), upstream=upstream, downstream=downstream)


def _answer(
    pair: "ClusterPair", snapshot: "SyncsSnapshot", newest: "Sequence[OffsetSync]", *, matching: int
) -> Answer:
    return Answer(
        text=_text(pair, snapshot, newest, matching=matching),
        data={
            "syncs_topic": pair.syncs_topic,
            "location": pair.syncs_location.value,
            "total": len(snapshot.index),
            "skipped": snapshot.skipped_count,
            "matching": matching,
            "syncs": [_to_json(sync) for sync in newest],
        },
        has_advice=False,
    )


def _text(
    pair: "ClusterPair", snapshot: "SyncsSnapshot", newest: "Sequence[OffsetSync]", *, matching: int
) -> str:
    """Return the syncs as a table, and how many there are."""
    from airflow_mm2_offsets.core import TopicPartition
    from airflow_mm2_offsets.core.summary import table

    rows = [
        (TopicPartition(sync.topic, sync.partition), sync.upstream, sync.downstream)
        for sync in newest
    ]
    skipped = snapshot.skipped_count
    others = f"; {skipped} records are not offset syncs" if skipped else ""
    return (
        f"{table(('partition', 'upstream', 'downstream'), rows)}\n\n"
        f"{len(rows)} of {matching} syncs shown; {pair.syncs_topic} on the {pair.syncs_location} "
        f"holds {len(snapshot.index)} in all{others}"
    )


def _to_json(sync: "OffsetSync") -> dict[str, str | int]:
    return {**asdict(sync), "upstream": str(sync.upstream), "downstream": str(sync.downstream)}
