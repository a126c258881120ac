"""Sets a checkpoint aside, whole, so that its location is free; ``homecoming`` calls it.

A note beside the checkpoint, ``<checkpoint>.until-<run>.json``, says how far the run has come.
Where the storage renames a folder, it is renamed. On an object store each file is copied, the copy
is read back, and only when all copies are whole are the originals deleted.
"""

import json
from dataclasses import dataclass
from enum import StrEnum

from upath import UPath

from airflow_mm2_offsets.errors import CheckpointError
from airflow_mm2_offsets.locations import beside
from airflow_mm2_offsets.storage import (
    copy_file,
    list_directory,
    list_files,
    open_location,
    read_text,
    remove_file,
    rename_folder,
    same_content,
    storage_errors,
    write_text,
)

_NOTES = ("clusters.json", "control.json")
_CLAIMS = "claims"


class _Stage(StrEnum):
    MOVING = "moving"
    DONE = "done"
    LIFTING = "lifting"
    LIFTED = "lifted"


@dataclass(frozen=True, slots=True, kw_only=True)
class SetAside:
    """A checkpoint, and where a run sets it aside with its notes and claims."""

    checkpoint: UPath
    folder: UPath

    @classmethod
    def of(cls, checkpoint: UPath, run: str) -> "SetAside":
        """Return where ``run`` sets a checkpoint aside; nothing is read yet."""
        return cls(checkpoint=checkpoint, folder=beside(checkpoint, f"until-{run}"))

    def exists(self) -> bool:
        """Tell whether the run has begun to set the checkpoint aside."""
        return self._stage() is not None

    def is_done(self) -> bool:
        """Tell whether all of it is set aside."""
        return self._stage() not in {None, _Stage.MOVING}

    def is_lifting(self) -> bool:
        """Tell whether the run was about to lift the fence."""
        return self._stage() is _Stage.LIFTING

    def is_lifted(self) -> bool:
        """Tell whether the run has lifted the fence: a job may run there since."""
        return self._stage() is _Stage.LIFTED

    def note_lifting(self) -> None:
        """Note that the fence is lifted next."""
        self._note(_Stage.LIFTING)

    def note_lifted(self) -> None:
        """Note that the fence is lifted."""
        self._note(_Stage.LIFTED)

    def move(self) -> None:
        """Set the checkpoint, its notes and its claims aside; go on where a killed try ended.

        Nothing is moved twice: what lies there once this is done is the new job's.

        Raises:
            CheckpointError: The storage refuses, or a copy reads back differently.
        """
        if self.is_done():
            return
        self._note(_Stage.MOVING)
        _move_all(self.checkpoint, self.folder)
        self._note(_Stage.DONE)

    def restore(self) -> None:
        """Put everything back, for another run: this one did not bring its job home.

        The fence must stand. Nothing is put back once the run has lifted it.

        Raises:
            CheckpointError: The storage refuses, or a copy reads back differently.
        """
        if not self.exists() or self.is_lifted():
            return
        _move_all(self.folder, self.checkpoint)
        remove_file(beside(self.folder, "json"), CheckpointError)

    def _stage(self) -> _Stage | None:
        path = beside(self.folder, "json")
        text = read_text(path, CheckpointError)
        if text is None:
            return None
        try:
            return _Stage(json.loads(text)["stage"])
        except (KeyError, TypeError, ValueError) as error:
            raise CheckpointError(
                f"holds {text[:100]!r}, which no homecoming wrote: give a new home folder",
                file=str(path),
            ) from error

    def _note(self, stage: _Stage) -> None:
        note = {"schema_version": 1, "stage": stage, "checkpoint": str(self.checkpoint)}
        write_text(beside(self.folder, "json"), json.dumps(note), CheckpointError)


def _move_all(checkpoint: UPath, target: UPath) -> None:
    """Move a checkpoint with its claims and its notes."""
    _move_folder(checkpoint, target)
    _move_folder(beside(checkpoint, _CLAIMS), beside(target, _CLAIMS))
    for ending in _NOTES:
        note = beside(checkpoint, ending)
        if read_text(note, CheckpointError) is not None:
            _move_file(note, beside(target, ending))


def _move_folder(folder: UPath, aside: UPath) -> None:
    open_location(folder, CheckpointError)
    files = list_files(folder, CheckpointError)
    # Into an existing folder, even an empty one, a rename would move it.
    is_new = not list_directory(aside.parent, CheckpointError).keys() & {aside.name}
    if is_new and rename_folder(folder, aside, CheckpointError):
        return
    for name in files:
        _copy(folder / name, aside / name)
    for name in files:  # Not before: until all are copied, the original is the whole one.
        remove_file(folder / name, CheckpointError)


def _move_file(path: UPath, aside: UPath) -> None:
    _copy(path, aside)
    remove_file(path, CheckpointError)


def _copy(path: UPath, aside: UPath) -> None:
    with storage_errors(aside, CheckpointError):
        is_there = aside.exists()
    if not is_there or not same_content(path, aside, CheckpointError):
        copy_file(path, aside, CheckpointError)
    if not same_content(path, aside, CheckpointError):
        raise CheckpointError(
            "what was written does not read back; check its storage", file=str(aside)
        )
