"""Finds the parts of a pair that are lost: source, offset-syncs topic or Connect.

In a disaster the plan and the forecast are made without them, and name them.
"""

import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.connect.client import ConnectClient
from airflow_mm2_offsets.core import (
    Positions,
    TopicPartition,
)
from airflow_mm2_offsets.core.plan import LeftOut
from airflow_mm2_offsets.core.positions import by_topic_partition, check_positions
from airflow_mm2_offsets.errors import (
    ClusterRefusedError,
    ClusterUnreachableError,
    ConnectError,
    Mm2OffsetsError,
    SyncsTopicError,
    TopicNotFoundError,
)
from airflow_mm2_offsets.health import ask_parts
from airflow_mm2_offsets.kafka.cluster import KafkaCluster
from airflow_mm2_offsets.kafka.stable_read import look

log = logging.getLogger(__name__)

PROBE_SECONDS = 4.0
"""A part that has not answered a request by then is lost; its own wait counts if it is shorter.

In a disaster plan and forecast wait this long, each once. A connection with TLS and a login takes
eight round trips: 4 s leave 500 ms for each. A source that lives and is slower is left out as if it
were dead. That costs evidence: ranges are wider, more is refused. It proves nothing: the fence, and
not this silence, keeps the job from running twice, and the next task asks again.
"""

Result = TypeVar("Result")

_SOURCE, _TARGET, _SYNCS, _CONNECT = "source", "target", "syncs topic", "Connect"
_LOSSES = (
    ClusterUnreachableError,
    ClusterRefusedError,
    ConnectError,
    SyncsTopicError,
    TopicNotFoundError,
)
"""The errors of a part that was lost between the probe and the read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LostParts:
    """The parts of a pair that do not answer, each with the reason; None: it answers."""

    source: Mm2OffsetsError | None = None
    target: Mm2OffsetsError | None = None
    syncs_topic: Mm2OffsetsError | None = None
    connect: Mm2OffsetsError | None = None
    leaderless: frozenset[TopicPartition] = frozenset()
    """The source's partitions that no broker leads, if others answer: half of it is lost."""

    @property
    def source_is_silent(self) -> bool:
        """Whether no broker of the source has answered: not even its ids can be read."""
        return isinstance(self.source, ClusterUnreachableError) and not self.leaderless

    def left_out(self) -> tuple[LeftOut, ...]:
        """Return the lost parts as a plan names them."""
        parts = {_SOURCE: self.source, _SYNCS: self.syncs_topic, _CONNECT: self.connect}
        return tuple(
            LeftOut(part=part, reason=str(error)) for part, error in parts.items() if error
        )

    def or_else(self, later: "LostParts") -> "LostParts":
        """Return these parts and those that were lost later."""
        return LostParts(
            source=self.source or later.source,
            target=self.target or later.target,
            syncs_topic=self.syncs_topic or later.syncs_topic,
            connect=self.connect or later.connect,
            leaderless=later.leaderless if later.source else self.leaderless,
        )


def find_lost_parts(pair: ClusterPair, positions: Positions | None = None) -> LostParts:
    """Ask every part at the same time; a lost source or Connect costs ``PROBE_SECONDS``.

    A source that does not answer for one of the positions' partitions counts as lost, because a
    translation needs all watermarks. The syncs topic is asked by itself, also where it lies there.

    Args:
        pair: The clusters.
        positions: The job's positions on the source; None asks the clusters alone.
    """
    pair = quick(pair)
    keys = list(by_topic_partition(check_positions(positions))) if positions else []
    copies = [pair.on_target(key) for key in keys]
    leaderless: set[TopicPartition] = set()
    questions: dict[str, Callable[[], str]] = {
        _SOURCE: partial(_ask_cluster, pair.source, keys, leaderless),
        _TARGET: partial(_ask_cluster, pair.target, copies, set()),
    }
    if pair.has_syncs:
        questions[_SYNCS] = partial(_ask_syncs, pair)
    if pair.connect:
        questions[_CONNECT] = partial(_ask_connect, pair, pair.connect)
    errors = {each.part: each.error for each in ask_parts(questions)}
    return LostParts(
        source=errors[_SOURCE],
        target=errors[_TARGET],
        syncs_topic=errors.get(_SYNCS),
        connect=errors.get(_CONNECT),
        leaderless=frozenset(leaderless),
    )


def quick(pair: ClusterPair) -> ClusterPair:
    """Return the pair with a source and a Connect that are given up after ``PROBE_SECONDS``.

    The target keeps its time: there is no failover without it.
    """
    connect = pair.connect
    return replace(
        pair,
        source=replace(pair.source, timeout=min(pair.source.timeout, PROBE_SECONDS)),
        connect=connect and replace(connect, timeout=min(connect.timeout, PROBE_SECONDS)),
    )


def with_what_is_left(
    pair: ClusterPair, positions: Positions, work: Callable[[LostParts], Result]
) -> Result:
    """Return what ``work`` makes without the lost parts; call it again if it loses one more.

    Raises:
        ClusterUnreachableError: The target does not answer.
        Mm2OffsetsError: See ``work``.
    """
    lost = find_lost_parts(pair, positions)
    while True:
        if lost.target is not None:
            raise lost.target
        try:
            return work(lost)
        except _LOSSES as error:
            later = _lost_by(pair, error, lost)
            if later is None:
                raise
            log.warning("Trying again without what was lost meanwhile: %s", error)
            lost = lost.or_else(later).or_else(find_lost_parts(pair, positions))


def _ask_cluster(
    cluster: KafkaCluster, requested: Collection[TopicPartition], leaderless: set[TopicPartition]
) -> str:
    """Return the cluster's id; add the partitions that no broker leads to ``leaderless``."""
    info = cluster.describe()
    leaderless |= cluster.leaderless(requested)
    if leaderless:
        some = ", ".join(map(str, sorted(leaderless)[:5]))
        raise ClusterUnreachableError(
            f"no broker leads {some}{', ...' if len(leaderless) > 5 else ''}: "  # noqa: PLR2004 - enough to find them
            f"{len(leaderless)} of {len(requested)} partitions can't be read",
            cluster=cluster.name,
        )
    cluster.watermarks(requested)
    return f"cluster {info.cluster_id}"


def _ask_connect(pair: ClusterPair, connect: ConnectClient) -> str:
    found = connect.find_mirror_sources(pair.naming.source_alias, pair.naming.target_alias)
    return f"connectors {', '.join(sorted(found))}"


def _ask_syncs(pair: ClusterPair) -> str:
    state = look(pair.syncs_cluster, pair.syncs_topic)
    if state is None or not state.end:
        problem = "does not exist" if state is None else "is empty"
        raise SyncsTopicError(
            f"the offset-syncs topic {problem}",
            cluster=pair.syncs_cluster.name,
            topic=pair.syncs_topic,
        )
    return f"its end is {state.end}"


def _lost_by(pair: ClusterPair, error: Mm2OffsetsError, lost: LostParts) -> LostParts | None:
    """Return the part that an error is about; None if it is the target, or is left out already."""
    cluster = error.fields.get("cluster")
    if pair.has_syncs and error.fields.get("topic") == pair.syncs_topic:
        return None if lost.syncs_topic else LostParts(syncs_topic=error)
    if cluster == pair.source.name:
        return None if lost.source else LostParts(source=error)
    is_of_connect = cluster is None and isinstance(error, ConnectError | ClusterUnreachableError)
    if is_of_connect and pair.connect and not lost.connect:
        return LostParts(connect=error)
    return None
