"""Copies a Spark checkpoint so that the query continues on the target.

``MigrateSparkCheckpointOperator`` calls ``migrate_checkpoint``.
"""

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Self

from upath import UPath

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.core.ids import PairIds
from airflow_mm2_offsets.errors import CheckpointError, HandoverError, NotReadyError
from airflow_mm2_offsets.locations import folder_id
from airflow_mm2_offsets.migration.new_partitions import new_partitions
from airflow_mm2_offsets.migration.new_topics import new_topics
from airflow_mm2_offsets.migration.plan import (
    MigrationPlan,
    RequiredPosition,
    check_plan,
    make_plan,
    required_positions,
)
from airflow_mm2_offsets.migration.report import SCHEMA_VERSION, report
from airflow_mm2_offsets.planning.options import PlanOptions
from airflow_mm2_offsets.planning.subscribe_pattern import JobPatterns
from airflow_mm2_offsets.positions.checkpoint import open_checkpoint, read_checkpoint_of
from airflow_mm2_offsets.spark.checkpoint import read_checkpoint
from airflow_mm2_offsets.spark.checkpoint_copy import (
    MARKER,
    METADATA,
    CheckpointCopy,
    crc_name,
    inventory,
    is_temporary,
)
from airflow_mm2_offsets.spark.logs import CheckpointLogs, read_logs
from airflow_mm2_offsets.spark.position_ids import note_ids
from airflow_mm2_offsets.spark.rewriting import OffsetFile, kafka_sources, offset_files
from airflow_mm2_offsets.spark.sinks import SinkWriter, find_sink_problems
from airflow_mm2_offsets.spark.state_metadata import StateMetadata, read_state_metadata

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrationOptions:
    """What the user decides about a migration."""

    plan: PlanOptions = field(default_factory=PlanOptions)
    """How positions are translated; fallbacks are not taken."""
    allow_bounded: bool = False
    """Take the lower bound where a position is not known exactly: nothing is lost, and records
    may be counted twice."""
    allow_new_partitions: bool = False
    """Accept any content in partitions of the target that the checkpoint does not know: for jobs
    that name their partitions (``assign``)."""
    subscribe_pattern: str | None = None
    """The job's ``subscribePattern`` on the target; empty: it subscribes by name; None: as on the
    source."""
    source_patterns: Sequence[str] = ()
    """The ``subscribePattern`` texts that the job on the source has written."""
    new_topics: Collection[str] = ()
    """Matching topics that the checkpoint does not know and the job may begin to read."""
    sink: UPath | None = None
    """Where the job writes; a sink that is ahead of the checkpoint is refused."""
    txn_app_id: str | None = None
    """The name under which the job writes there, see ``SinkWriter``."""
    target_uri: str | None = None
    """How Spark spells the copy's location, if the original's spelling does not tell."""
    open_path: Callable[[str], UPath] = open_checkpoint
    """Makes a path of a location that a file beside the original names."""


DEFAULT_OPTIONS = MigrationOptions()


def migrate_checkpoint(
    pair: ClusterPair,
    original: UPath,
    target: UPath,
    options: MigrationOptions = DEFAULT_OPTIONS,
) -> dict[str, Any]:
    """Write a copy of a stopped query's checkpoint with the target cluster's offsets.

    The original is only read. A copy that an earlier try finished is accepted as it is; a copy
    that an earlier try began continues with the plan of that try.

    Args:
        pair: The clusters.
        original: The checkpoint of the job on the source.
        target: Where to write the copy: nothing may be there, or a copy of this migration.
        options: What the user decides.

    Returns:
        What was done, as plain JSON; see ``docs/checkpoints.md``.

    Raises:
        ForeignPositionsError: A file beside the original says that its positions are of another
            cluster than the source, or of a topic that was recreated since.
        CheckpointError: The original can't be read or is being written to, something else is at
            the target, or a storage failed.
        NotReadyError: The sink has batches that the checkpoint does not know.
        TranslationRefusedError: A position is not known exactly.
        Mm2OffsetsError: See ``planning.plan.plan_failover``.
    """
    _check_apart(original, target)
    read_checkpoint_of(
        pair, original, open_path=options.open_path, ask_source=options.plan.read_source
    )
    checkpoint = _Original.read(original)
    copy = CheckpointCopy.open(target, checkpoint.identity(pair))
    if copy.report is not None:
        return dict(copy.report)
    _check_sink(checkpoint.logs, options)
    required = required_positions(checkpoint.files)
    # Spark writes absolute paths into the metadata of the state: they must name the copy.
    state_texts = {file.name: file.move(target, options.target_uri) for file in checkpoint.state}
    plan = _decide(pair, checkpoint.files, required, copy, options)
    sizes = checkpoint.copy_to(copy, plan, state_texts)
    done = report(checkpoint.logs, required, plan, target) | sizes
    copy.finish(original, done)
    _note_cluster(target, plan)
    return done


def _note_cluster(target: UPath, plan: MigrationPlan) -> None:
    """Note beside the copy that its positions are of the target; see ``positions.checkpoint``."""
    try:
        for each in plan.plans[:1]:
            ids = PairIds(source=each.ids.target)
            note_ids(target, read_checkpoint(target), "migration", ids)
    except (CheckpointError, HandoverError) as error:
        # The copy is whole, and its job says itself which brokers it reads.
        log.warning("The cluster of the copy is not noted: %s", error)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Original:
    """The checkpoint to migrate."""

    place: UPath
    inventory: Mapping[str, tuple[int, str]]
    logs: CheckpointLogs
    files: Sequence[OffsetFile]
    state: Sequence[StateMetadata]

    @classmethod
    def read(cls, place: UPath) -> Self:
        before = inventory(place)
        logs = read_logs(place)
        return cls(
            place=place,
            inventory=before,
            logs=logs,
            files=offset_files(logs),
            state=read_state_metadata(place, before),
        )

    def identity(self, pair: ClusterPair) -> dict[str, Any]:
        """Return what tells this migration from any other; a location has too many names."""
        digest = sha256()
        for file in self.files:
            digest.update(f"{file.name}\n{file.text}\n".encode())
        return {
            "schema_version": SCHEMA_VERSION,
            "query_id": self.logs.query_id,
            "offsets": digest.hexdigest(),
            "from": pair.naming.source_alias,
            "to": pair.naming.target_alias,
        }

    def copy_to(
        self, copy: CheckpointCopy, plan: MigrationPlan, state_texts: Mapping[str, str]
    ) -> dict[str, int]:
        """Copy and rewrite all files but the last one; return the number of files and bytes."""
        targets = plan.targets()
        copied = self._copied()
        written = {file.name: file.rewrite(targets.__getitem__) for file in self.files}
        written |= state_texts
        copy.fill(self.place, copied, written)
        _check_reads_back(self.logs, copy.root)
        if inventory(self.place) != self.inventory:
            raise CheckpointError(
                f"{self.place}: changed while it was copied, so the job still runs; stop it, "
                f"delete {copy.root}, and migrate again"
            )
        return {"files": len(copied) + len(written) + 1, "bytes": sum(copied.values())}

    def _copied(self) -> dict[str, int]:
        """Return the files to copy as they are, and their sizes.

        Leaves out Hadoop's check sums of files that are rewritten or left out.
        """
        own = {METADATA, MARKER, *(file.name for file in self.state)}
        own |= {crc_name(name) for name in own}
        left = ("offsets/", *(f"sources/{name}/" for name in kafka_sources(self.logs)))
        return {
            name: size
            for name, (size, _) in self.inventory.items()
            if not (name in own or name.startswith(left) or is_temporary(name))
        }


def _check_apart(original: UPath, target: UPath) -> None:
    one, other = folder_id(original), folder_id(target)
    if one.startswith(other) or other.startswith(one):
        raise CheckpointError(
            f"{target}: one of this location and {original} contains the other; give the copy a "
            f"separate location, because the original must not change"
        )


def _check_sink(logs: CheckpointLogs, options: MigrationOptions) -> None:
    if options.sink is None:
        return
    writer = SinkWriter(
        query_id=logs.query_id,
        first_batch=max(logs.newest, logs.committed or 0) + 1,
        txn_app_id=options.txn_app_id,
    )
    if problems := find_sink_problems(options.sink, writer):
        raise NotReadyError("\n".join(problems))


def _decide(
    pair: ClusterPair,
    files: Sequence[OffsetFile],
    required: Sequence[RequiredPosition],
    copy: CheckpointCopy,
    options: MigrationOptions,
) -> MigrationPlan:
    """Return the plan that an earlier try has saved, or make a new one and save it."""
    if copy.plan is None:
        plan = _plan(pair, files, required, options)
    else:
        plan = MigrationPlan.from_json(copy.plan)
    check_plan(plan, required, allow_bounded=options.allow_bounded)
    copy.begin(plan.to_json())
    return plan


def _plan(
    pair: ClusterPair,
    files: Sequence[OffsetFile],
    required: Sequence[RequiredPosition],
    options: MigrationOptions,
) -> MigrationPlan:
    new = new_partitions(
        pair, files, read_source=options.plan.read_source, check=not options.allow_new_partitions
    )
    patterns = JobPatterns(requested=options.subscribe_pattern, source=options.source_patterns)
    topics = new_topics(pair, files, patterns, options.new_topics)
    notes = [*new.notes, *topics]
    plan = make_plan(pair, [*required, *new.required], options=options.plan, notes=notes)
    check_plan(plan, new.required, allow_bounded=options.allow_bounded)
    return plan


def _check_reads_back(logs: CheckpointLogs, target: UPath) -> None:
    """Raise unless the copy has the same batches as the original."""
    copy = read_logs(target, query_id=logs.query_id)
    batches = (copy.committed, copy.base, copy.pending)
    if batches != (logs.committed, logs.base, logs.pending):
        raise CheckpointError(
            f"{target}: reads back as batches {batches}, not as {logs.committed}, {logs.base} and "
            f"{logs.pending} (committed, logged, pending); delete it and migrate again"
        )
