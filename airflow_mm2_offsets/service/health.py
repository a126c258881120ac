"""Tells which parts of a pair of clusters answer, and why the others do not."""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from airflow_mm2_offsets.connect.client import ConnectClient
from airflow_mm2_offsets.core import Naming
from airflow_mm2_offsets.errors import Mm2OffsetsError
from airflow_mm2_offsets.kafka.cluster import KafkaCluster
from airflow_mm2_offsets.service.pair import ClusterPair


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """What came of asking one part."""

    part: str
    """``source``, ``target``, the syncs topic, or ``Connect``."""
    found: str = ""
    """What answered, where it did."""
    error: Mm2OffsetsError | None = None
    """Why it can't be used."""


def probe(pair: ClusterPair) -> tuple[Probe, ...]:
    """Ask every part of a pair, side by side: whoever waits, waits for the slowest alone."""
    parts: dict[str, Callable[[], str]] = {
        "source": partial(_cluster, pair.source),
        "target": partial(_cluster, pair.target),
        f"syncs topic {pair.syncs_topic} on {pair.syncs_location.value}": partial(_syncs, pair),
    }
    if pair.connect:
        parts["Connect"] = partial(_connect, pair.connect, pair.naming)
    pool = ThreadPoolExecutor(len(parts))
    try:
        return tuple(pool.map(_outcome, parts, parts.values()))
    finally:
        # All are done, or the caller was interrupted and waits for none.
        pool.shutdown(wait=False)


def probe_to_json(probed: Probe) -> Mapping[str, str | bool | None]:
    """Return what came of asking one part as plain JSON."""
    return {
        "part": probed.part,
        "ok": probed.error is None,
        "found": probed.found or None,
        "error": str(probed.error) if probed.error else None,
    }


def _outcome(part: str, ask: Callable[[], str]) -> Probe:
    try:
        return Probe(part=part, found=ask())
    except Mm2OffsetsError as error:
        return Probe(part=part, error=error)


def _cluster(cluster: KafkaCluster) -> str:
    info = cluster.describe()
    return f"cluster {info.cluster_id or 'without an id'}, brokers {', '.join(info.brokers)}"


def _syncs(pair: ClusterPair) -> str:
    syncs = pair.read_syncs()
    skipped = f", skipped records: {syncs.skipped_count}" if syncs.skipped_count else ""
    return f"syncs: {len(syncs.index)}, partitions: {len(syncs.index.partitions)}{skipped}"


def _connect(connect: ConnectClient, naming: Naming) -> str:
    version = connect.check()
    connector = connect.find_mirror_source(naming.source_alias, naming.target_alias)
    return f"version {version}, connector {connector}"
