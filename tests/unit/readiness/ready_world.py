"""Two clusters in memory between which all is well, and a job on the source."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from upath import UPath

from airflow_mm2_offsets.archive import SyncArchive
from airflow_mm2_offsets.archive.update import archive_syncs
from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.core import Naming, ReplicationPolicy, TopicPartition
from airflow_mm2_offsets.core.readiness import CheckStatus, ReadinessReport
from airflow_mm2_offsets.core.readiness_names import CheckName
from airflow_mm2_offsets.core.wire import Heartbeat, encode_heartbeat
from airflow_mm2_offsets.readiness import ReadinessRequest, check_readiness
from airflow_mm2_offsets.testing import Mm2Simulation, Record
from airflow_mm2_offsets.testing.logs import FIRST_TIMESTAMP
from tests.unit.spark import checkpoints

NAMING = Naming(source_alias="eu", target_alias="us", policy=ReplicationPolicy.IDENTITY)
NOW = datetime.fromtimestamp(FIRST_TIMESTAMP / 1000 + 10, UTC)
"""Ten seconds after the records."""
HEARTBEATS = "eu.heartbeats"


@dataclass(kw_only=True)
class ReadyWorld:
    """Orders has two partitions with ten records; the job has read 4 and 6 of them."""

    folder: Path
    simulation: Mm2Simulation = field(default_factory=lambda: Mm2Simulation(NAMING))
    now: datetime = NOW

    def __post_init__(self) -> None:
        for partition in (0, 1):
            self.simulation.source.produce("orders", partition, [b"%d" % n for n in range(10)])
        self.simulation.mirror()
        self.beat(NOW - timedelta(seconds=1))
        checkpoints.simple(self.folder / "source" / "checkpoint")

    @property
    def pair(self) -> ClusterPair:
        """With so little patience that a stopped cluster costs no time."""
        pair = self.simulation.pair
        for cluster in (pair.source, pair.target):
            object.__setattr__(cluster, "timeout", 0.2)
        return pair

    def beat(self, time: datetime) -> None:
        """Write a heartbeat to the target."""
        heartbeat = Heartbeat(
            source_alias="eu", target_alias="us", timestamp=int(time.timestamp() * 1000)
        )
        record = Record(*encode_heartbeat(heartbeat), FIRST_TIMESTAMP)
        self.simulation.target.produce(HEARTBEATS, 0, [record])

    def archive(self) -> None:
        """Archive the syncs of now."""
        archive_syncs(self.pair, SyncArchive(str(self.folder / "archive")))

    def report(
        self, find_pair: Callable[[], ClusterPair] | None = None, **settings: Any
    ) -> ReadinessReport:
        """Return the report."""
        locations: dict[str, Any] = {
            "checkpoint": str(self.folder / "source" / "checkpoint"),
            "target_checkpoint": str(self.folder / "target" / "checkpoint"),
        }
        request = ReadinessRequest(
            find_pair=find_pair or (lambda: self.pair),
            open=UPath,
            now=lambda: self.now,
            **locations | settings,
        )
        return check_readiness(request)

    def files(self) -> dict[Path, bytes]:
        """Return all files of all folders."""
        return {path: path.read_bytes() for path in self.folder.rglob("*") if path.is_file()}

    def commit_to(self, last: int) -> None:
        """Let Connect say that ``last`` was the last copied offset of each partition."""
        offsets = {TopicPartition("orders", number): last for number in (0, 1)}
        self.simulation.connect.committed_offsets = lambda: offsets


def statuses(report: ReadinessReport) -> dict[CheckName, CheckStatus]:
    """Return the worst status of each check."""
    order = [
        *(CheckStatus.NOT_ASKED, CheckStatus.OK, CheckStatus.UNKNOWN),
        *(CheckStatus.WARNING, CheckStatus.FAILED),
    ]
    found: dict[CheckName, CheckStatus] = {}
    for check in report.checks:
        before = found.get(check.name, check.status)
        found[check.name] = max(before, check.status, key=order.index)
    return found


def values(report: ReadinessReport, name: CheckName) -> list[str]:
    """Return what the checks of a name say."""
    return [check.problem for check in report.checks if check.name is name]
