"""State that names files of its checkpoint by absolute paths: the copy stands alone."""

import json
import re
from pathlib import Path

import pytest
from upath import UPath

from airflow_mm2_offsets.errors import CheckpointError
from airflow_mm2_offsets.migration import MigrationOptions
from airflow_mm2_offsets.spark.checkpoint_copy import MARKER, inventory
from airflow_mm2_offsets.spark.state_metadata import read_state_metadata
from tests.support.pairs import Pair
from tests.unit.migration.migrating import migrate, write_checkpoint

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
    return write_checkpoint(root, **files | changes)


def test_state_metadata_names_the_copy(copied: Pair, tmp_path: Path) -> None:
    """Absolute paths to the state's schema are the copy's own; all else in the file stays."""
    original = _transforming(tmp_path, f"file:{tmp_path}/original")
    target = UPath(tmp_path / "copy")
    done = migrate(copied, original, target)
    text = (original / _STATE).read_text()
    assert (target / _STATE).read_text() == text.replace("/original/", "/copy/")
    assert (target / "state/1/_metadata/metadata").read_text() == 'v1\n{"operatorInfo":{}}'
    assert not (target / "state/0/_metadata/v2/.0.crc").exists()
    for name in inventory(target):
        assert f"{tmp_path}/original" not in (target / name).read_text() or name == MARKER
    assert migrate(copied, original, target) == done


def test_what_spark_wrote_is_understood() -> None:
    """Spark 4.2's own file names the schema's file of the copy."""
    recorded = UPath(Path(__file__).parents[1] / "spark" / "recorded" / "transforming")
    (file,) = read_state_metadata(recorded, inventory(recorded))
    moved = file.move(UPath("/data/copy"), None)
    assert moved == file.text.replace("file:/data/checkpoint/", "file:/data/copy/")


def test_a_checkpoint_that_was_moved_before(copied: Pair, tmp_path: Path) -> None:
    """Paths into a third place are mended as well, as long as the files are here."""
    original = _transforming(tmp_path, "file:/elsewhere")
    migrate(copied, original, UPath(tmp_path / "copy"))
    assert f"file:{tmp_path}/copy/{_SCHEMA}" in (tmp_path / "copy" / _STATE).read_text()


def test_a_copy_on_another_storage_needs_spark_s_word(copied: Pair, tmp_path: Path) -> None:
    """Nobody can tell how Spark spells a location on a storage it has not named."""
    original, target = _transforming(tmp_path, "s3a://bucket/original"), UPath(tmp_path / "copy")
    with pytest.raises(CheckpointError, match="say in target_uri how Spark spells that location"):
        migrate(copied, original, target)
    assert not target.exists()
    migrate(copied, original, target, MigrationOptions(target_uri="file:///data/copy/"))
    assert f'"file:///data/copy/{_SCHEMA}"' in (target / _STATE).read_text()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"state__0___metadata__v3__0": "v3\n{}"}, "v3/0: operator metadata of an unknown layout"),
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
            "names file:/c/schema, which is not a file of a checkpoint's state schema",
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
        migrate(copied, original, target)
    assert not target.exists()
