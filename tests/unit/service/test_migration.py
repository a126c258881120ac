"""Copies of checkpoints: what is translated, what is refused, and what is left half-way."""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fsspec.implementations.memory import MemoryFileSystem
from upath import UPath

from airflow_mm2_offsets.core import ReplicationPolicy
from airflow_mm2_offsets.errors import (
    CheckpointError,
    ConfigurationError,
    TranslationRefusedError,
)
from airflow_mm2_offsets.kafka.cluster import KafkaCluster, TopicInfo
from airflow_mm2_offsets.service.migration import (
    DEFAULT_OPTIONS,
    MigrationOptions,
    migrate_checkpoint,
)
from airflow_mm2_offsets.service.migration.report import summarize_migration
from airflow_mm2_offsets.spark.checkpoint import read_checkpoint
from airflow_mm2_offsets.spark.copying import MARKER, inventory
from airflow_mm2_offsets.spark.state_metadata import read_state_metadata
from tests.unit.operators.clusters import describable
from tests.unit.service.pairs import Pair
from tests.unit.spark.checkpoints import batch, commit, orders, start, write

BEFORE = 5
"""Records on the target before the first copy of partition 0."""


@pytest.fixture
def copied(clusters: Pair, monkeypatch: pytest.MonkeyPatch) -> Pair:
    """Return clusters where all of orders was copied: n is n + 5 of partition 0, n of others."""
    describable(monkeypatch)
    clusters.copy("orders", range(100, 100 + BEFORE))
    for partition in range(4):
        shift = 0 if partition else BEFORE
        clusters.write("orders", range(10), partition)
        clusters.copy("orders", range(10), partition)
        clusters.sync("orders", (0, shift), (9, 9 + shift), partition=partition)
    return clusters


@pytest.fixture
def renamed(copied: Pair, monkeypatch: pytest.MonkeyPatch) -> Pair:
    """Return clusters where DefaultReplicationPolicy names the topics, and others beside them."""
    naming = replace(copied.pair.naming, policy=ReplicationPolicy.DEFAULT)
    monkeypatch.setattr(copied, "pair", replace(copied.pair, naming=naming))
    copied.copy("a.orders", range(100, 100 + BEFORE))
    for partition in range(4):
        copied.copy("a.orders", range(10), partition)
    for name in ("heartbeats", "a.orders-eu", "refunds"):
        copied.copy(name, range(3))
    return copied


def _ends(first: int, rest: int = 3) -> str:
    return orders(first, rest, rest, rest)


def _checkpoint(root: Path, **changes: str) -> UPath:
    """Write a checkpoint at orders[0] = 7, with state, and with all that lies beside."""
    files = {
        "sources/0/0": start(_ends(0, 0)),
        "offsets/3": batch(_ends(1, 0)),
        "offsets/4": batch(_ends(4, 1)),
        "offsets/5": batch(_ends(7)),
        "offsets/.5.crc": "of the original",
        "commits/4": commit(),
        "commits/5": commit(),
        "commits/.5.crc": "sum",
        "state/0/0/5.delta": "state" * 1000,
        "state/0/0/.5.delta.crc": "sum",
        "state/0/0/.6.delta.abc.tmp": "half",
        "_mm2_migration.json": "of an earlier move",
        ".metadata.crc": "sum",
    }
    changed = {name.replace("__", "/"): text for name, text in changes.items()}
    return UPath(write(root / "original", files | changed))


def _migrate(
    clusters: Pair, original: UPath, target: UPath, options: MigrationOptions = DEFAULT_OPTIONS
) -> dict[str, Any]:
    return migrate_checkpoint(clusters.pair, original, target, options)


def _targets(done: dict[str, Any], partition: int = 0) -> dict[str, str]:
    return {
        each["file"]: each["target"] for each in done["positions"] if each["partition"] == partition
    }


def test_the_copy_is_whole_and_translated(copied: Pair, tmp_path: Path) -> None:
    """Offsets are the target's, all else is as it was, and what Spark does not need is gone."""
    original, target = _checkpoint(tmp_path), UPath(tmp_path / "copy")
    before = inventory(original)
    done = _migrate(copied, original, target)

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
    original = _checkpoint(tmp_path, offsets__6=batch(_ends(9)))
    done = _migrate(copied, original, UPath(tmp_path / "copy"))
    checkpoint = read_checkpoint(str(tmp_path / "copy"))
    assert checkpoint.positions["orders"][0] == 12
    assert checkpoint.pending is not None
    assert checkpoint.pending["orders"][0] == 14
    assert (done["committed_batch"], done["pending_batch"]) == (5, 6)


def test_topics_get_the_names_of_the_target(renamed: Pair, tmp_path: Path) -> None:
    """The copy names them as the replication policy does, and the job is told to."""
    done = _migrate(renamed, _checkpoint(tmp_path), UPath(tmp_path / "copy"))
    assert read_checkpoint(str(tmp_path / "copy")).positions == {
        "a.orders": {0: 12, 1: 3, 2: 3, 3: 3}
    }
    assert done["notes"][0] == (
        "orders is called a.orders on the target: the job must subscribe to a.orders there"
    )


def test_what_is_not_exact_is_refused(copied: Pair, tmp_path: Path) -> None:
    """Each such position is named with its file; nothing is written."""
    original, target = _checkpoint(tmp_path), UPath(tmp_path / "copy")
    blind = replace(DEFAULT_OPTIONS.plan, read_source=False, max_bytes=0)
    with pytest.raises(TranslationRefusedError) as refused:
        _migrate(copied, original, target, MigrationOptions(plan=blind))
    assert "offsets/5 (start): orders[0] at 7: bounded: " in str(refused.value)
    assert "offsets/4" not in str(refused.value)
    assert not target.exists()

    done = _migrate(copied, original, target, MigrationOptions(plan=blind, allow_bounded=True))
    assert _targets(done)["offsets/5"] == "6"
    assert done["max_reread"] == (14 - 6) + 3 * (9 - 1)
    assert "lower bounds" in done["notes"][0]


def test_history_need_not_be_known(copied: Pair, tmp_path: Path) -> None:
    """Of a batch that never runs again only the file must be there: refusals don't count."""
    original = _checkpoint(tmp_path, offsets__4=batch(orders(40, 1, 1, 1)))
    done = _migrate(copied, original, UPath(tmp_path / "copy"))
    assert _targets(done)["offsets/5"] == "12"
    first = done["positions"][0]
    assert (first["file"], first["use"], first["status"]) == ("offsets/4", "history", "refused")


def test_beyond_the_source_s_end_is_poisoned(copied: Pair, tmp_path: Path) -> None:
    """A pending batch that ends where the source has never been is of another cluster."""
    original = _checkpoint(tmp_path, offsets__6=batch(_ends(14)))
    with pytest.raises(TranslationRefusedError, match=r"offsets/6 \(end\): .* is poisoned"):
        _migrate(copied, original, UPath(tmp_path / "copy"))


def test_partitions_that_the_checkpoint_does_not_know(copied: Pair, tmp_path: Path) -> None:
    """Spark begins them at their beginning, as the job would on the source; the report says so."""
    changes = {f"offsets__{number}": batch(orders(7, 3, 3)) for number in (4, 5)}
    done = _migrate(copied, _checkpoint(tmp_path, **changes), UPath(tmp_path / "copy"))
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
    original, target = _checkpoint(tmp_path, **changes), UPath(tmp_path / "copy")
    with pytest.raises(
        TranslationRefusedError, match=r"orders\[3\].* has held records up to 10, and"
    ):
        _migrate(copied, original, target)
    assert not target.exists()
    _migrate(copied, original, target, MigrationOptions(allow_new_partitions=True))


def test_a_partition_first_seen_by_the_pending_batch(copied: Pair, tmp_path: Path) -> None:
    """It's read from 0 on both sides, so 0 must be known to be 0."""
    known = {f"offsets__{number}": batch(orders(7, 3, 3)) for number in (4, 5)}
    original = _checkpoint(tmp_path, **known, offsets__6=batch(_ends(9)))
    done = _migrate(copied, original, UPath(tmp_path / "copy"))
    first = [each for each in done["positions"] if each["partition"] == 3]
    assert [(each["position"], each["target"]) for each in first] == [("3", "3"), ("0", "0")]


def test_a_beginning_that_holds_other_records(copied: Pair, tmp_path: Path) -> None:
    """What was on the target before the first copy would be read as if it were the source's."""
    ends = '{"orders":{"1":3,"2":3,"3":3}}'
    known = {f"offsets__{number}": batch(ends) for number in (4, 5)}
    original, target = _checkpoint(tmp_path, **known), UPath(tmp_path / "copy")
    wrong = r"\(beginning\): orders\[0\] at 0: Spark reads it from its beginning"
    with pytest.raises(TranslationRefusedError, match=wrong):
        _migrate(copied, original, target)
    assert not target.exists()

    pending = _checkpoint(tmp_path, **known, offsets__6=batch(_ends(9)))
    with pytest.raises(TranslationRefusedError, match=wrong):
        _migrate(copied, pending, target)


def test_a_second_run_accepts_the_first(copied: Pair, tmp_path: Path) -> None:
    """Nothing is written anew, even where a job has gone on from the copy."""
    original, target = _checkpoint(tmp_path), UPath(tmp_path / "copy")
    done = _migrate(copied, original, target)
    (target / "offsets" / "6").write_text(batch(_ends(14)))
    before = inventory(target)
    copied.stop()
    assert _migrate(copied, original, target) == done
    assert inventory(target) == before


def test_a_begun_copy_keeps_what_was_decided(
    copied: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A try that was killed goes on without the clusters, and mends what it left."""
    original, target = _checkpoint(tmp_path), UPath(tmp_path / "copy")
    with monkeypatch.context() as patch:
        patch.setattr("airflow_mm2_offsets.spark.copying.copy_file", _fails)
        with pytest.raises(CheckpointError, match="the storage is full"):
            _migrate(copied, original, target)
    copied.stop()
    (target / "state" / "0" / "0").mkdir(parents=True)
    (target / "state" / "0" / "0" / "5.delta").write_text("stale" * 1000)
    (target / "state" / "0" / "0" / ".5.delta.0.tmp").write_text("half")
    done = _migrate(copied, original, target)
    assert _targets(done)["offsets/5"] == "12"
    assert (target / "state" / "0" / "0" / "5.delta").read_text() == "state" * 1000


def test_what_does_not_read_back_is_no_copy(
    copied: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that came out otherwise is named, and nothing starts from it."""

    def garbles(source: UPath, target: UPath, _: object) -> None:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(source.read_bytes()[::-1])

    monkeypatch.setattr("airflow_mm2_offsets.spark.copying.copy_file", garbles)
    with pytest.raises(CheckpointError, match="what was written does not read back"):
        _migrate(copied, _checkpoint(tmp_path), UPath(tmp_path / "copy"))
    with pytest.raises(CheckpointError, match="metadata: half-written or damaged"):
        read_checkpoint(str(tmp_path / "copy"))


def test_what_does_not_belong_to_a_begun_copy(
    copied: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark would take a batch that somebody put there for the copy's own."""
    original, target = _checkpoint(tmp_path), UPath(tmp_path / "copy")
    with monkeypatch.context() as patch:
        patch.setattr("airflow_mm2_offsets.spark.copying.copy_file", _fails)
        with pytest.raises(CheckpointError, match="the storage is full"):
            _migrate(copied, original, target)
    (target / "offsets").mkdir(exist_ok=True)
    (target / "offsets" / "6").write_text(batch(_ends(99)))
    with pytest.raises(CheckpointError, match="offsets/6 should not be there"):
        _migrate(copied, original, target)


def _fails(*_: object) -> None:
    raise CheckpointError("the storage is full")


@pytest.mark.parametrize("name", ["metadata", "state/0/0/1.delta", "_mm2_migration.json"])
def test_another_one_s_place_is_refused(copied: Pair, tmp_path: Path, name: str) -> None:
    """Whatever is there stays as it is."""
    target = UPath(write(tmp_path / "copy", {name: "{}"}))
    if name != "metadata":
        (target / "metadata").unlink()
    before = inventory(target)
    with pytest.raises(CheckpointError, match=r"give a(nother)? location"):
        _migrate(copied, _checkpoint(tmp_path), target)
    assert inventory(target) == before


def test_the_copy_of_another_time_is_refused(copied: Pair, tmp_path: Path) -> None:
    """The job went on after it was copied: the copy is not of this checkpoint."""
    original, target = _checkpoint(tmp_path), UPath(tmp_path / "copy")
    _migrate(copied, original, target)
    _checkpoint(tmp_path, offsets__6=batch(_ends(9)))
    with pytest.raises(CheckpointError, match="a copy of another checkpoint, or of this one at"):
        _migrate(copied, original, target)


@pytest.mark.parametrize("scheme", ["", "file://"])
@pytest.mark.parametrize("place", ["original", "original/copy", "."])
def test_a_copy_needs_a_place_of_its_own(
    copied: Pair, tmp_path: Path, place: str, scheme: str
) -> None:
    """Within the original, or around it, however it is spelled, it would change it."""
    with pytest.raises(CheckpointError, match="needs a location of its own"):
        _migrate(copied, _checkpoint(tmp_path), UPath(f"{scheme}{tmp_path / place}"))


def test_a_job_that_still_runs_is_found_out(
    copied: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An original that changes meanwhile makes no checkpoint of the copy."""
    original, target = _checkpoint(tmp_path), UPath(tmp_path / "copy")

    def busy(*_: object) -> None:
        (original / "state" / "0" / "0" / "6.delta").write_text("more")

    monkeypatch.setattr("airflow_mm2_offsets.service.migration._check_reads_back", busy)
    with pytest.raises(CheckpointError, match="changed while it was copied"):
        _migrate(copied, original, target)
    with pytest.raises(CheckpointError, match="metadata: half-written or damaged"):
        read_checkpoint(target)


class Flaky:
    """Counts what a file system is asked, and fails it for good from one operation on."""

    ASKED = ("ls", "find", "info", "cp_file", "_open", "pipe_file", "cat_file")

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left = 10**9
        for name in self.ASKED:
            monkeypatch.setattr(MemoryFileSystem, name, self._wrap(getattr(MemoryFileSystem, name)))

    def _wrap(self, ask: Any) -> Any:  # noqa: ANN401 - any method
        def asked(fs: MemoryFileSystem, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
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
    local, original, target = _checkpoint(tmp_path), lake / "original", lake / "copy"
    for name in inventory(local):
        (original / name).write_bytes((local / name).read_bytes())
    flaky = Flaky(monkeypatch)
    failures = 0
    while True:
        flaky.left = failures
        try:
            done = _migrate(copied, original, target)
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
    local = _checkpoint(tmp_path, offsets__6=batch(_ends(9)))
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


@pytest.mark.parametrize(
    ("pattern", "foreign"),
    [
        (r"(a\.)?orders.*", "a.orders-eu, orders"),
        (r"^a\.orders", "a.orders-eu"),
        ("orders$", "orders"),
        (".*", "a.orders-eu, heartbeats, mm2-offset-syncs.a.internal, orders, refunds"),
    ],
)
def test_topics_that_the_job_would_begin_to_read(
    renamed: Pair, tmp_path: Path, pattern: str, foreign: str
) -> None:
    """A topic that matches anywhere, and that the checkpoint does not know, needs a word."""
    original, target = _checkpoint(tmp_path), UPath(tmp_path / "copy")
    with pytest.raises(TranslationRefusedError) as refused:
        _migrate(renamed, original, target, MigrationOptions(subscribe_pattern=pattern))
    assert f"matches {foreign} on the target, which the checkpoint does not" in str(refused.value)
    assert not target.exists()

    names = foreign.split(", ")
    options = MigrationOptions(subscribe_pattern=pattern, new_topics=names)
    notes = _migrate(renamed, original, target, options)["notes"]
    for name in names:
        assert f"{name}, which the checkpoint does not know, is read from its beginning" in notes


def test_a_pattern_of_the_source_s_names(renamed: Pair, tmp_path: Path) -> None:
    """Where the copies have other names, the job would pass them over in silence."""
    options = MigrationOptions(subscribe_pattern="^orders")
    with pytest.raises(TranslationRefusedError, match=r"does not match a\.orders, which the"):
        _migrate(renamed, _checkpoint(tmp_path), UPath(tmp_path / "copy"), options)


def test_a_pattern_that_matches_what_is_known(renamed: Pair, tmp_path: Path) -> None:
    """Then nothing is new."""
    options = MigrationOptions(subscribe_pattern=r"^a\.orders$")
    done = _migrate(renamed, _checkpoint(tmp_path), UPath(tmp_path / "copy"), options)
    assert not [note for note in done["notes"] if "does not know" in note]


@pytest.mark.parametrize("pattern", ["(", r"\p{Alpha}+", "[a-z&&[^o]]+", r"\Qorders\E"])
def test_a_pattern_of_java_s_own(renamed: Pair, tmp_path: Path, pattern: str) -> None:
    """What Python can't read, or reads otherwise, is not guessed at."""
    options = MigrationOptions(subscribe_pattern=pattern)
    with pytest.raises(ConfigurationError, match="means the same to Java and to Python"):
        _migrate(renamed, _checkpoint(tmp_path), UPath(tmp_path / "copy"), options)


_STATE = "state/0/_metadata/v2/0"
_SCHEMA = "state/0/_stateSchema/default/0_a4a5ba37"


def _transforming(root: Path, place: str, **changes: str) -> UPath:
    """Write a checkpoint of a query with ``transformWithState``, as Spark 4.2 does."""
    store = {
        "storeName": "default",
        "numColsPrefixKey": 0,
        "numPartitions": 1,
        "stateSchemaFilePaths": [f"{place}/{_SCHEMA}"],
    }
    metadata = {
        "operatorInfo": {"operatorId": 0, "operatorName": "transformWithStateInPySparkExec"},
        "stateStoreInfo": [store],
        "operatorPropertiesJson": '{"timeMode":"NoTime","stateVariables":[]}',
    }
    files = {
        _STATE.replace("/", "__"): f"v2\n{json.dumps(metadata, separators=(',', ':'))}",
        "state__0___metadata__v2__.0.crc": "sum",
        "state__1___metadata__metadata": 'v1\n{"operatorInfo":{}}',
        _SCHEMA.replace("/", "__"): "schema",
    }
    return _checkpoint(root, **files | changes)


def test_state_metadata_names_the_copy(copied: Pair, tmp_path: Path) -> None:
    """Absolute paths to the state's schema are the copy's own; all else in the file stays."""
    original = _transforming(tmp_path, f"file:{tmp_path}/original")
    target = UPath(tmp_path / "copy")
    done = _migrate(copied, original, target)
    text = (original / _STATE).read_text()
    assert (target / _STATE).read_text() == text.replace("/original/", "/copy/")
    assert (target / "state/1/_metadata/metadata").read_text() == 'v1\n{"operatorInfo":{}}'
    assert not (target / "state/0/_metadata/v2/.0.crc").exists()
    for name in inventory(target):
        assert f"{tmp_path}/original" not in (target / name).read_text() or name == MARKER
    assert _migrate(copied, original, target) == done


def test_what_spark_wrote_is_understood() -> None:
    """Spark 4.2's own file names the schema's file of the copy."""
    recorded = UPath(Path(__file__).parents[1] / "spark" / "recorded" / "transforming")
    (file,) = read_state_metadata(recorded, inventory(recorded))
    moved = file.move(UPath("/data/copy"), None)
    assert moved == file.text.replace("file:/data/checkpoint/", "file:/data/copy/")


def test_a_checkpoint_that_was_moved_before(copied: Pair, tmp_path: Path) -> None:
    """Paths into a third place are mended as well, as long as the files are here."""
    original = _transforming(tmp_path, "file:/elsewhere")
    _migrate(copied, original, UPath(tmp_path / "copy"))
    assert f"file:{tmp_path}/copy/{_SCHEMA}" in (tmp_path / "copy" / _STATE).read_text()


def test_a_copy_on_another_storage_needs_spark_s_word(copied: Pair, tmp_path: Path) -> None:
    """Nobody can tell how Spark spells a location on a storage it has not named."""
    original, target = _transforming(tmp_path, "s3a://bucket/original"), UPath(tmp_path / "copy")
    with pytest.raises(CheckpointError, match="say in target_uri how Spark spells that location"):
        _migrate(copied, original, target)
    assert not target.exists()
    _migrate(copied, original, target, MigrationOptions(target_uri="file:///data/copy/"))
    assert f'"file:///data/copy/{_SCHEMA}"' in (target / _STATE).read_text()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"state__0___metadata__v3__0": "v3\n{}"}, "v3/0: operator metadata of a layout"),
        ({"state__2___metadata__v2__0": "v9\n{}"}, "not v2 of operator metadata: 'v9'"),
        (
            {
                "state__2___metadata__v2__0": "v2\n"
                '{"stateStoreInfo":[{"stateSchemaFilePaths":["file:/c/state/2/_stateSchema/x"]}]}'
            },
            "the checkpoint has no state/2/_stateSchema/x",
        ),
        (
            {
                "state__2___metadata__v2__0": "v2\n"
                '{"stateStoreInfo":[{"stateSchemaFilePaths":["file:/c/schema"]}]}'
            },
            "names file:/c/schema, which is no file of a checkpoint's state schema",
        ),
    ],
)
def test_what_can_not_stand_alone_is_refused(
    copied: Pair, tmp_path: Path, changes: dict[str, str], message: str
) -> None:
    """A copy that would need files outside it is never made."""
    original = _transforming(tmp_path, f"file:{tmp_path}/original", **changes)
    target = UPath(tmp_path / "copy")
    with pytest.raises(CheckpointError, match=re.escape(message)):
        _migrate(copied, original, target)
    assert not target.exists()
