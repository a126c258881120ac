"""Absolute paths in a checkpoint: operators' metadata names the files of their state's schema.

``OperatorStateMetadataV2``, which ``transformWithState`` writes (Spark 4.0 on), keeps the whole
URI of each ``state/N/_stateSchema/...``. In a copy they must name the copy's files: Spark reads the
schema there, and creates the folder if it is missing. ``migration/`` calls this module.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from upath import UPath

from airflow_mm2_offsets.errors import CheckpointError
from airflow_mm2_offsets.locations import spark_spelling
from airflow_mm2_offsets.spark.logs import read_required
from airflow_mm2_offsets.spark.offset_log import parse_object, split_log

_METADATA = re.compile(r"state/\d+/_metadata/(?P<layout>[^./][^/]*)(/(?P<batch>[^./][^/]*))?")
_SCHEMA = re.compile(r"(?P<root>.+)/(?P<name>state/\d+/_stateSchema/.+)")
_WITHOUT_PATHS = "metadata"
"""The file of ``OperatorStateMetadataV1``."""
_STEP = "start the job with startingOffsets and a new checkpoint"


@dataclass(frozen=True, slots=True, kw_only=True)
class StateMetadata:
    """A file that names others of its checkpoint by their URI."""

    name: str
    """Its path in the checkpoint."""
    text: str

    def check(self, inventory: Mapping[str, object]) -> None:
        """Raise unless all files that it names are in the checkpoint.

        Raises:
            CheckpointError: It is damaged, of an unknown version, or names another file.
        """
        for path in self._paths():
            if (name := self._split(path)[1]) not in inventory:
                raise CheckpointError(
                    f"{self.name}: names {path}, and the checkpoint has no {name}; restore it"
                )

    def move(self, target: UPath, uri: str | None) -> str:
        """Return its text with all paths below another checkpoint location.

        ``uri`` is Spark's spelling of it; None: the spelling of the paths in the file.

        Raises:
            CheckpointError: They are on another kind of storage, so its spelling is unknown.
        """
        content = self._content()
        for store in _stores(content):
            paths = store["stateSchemaFilePaths"]
            store["stateSchemaFilePaths"] = [self._moved(path, target, uri) for path in paths]
        return f"v2\n{json.dumps(content, separators=(',', ':'), ensure_ascii=False)}"

    def _moved(self, path: str, target: UPath, uri: str | None) -> str:
        root, name = self._split(path)
        moved = uri or spark_spelling(target, root)
        if moved is None:
            raise CheckpointError(
                f"{self.name}: names {path} by its absolute path, and {target} is on another kind "
                f"of storage: say in target_uri how Spark spells that location"
            )
        return f"{moved.rstrip('/')}/{name}"

    def _paths(self) -> list[str]:
        stores = _stores(self._content())
        return [path for store in stores for path in store["stateSchemaFilePaths"]]

    def _content(self) -> dict[str, Any]:
        version, body, _ = split_log(self.text)
        if version != "v2":
            raise CheckpointError(f"{self.name}: not v2 of operator metadata: {version!r}")
        return parse_object(body, self.name)

    def _split(self, path: str) -> tuple[str, str]:
        """Return the location of the checkpoint that a path is in, and its name there."""
        match = _SCHEMA.fullmatch(path)
        if match is None:
            raise CheckpointError(
                f"{self.name}: names {path}, which is not a file of a checkpoint's state schema; "
                f"a copy can't keep it: {_STEP}"
            )
        return match["root"], match["name"]


def read_state_metadata(root: UPath, inventory: Mapping[str, object]) -> list[StateMetadata]:
    """Return the files of a checkpoint that name others of it by their URI.

    Raises:
        CheckpointError: One is damaged or names a missing file, or the storage can't be read.
    """
    files = [
        StateMetadata(name=name, text=read_required(root / name)) for name in _names(inventory)
    ]
    for file in files:
        file.check(inventory)
    return files


def _names(inventory: Iterable[str]) -> Iterable[str]:
    for name in sorted(inventory):
        match = _METADATA.fullmatch(name)
        if match is None or (match["layout"] == _WITHOUT_PATHS and not match["batch"]):
            continue
        if match["layout"] != "v2" or not match["batch"]:
            raise CheckpointError(
                f"{name}: operator metadata of an unknown layout; it may name files by absolute "
                f"paths, which a copy can't keep: {_STEP}"
            )
        yield name


def _stores(content: Mapping[str, Any]) -> list[dict[str, Any]]:
    stores = content.get("stateStoreInfo") or []
    return [store for store in stores if store.get("stateSchemaFilePaths")]
