"""Tells which parts of a pair of clusters answer, and why the others do not.

The connection form's Test button and the command ``check-connection`` call it; so does the planner
of a disaster, with questions of its own.
"""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.connect.client import ConnectClient
from airflow_mm2_offsets.core import Naming
from airflow_mm2_offsets.errors import ConfigurationError, Mm2OffsetsError
from airflow_mm2_offsets.kafka.cluster import KafkaCluster
from airflow_mm2_offsets.kafka.syncs import read_syncs


@dataclass(frozen=True, slots=True, kw_only=True)
class PartHealth:
    """Whether one part answers."""

    part: str
    """``source``, ``target``, the syncs topic, or ``Connect``."""
    answer: str = ""
    """What the part says of itself, if it answers."""
    error: Mm2OffsetsError | None = None
    """Why the part can't be used, if it does not."""

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON; see ``Mm2OffsetsError.to_json`` for the error."""
        return {
            "part": self.part,
            "ok": self.error is None,
            "answer": self.answer or None,
            "error": self.error.to_json() if self.error else None,
        }


def check_health(pair: ClusterPair) -> tuple[PartHealth, ...]:
    """Ask every part of a pair at the same time: it takes as long as the slowest part."""
    ids: dict[str, str | None] = {}
    parts: dict[str, Callable[[], str]] = {
        "source": partial(_cluster, pair.source, ids),
        "target": partial(_cluster, pair.target, ids),
        f"syncs topic {pair.syncs_topic} on {pair.syncs_location.value}": partial(_syncs, pair),
    }
    if pair.connect:
        parts["Connect"] = partial(_connect, pair.connect, pair.naming)
    answers = ask_parts(parts)
    try:
        check_two_clusters(pair, ids.get(pair.source.name), ids.get(pair.target.name))
    except ConfigurationError as error:
        return (*answers, PartHealth(part="source and target", error=error))
    return answers


def ask_parts(questions: Mapping[str, Callable[[], str]]) -> tuple[PartHealth, ...]:
    """Ask each part its question, all at the same time; the answers have the same order."""
    pool = ThreadPoolExecutor(len(questions))
    try:
        return tuple(pool.map(_health, questions, questions.values()))
    finally:
        # All parts are done, or the caller was interrupted and must not wait for them.
        pool.shutdown(wait=False)


def _health(part: str, ask: Callable[[], str]) -> PartHealth:
    try:
        return PartHealth(part=part, answer=ask())
    except Mm2OffsetsError as error:
        return PartHealth(part=part, error=error)


def _cluster(cluster: KafkaCluster, ids: dict[str, str | None]) -> str:
    info = cluster.describe()
    ids[cluster.name] = info.cluster_id
    return f"cluster {info.cluster_id or 'without an id'}, brokers {', '.join(info.brokers)}"


def check_two_clusters(pair: ClusterPair, source_id: str | None, target_id: str | None) -> None:
    """Refuse one cluster that is given twice, by Kafka's ids of the clusters, where they are known.

    Raises:
        ConfigurationError: Both ids are the same.
    """
    if source_id is not None and source_id == target_id:
        raise ConfigurationError(
            f"{pair.source.name} and {pair.target.name} are the same cluster, {source_id}: correct "
            f"the bootstrap.servers of one of them"
        )


def _syncs(pair: ClusterPair) -> str:
    syncs = read_syncs(pair.syncs_cluster, pair.syncs_topic)
    skipped = f", skipped records: {syncs.skipped_count}" if syncs.skipped_count else ""
    return f"syncs: {len(syncs.index)}, partitions: {len(syncs.index.partitions)}{skipped}"


def _connect(connect: ConnectClient, naming: Naming) -> str:
    version = connect.check()
    connector = connect.find_mirror_source(naming.source_alias, naming.target_alias)
    return f"version {version}, connector {connector}"
