"""Loads the offset syncs to translate with: those of an archive, and what the topic has since."""

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from airflow_mm2_offsets.archive import SyncArchive
from airflow_mm2_offsets.archive.incremental_read import (
    iso_time,
    now_in_milliseconds,
    pair_identity,
    read_since,
)
from airflow_mm2_offsets.archive.runs import recreations
from airflow_mm2_offsets.archive.values import GONE, TopicIds, was_recreated
from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.core import Basis, Status, SyncsLocation, Translation
from airflow_mm2_offsets.errors import SyncsTopicError
from airflow_mm2_offsets.kafka.syncs import SyncsSnapshot, read_syncs
from airflow_mm2_offsets.planning.ids import read_ids

if TYPE_CHECKING:
    from airflow_mm2_offsets.archive.history import ArchivedSyncs

_CUT = frozenset({Basis.HISTORY_CUT, Basis.COPYING_AGAIN})
"""The basis of a refusal for lack of older syncs."""


def load_syncs(
    pair: ClusterPair,
    archive: SyncArchive | None,
    *,
    ask_source: bool = True,
    read_topic: bool | None = None,
) -> SyncsSnapshot:
    """Return what the archive holds and what the topic has since.

    The archive alone where the topic is gone, or lies on a source that is not to be asked;
    ``SyncsSnapshot.as_of`` says so.

    Ids come before numbers: the archive must be of these clusters, and syncs of topics that were
    recreated since are cut, whether the topic of the syncs is read or not.

    Args:
        pair: The clusters.
        archive: None: the topic alone.
        ask_source: Whether the source cluster can be asked.
        read_topic: Whether to read the topic beside the archive; None: if its cluster can be asked.

    Raises:
        ArchiveError: The archive is of another pair, damaged, or out of reach.
        SyncsTopicError: There is no sync at all.
        ClusterUnreachableError: A cluster that is asked does not answer.
    """
    if archive is None:
        return read_syncs(pair.syncs_cluster, pair.syncs_topic)
    archived, skipped, as_of = _read_archive_and_topic(
        pair, archive, ask_source=ask_source, read_topic=read_topic
    )
    if not len(archived) and not archived.history_starts:
        raise SyncsTopicError(
            f"neither the archive {archive.location} nor topic {pair.syncs_topic} holds an offset "
            f"sync that can be used; see whether MirrorMaker 2 and the DAG that archives run"
        )
    return SyncsSnapshot(
        index=archived.index(),
        records_read=len(archived),
        skipped_count=skipped,
        next_offset=archived.runs[-1][1].stop,
        as_of=as_of,
        recreated={each.topic: _recreated(pair, *each[:3]) for each in recreations(archived.runs)},
    )


def explain_recreation(answer: Translation, syncs: SyncsSnapshot) -> Translation:
    """Return ``answer``; one refused because its topic was recreated names the ids."""
    recreated = syncs.recreated.get(answer.topic)
    refused = answer.status is Status.REFUSED and answer.basis in _CUT
    if recreated is None or not refused:
        return answer
    return replace(answer, reason=f"{answer.reason}; {recreated}")


def _read_archive_and_topic(
    pair: ClusterPair, archive: SyncArchive, *, ask_source: bool, read_topic: bool | None
) -> tuple["ArchivedSyncs", int, str | None]:
    """Return all syncs, how many records of the topic were skipped, and ``SyncsSnapshot.as_of``."""
    identity = pair_identity(pair, ask_source=ask_source)
    archived = archive.read(identity)
    if read_topic is None:
        read_topic = ask_source or pair.syncs_location is SyncsLocation.TARGET
    if read_topic:
        new_run = read_since(pair, archived, identity, ask_source=ask_source)
        if new_run is not None:
            topic_read = new_run.topic_read
            archived = archived.with_run(new_run.header, topic_read.syncs)
            return archived, topic_read.skipped_count, None
    ids = _read_topic_ids(pair, archived.topics, ask_source=ask_source)
    as_of = None if archived.as_of is None else iso_time(archived.as_of)
    return archived.with_ids(ids, now_in_milliseconds()), 0, as_of


def _read_topic_ids(
    pair: ClusterPair, topics: Iterable[str], *, ask_source: bool
) -> dict[str, TopicIds]:
    """Return the ids that replicated topics have now, as the archive keeps them."""
    names = {topic: pair.naming.target_topic(topic) for topic in topics}
    ids = read_ids(pair, names, ask_source=ask_source)
    return {
        topic: (
            ids.source.topic_ids.get(topic, GONE) if ask_source else None,
            ids.target.topic_ids.get(name, GONE),
        )
        for topic, name in names.items()
    }


def _recreated(pair: ClusterPair, topic: str, before: TopicIds, now: TopicIds) -> str:
    sides = zip((pair.source, pair.target), (topic, pair.naming.target_topic(topic)), strict=True)
    changes = [
        f"topic {name} on the {cluster.name} had the id {old or 'unknown'} when the archive last "
        f"saw it and has {new} now"
        for (cluster, name), old, new in zip(sides, before, now, strict=True)
        if was_recreated((old, None), (new, None))
    ]
    return (
        f"{', and '.join(changes)}: wait until MirrorMaker 2 has copied the position again, or "
        f"choose where to start (on_unmapped)"
    )
