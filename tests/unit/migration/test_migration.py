"""Copies of checkpoints: what is translated, what is refused, and what is left half-way."""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from upath import UPath

from airflow_mm2_offsets.errors import (
    CheckpointError,
    TranslationRefusedError,
)
from airflow_mm2_offsets.kafka.cluster import KafkaCluster
from airflow_mm2_offsets.kafka.descriptions import TopicInfo
from airflow_mm2_offsets.migration import (
    DEFAULT_OPTIONS,
    MigrationOptions,
)
from airflow_mm2_offsets.migration.report import summarize_migration
from airflow_mm2_offsets.spark.checkpoint import read_checkpoint
from airflow_mm2_offsets.spark.checkpoint_copy import inventory
from tests.support.pairs import Pair
from tests.unit.migration.migrating import ends, migrate, write_checkpoint
from tests.unit.spark.checkpoints import batch, orders, write


def _targets(done: dict[str, Any], partition: int = 0) -> dict[str, str]:
    return {
        each["file"]: each["target"] for each in done["positions"] if each["partition"] == partition
    }


def test_the_copy_is_whole_and_translated(copied: Pair, tmp_path: Path) -> None:
    """Offsets are the target's, all else is as it was, and what Spark does not need is gone."""
    original, target = write_checkpoint(tmp_path), UPath(tmp_path / "copy")
    before = inventory(original)
    done = migrate(copied, original, target)

    assert inventory(original) == before
    assert read_checkpoint(target).positions == {"orders": {0: 12, 1: 3, 2: 3, 3: 3}}
    assert sorted(inventory(target)) == [
        "_mm2_migration.json",
        "commits/.5.crc",
        "commits/4",
        "commits/5",
        "metadata",
        "offsets/4",
        "offsets/5",
        "state/0/0/.5.delta.crc",
        "state/0/0/5.delta",
    ]
    for name in ("metadata", "commits/5", "state/0/0/5.delta"):
        assert (target / name).read_bytes() == (original / name).read_bytes()
    assert _targets(done) == {"offsets/4": "9", "offsets/5": "12"}
    assert (done["committed_batch"], done["pending_batch"], done["max_reread"]) == (5, None, 0)
    assert (done["topics"], done["notes"]) == ({"orders": "orders"}, [])
    assert "at most 0 records counted twice" in summarize_migration(done)


def test_a_pending_batch_keeps_both_ends(copied: Pair, tmp_path: Path) -> None:
    """It runs again over the same records: its start and its end are translated."""
    original = write_checkpoint(tmp_path, offsets__6=batch(ends(9)))
    done = migrate(copied, original, UPath(tmp_path / "copy"))
    checkpoint = read_checkpoint(str(tmp_path / "copy"))
    assert checkpoint.positions["orders"][0] == 12
    assert checkpoint.pending is not None
    assert checkpoint.pending["orders"][0] == 14
    assert (done["committed_batch"], done["pending_batch"]) == (5, 6)


def test_topics_get_the_names_of_the_target(renamed: Pair, tmp_path: Path) -> None:
    """The copy names them as the replication policy does, and the job is told to."""
    done = migrate(renamed, write_checkpoint(tmp_path), UPath(tmp_path / "copy"))
    assert read_checkpoint(str(tmp_path / "copy")).positions == {
        "a.orders": {0: 12, 1: 3, 2: 3, 3: 3}
    }
    assert done["notes"][0] == (
        "orders is called a.orders on the target: the job must subscribe to a.orders there"
    )


def test_what_is_not_exact_is_refused(copied: Pair, tmp_path: Path) -> None:
    """Each such position is named with its file; nothing is written."""
    original, target = write_checkpoint(tmp_path), UPath(tmp_path / "copy")
    blind = replace(DEFAULT_OPTIONS.plan, read_source=False, max_evidence_bytes=0)
    with pytest.raises(TranslationRefusedError) as refused:
        migrate(copied, original, target, MigrationOptions(plan=blind))
    assert "offsets/5 (start): orders[0] at 7: bounded: " in str(refused.value)
    assert "offsets/4" not in str(refused.value)
    assert not target.exists()

    done = migrate(copied, original, target, MigrationOptions(plan=blind, allow_bounded=True))
    # Records may lie at the target's beginning that were copied before the first known sync.
    assert _targets(done)["offsets/5"] == "0"
    assert done["max_reread"] == (14 - 0) + 3 * (9 - 1)
    assert "lower bounds" in done["notes"][0]


def test_history_need_not_be_known(copied: Pair, tmp_path: Path) -> None:
    """Of a batch that never runs again only the file must be there: refusals don't count."""
    original = write_checkpoint(tmp_path, offsets__4=batch(orders(40, 1, 1, 1)))
    done = migrate(copied, original, UPath(tmp_path / "copy"))
    assert _targets(done)["offsets/5"] == "12"
    first = done["positions"][0]
    assert (first["file"], first["use"], first["status"]) == ("offsets/4", "history", "refused")


def test_beyond_the_source_s_end_is_poisoned(copied: Pair, tmp_path: Path) -> None:
    """A pending batch that ends where the source has never been is of another cluster."""
    original = write_checkpoint(tmp_path, offsets__6=batch(ends(14)))
    with pytest.raises(TranslationRefusedError, match=r"offsets/6 \(end\): .* is poisoned"):
        migrate(copied, original, UPath(tmp_path / "copy"))


def test_partitions_that_the_checkpoint_does_not_know(copied: Pair, tmp_path: Path) -> None:
    """Spark begins them at their beginning, as the job would on the source; the report says so."""
    changes = {f"offsets__{number}": batch(orders(7, 3, 3)) for number in (4, 5)}
    done = migrate(copied, write_checkpoint(tmp_path, **changes), UPath(tmp_path / "copy"))
    assert done["notes"] == [
        "orders[3], which the checkpoint does not know, is read from its beginning"
    ]


def test_a_partition_that_the_source_has_not(
    copied: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Records there are of somebody else, and the job would read them."""
    topics = type(copied.pair.source).topics

    def of_three(cluster: KafkaCluster, names: Iterable[str]) -> dict[str, TopicInfo]:
        found = topics(cluster, names)
        if cluster.name == "target":
            return found
        return {name: replace(info, partitions=3) for name, info in found.items()}

    monkeypatch.setattr(KafkaCluster, "topics", of_three)
    changes = {f"offsets__{number}": batch(orders(7, 3, 3)) for number in (4, 5)}
    original, target = write_checkpoint(tmp_path, **changes), UPath(tmp_path / "copy")
    with pytest.raises(
        TranslationRefusedError, match=r"orders\[3\].* has held records up to 10, and"
    ):
        migrate(copied, original, target)
    assert not target.exists()
    migrate(copied, original, target, MigrationOptions(allow_new_partitions=True))


def test_a_partition_first_seen_by_the_pending_batch(copied: Pair, tmp_path: Path) -> None:
    """It's read from 0 on both sides, so 0 must be known to be 0."""
    known = {f"offsets__{number}": batch(orders(7, 3, 3)) for number in (4, 5)}
    original = write_checkpoint(tmp_path, **known, offsets__6=batch(ends(9)))
    done = migrate(copied, original, UPath(tmp_path / "copy"))
    first = [each for each in done["positions"] if each["partition"] == 3]
    assert [(each["position"], each["target"]) for each in first] == [("3", "3"), ("0", "0")]


def test_a_beginning_that_holds_other_records(copied: Pair, tmp_path: Path) -> None:
    """What was on the target before the first copy would be read as if it were the source's."""
    known_ends = '{"orders":{"1":3,"2":3,"3":3}}'
    known = {f"offsets__{number}": batch(known_ends) for number in (4, 5)}
    original, target = write_checkpoint(tmp_path, **known), UPath(tmp_path / "copy")
    wrong = r"\(beginning\): orders\[0\] at 0: Spark reads it from its beginning"
    with pytest.raises(TranslationRefusedError, match=wrong):
        migrate(copied, original, target)
    assert not target.exists()

    pending = write_checkpoint(tmp_path, **known, offsets__6=batch(ends(9)))
    with pytest.raises(TranslationRefusedError, match=wrong):
        migrate(copied, pending, target)


def test_a_second_run_accepts_the_first(copied: Pair, tmp_path: Path) -> None:
    """Nothing is written anew, even where a job has gone on from the copy."""
    original, target = write_checkpoint(tmp_path), UPath(tmp_path / "copy")
    done = migrate(copied, original, target)
    (target / "offsets" / "6").write_text(batch(ends(14)))
    before = inventory(target)
    copied.target.is_running = copied.source.is_running = False
    assert migrate(copied, original, target) == done
    assert inventory(target) == before


def test_a_begun_copy_keeps_what_was_decided(
    copied: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A try that was killed goes on without the clusters, and mends what it left."""
    original, target = write_checkpoint(tmp_path), UPath(tmp_path / "copy")
    _break_off(copied, original, target, monkeypatch)
    copied.target.is_running = copied.source.is_running = False
    (target / "state" / "0" / "0").mkdir(parents=True)
    (target / "state" / "0" / "0" / "5.delta").write_text("stale" * 1000)
    (target / "state" / "0" / "0" / ".5.delta.0.tmp").write_text("half")
    done = migrate(copied, original, target)
    assert _targets(done)["offsets/5"] == "12"
    assert (target / "state" / "0" / "0" / "5.delta").read_text() == "state" * 1000


def test_what_does_not_read_back_is_no_copy(
    copied: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that came out otherwise is named, and nothing starts from it."""

    def garbles(source: UPath, target: UPath, _: object) -> None:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(source.read_bytes()[::-1])

    monkeypatch.setattr("airflow_mm2_offsets.spark.checkpoint_copy.copy_file", garbles)
    with pytest.raises(CheckpointError, match="what was written does not read back"):
        migrate(copied, write_checkpoint(tmp_path), UPath(tmp_path / "copy"))
    with pytest.raises(CheckpointError, match="metadata: half-written or damaged"):
        read_checkpoint(str(tmp_path / "copy"))


def test_what_does_not_belong_to_a_begun_copy(
    copied: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark would take a batch that somebody put there for the copy's own."""
    original, target = write_checkpoint(tmp_path), UPath(tmp_path / "copy")
    _break_off(copied, original, target, monkeypatch)
    (target / "offsets").mkdir(exist_ok=True)
    (target / "offsets" / "6").write_text(batch(ends(99)))
    with pytest.raises(CheckpointError, match="offsets/6 should not be there"):
        migrate(copied, original, target)


def _fails(*_: object) -> None:
    raise CheckpointError("the storage is full")


def _break_off(pair: Pair, original: UPath, target: UPath, monkeypatch: pytest.MonkeyPatch) -> None:
    """Begin a copy, and fail at its first file."""
    with monkeypatch.context() as patch:
        patch.setattr("airflow_mm2_offsets.spark.checkpoint_copy.copy_file", _fails)
        with pytest.raises(CheckpointError, match="the storage is full"):
            migrate(pair, original, target)


@pytest.mark.parametrize("name", ["metadata", "state/0/0/1.delta", "_mm2_migration.json"])
def test_another_one_s_place_is_refused(copied: Pair, tmp_path: Path, name: str) -> None:
    """Whatever is there stays as it is."""
    target = UPath(write(tmp_path / "copy", {name: "{}"}))
    if name != "metadata":
        (target / "metadata").unlink()
    before = inventory(target)
    with pytest.raises(CheckpointError, match=r"give a(nother)? location"):
        migrate(copied, write_checkpoint(tmp_path), target)
    assert inventory(target) == before


def test_the_copy_of_another_time_is_refused(copied: Pair, tmp_path: Path) -> None:
    """The job went on after it was copied: the copy is not of this checkpoint."""
    original, target = write_checkpoint(tmp_path), UPath(tmp_path / "copy")
    migrate(copied, original, target)
    write_checkpoint(tmp_path, offsets__6=batch(ends(9)))
    with pytest.raises(CheckpointError, match="a copy of another checkpoint, or of this one at"):
        migrate(copied, original, target)


@pytest.mark.parametrize("scheme", ["", "file://"])
@pytest.mark.parametrize("place", ["original", "original/copy", "."])
def test_a_copy_needs_a_separate_location(
    copied: Pair, tmp_path: Path, place: str, scheme: str
) -> None:
    """Within the original, or around it, however it is spelled, it would change it."""
    with pytest.raises(CheckpointError, match="give the copy a separate location"):
        migrate(copied, write_checkpoint(tmp_path), UPath(f"{scheme}{tmp_path / place}"))


def test_a_job_that_still_runs_is_found_out(
    copied: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An original that changes meanwhile makes no checkpoint of the copy."""
    original, target = write_checkpoint(tmp_path), UPath(tmp_path / "copy")

    def busy(*_: object) -> None:
        (original / "state" / "0" / "0" / "6.delta").write_text("more")

    monkeypatch.setattr("airflow_mm2_offsets.migration._check_reads_back", busy)
    with pytest.raises(CheckpointError, match="changed while it was copied"):
        migrate(copied, original, target)
    with pytest.raises(CheckpointError, match="metadata: half-written or damaged"):
        read_checkpoint(target)


MEMORY_FILE_SYSTEM = type(UPath("memory://").fs)


class Flaky:
    """Counts what a file system is asked, and fails it for good from one operation on."""

    REQUEST_ID = ("ls", "find", "info", "cp_file", "_open", "pipe_file", "cat_file")

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left = 10**9
        for name in self.REQUEST_ID:
            ask = getattr(MEMORY_FILE_SYSTEM, name)
            monkeypatch.setattr(MEMORY_FILE_SYSTEM, name, self._wrap(ask))

    def _wrap(self, ask: Any) -> Any:  # noqa: ANN401 - any method
        def asked(fs: object, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
            self.left -= 1
            if self.left < 0:
                raise PermissionError("the token has expired")
            return ask(fs, *args, **kwargs)

        return asked


@pytest.fixture
def lake() -> Iterator[UPath]:
    """A folder on a storage that is not local."""
    root = UPath("memory://lake")
    yield root
    if root.exists():
        root.fs.rm(root.path, recursive=True)


def test_a_storage_that_fails_midway(
    copied: Pair, tmp_path: Path, lake: UPath, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever it fails: one clear error, nothing that looks whole, and the next try goes on."""
    local, original, target = write_checkpoint(tmp_path), lake / "original", lake / "copy"
    for name in inventory(local):
        (original / name).write_bytes((local / name).read_bytes())
    flaky = Flaky(monkeypatch)
    failures = 0
    while True:
        flaky.left = failures
        try:
            done = migrate(copied, original, target)
        except CheckpointError as error:
            assert re.match(r"memory:/+lake/.* out of reach: PermissionError", str(error))  # noqa: PT017 - each try
            failures += 1
        else:
            break
        flaky.left = 10**9
        with pytest.raises(CheckpointError):
            read_checkpoint(target)
    assert failures > 30
    flaky.left = 10**9
    assert _targets(done)["offsets/5"] == "12"
    assert read_checkpoint(target).positions["orders"][0] == 12
    assert json.loads((target / "_mm2_migration.json").read_text())["kept"] == done


def test_reading_from_a_storage_that_fails_midway(
    tmp_path: Path, lake: UPath, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever it fails, it's one clear error that names the place."""
    local = write_checkpoint(tmp_path, offsets__6=batch(ends(9)))
    for name in inventory(local):
        (lake / name).write_bytes((local / name).read_bytes())
    flaky = Flaky(monkeypatch)
    for asked in range(100):
        flaky.left = asked
        try:
            checkpoint = read_checkpoint(lake)
        except CheckpointError as error:
            assert re.match(r"memory:/+lake.* out of reach: PermissionError: the token", str(error))  # noqa: PT017 - each try
        else:
            break
    assert asked > 5
    assert checkpoint.pending_batch == 6
