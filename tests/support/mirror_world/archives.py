"""Archives a world's syncs topic, at the times at which the world has a step ``archive``."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import dropwhile

from upath import UPath

from airflow_mm2_offsets.archive import SyncArchive
from airflow_mm2_offsets.archive.update import archive_syncs
from airflow_mm2_offsets.core import SyncsLocation
from airflow_mm2_offsets.errors import SyncsTopicError
from tests.support.mirror_world.clusters import Reach, WorldClusters
from tests.support.mirror_world.world import MirrorWorld


@dataclass(frozen=True, slots=True, kw_only=True)
class Archived:
    """The syncs that an archive holds of a world."""

    syncs: tuple[tuple[int, int], ...] = ()
    of_target: tuple[int, ...] = ()
    targets: frozenset[int] = frozenset()
    """The incarnations of the target topic that it has seen."""

    @classmethod
    def of(cls, world: MirrorWorld, *, syncs_read: int) -> "Archived":
        """Return what it holds, and what was read of the topic since: so many of its syncs."""
        logs = {each.syncs.incarnation: each.syncs for each in world.archived}
        archived_log = logs.get(world.syncs.incarnation)
        if syncs_read > len(archived_log.syncs if archived_log else ()):
            logs[world.syncs.incarnation] = world.syncs.until(syncs_read)
        # Before a topic has its first sync, the archive does not know of it, and notes no id.
        with_syncs = dropwhile(lambda each: not each.syncs.syncs, world.archived)
        return cls(
            syncs=tuple(sync for log in logs.values() for sync in log.syncs),
            of_target=tuple(target for log in logs.values() for target in log.of_target),
            targets=frozenset(each.target.incarnation for each in with_syncs),
        )


@contextmanager
def archive_of(
    world: MirrorWorld, *, partitions: int, on: SyncsLocation, reach: Reach | None = None
) -> Iterator[SyncArchive]:
    """Yield the archive, in memory, that running now and then would have made.

    Args:
        world: What it was like at each run is in ``archived``.
        partitions: How many the topic has.
        on: Where the syncs topic lies.
        reach: What each run can reach; ``partitions`` does not count then.
    """
    folder = UPath(f"memory://mirror-world/{id(world)}")
    archive = SyncArchive(folder)
    reach = reach or Reach(partitions=partitions, connect=False)
    try:
        for then in world.archived:
            clusters = WorldClusters(then, reach, on=on)
            try:
                archive_syncs(clusters.pair, archive)
            except SyncsTopicError:
                continue  # There was no sync yet.
        yield archive
    finally:
        if folder.exists():
            folder.fs.rm(folder.path, recursive=True)
