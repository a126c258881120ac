"""The wait for MirrorMaker 2; ``Mm2ReplicatedSensor`` polls with its trigger."""

import time
from collections.abc import Mapping, Sequence
from typing import Any

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.core import Basis, Positions, Translation, check_positions
from airflow_mm2_offsets.core.ids import PairIds
from airflow_mm2_offsets.hooks.mm2 import Mm2OffsetHook
from airflow_mm2_offsets.planning.checks import find_connect_problems
from airflow_mm2_offsets.planning.ids import read_ids
from airflow_mm2_offsets.planning.offset_evidence import PairWatermarks
from airflow_mm2_offsets.planning.plan import still_copying
from airflow_mm2_offsets.planning.source_ends import SourceEnds, ends_to_json
from airflow_mm2_offsets.spark.position_ids import check_ids
from airflow_mm2_offsets.triggers.polling import Done, NotYet, PollingTrigger

CONNECT_SECONDS = 15.0
"""How long what Connect has said counts."""


class ReplicatedTrigger(PollingTrigger):
    """Waits until MirrorMaker 2 has provably copied everything before each position.

    Args:
        mm2_conn_id: Id of a connection of type ``mm2``.
        positions: Positions on the source; keys and numbers may be text.
        clusters: ``PairIds`` as plain JSON; see ``Mm2ReplicatedSensor``.
        quiet_after: Seconds; see ``Mm2ReplicatedSensor``.
        to: See ``Mm2ReplicatedSensor``.
    """

    wait_for = "MirrorMaker 2 to copy everything before the positions"
    settings = ("mm2_conn_id", "positions", "clusters", "quiet_after", "to")

    def __init__(
        self,
        *,
        mm2_conn_id: str,
        positions: Positions,
        clusters: Mapping[str, Any] | None = None,
        quiet_after: float | None = None,
        to: str | None = None,
        **times: float,
    ) -> None:
        """Keep the settings."""
        super().__init__(**times)
        self.mm2_conn_id = mm2_conn_id
        self.positions = positions
        self.clusters = clusters
        self.quiet_after = quiet_after
        self.to = to
        self._ends: object = None
        self._seen: SourceEnds = {}
        self._quiet_since = 0.0
        self._problems: list[str] = []
        self._ask_connect_at = 0.0

    def poll(self) -> Done | NotYet:
        """Read what is new on the clusters."""
        pair = Mm2OffsetHook(self.mm2_conn_id, to=self.to).get_conn()
        positions = check_positions(self.positions)
        if self.clusters:
            check_ids(PairIds.from_json(self.clusters), read_ids(pair, positions, ask_source=True))
        behind = still_copying(pair, positions, self._seen)
        if not behind:
            return self._done()
        # What Connect says is the cause: what each position lacks until then says no more.
        problems = self._why_not_copied(pair, positions)
        describe = _name if problems else _describe
        reason = "; ".join([*problems, *map(describe, behind)])
        if self._has_been_quiet(pair, behind):
            self.log.warning("Neither cluster has changed for %s s: %s", self.quiet_after, reason)
            return self._done()
        return NotYet(reason=reason)

    def _why_not_copied(self, pair: ClusterPair, positions: Positions) -> list[str]:
        """Return what Connect says against the copying; it is asked seldom."""
        if time.monotonic() >= self._ask_connect_at:
            self._problems = find_connect_problems(pair, positions)
            self._ask_connect_at = time.monotonic() + CONNECT_SECONDS
        return self._problems

    def _done(self) -> Done:
        return Done(result={"source_ends": ends_to_json(self._seen)})

    def _has_been_quiet(self, pair: ClusterPair, behind: Sequence[Translation]) -> bool:
        """Tell whether neither cluster has changed, and only the last records are in doubt.

        A record that MirrorMaker 2 copies later lies before the position: it is read again.
        """
        if self.quiet_after is None or any(
            translation.basis is not Basis.AFTER_LAST_SYNC for translation in behind
        ):
            return False
        partitions = [translation.topic_partition for translation in behind]
        ends = PairWatermarks.read(pair, partitions, ask_source=True)
        if ends != self._ends:
            self._ends, self._quiet_since = ends, time.monotonic()
        return time.monotonic() - self._quiet_since >= self.quiet_after


def _name(translation: Translation) -> str:
    return f"{translation.topic_partition} at {translation.position} is not proved to be copied"


def _describe(translation: Translation) -> str:
    return f"{translation.topic_partition} at {translation.position} {translation.reason}"
