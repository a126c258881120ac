"""Drivers under stop control without Spark: their files are in a folder."""

import json
from pathlib import Path
from typing import Any, cast

import pytest

from airflow_mm2_offsets.job import StopControl
from airflow_mm2_offsets.job.stop.fences import Fences
from airflow_mm2_offsets.job.stop.heartbeat import Heartbeat
from airflow_mm2_offsets.job.stop.lease import Lease

INTERVAL = 2.0


class Files:
    """A control location, as the job reaches it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.location = f"file:{folder}"

    def read(self, name: str) -> Any:  # noqa: ANN401 - as JSON has it
        path = self.folder / name
        value = json.loads(path.read_text()) if path.exists() else None
        if not isinstance(value, dict | None):
            raise ValueError(f"{path} holds no JSON object")  # noqa: TRY004 - as HadoopFiles
        return value

    def exists(self, name: str) -> bool:
        return (self.folder / name).exists()

    def names_in(self, folder: str) -> list[str]:
        path = self.folder / folder
        return [each.name for each in path.iterdir()] if path.exists() else []

    def write(self, name: str, value: dict[str, Any]) -> None:
        (self.folder / name).write_text(json.dumps(value))

    def close(self) -> None:
        """Do nothing: a folder is not opened."""


def driver(
    monkeypatch: pytest.MonkeyPatch, folder: Path, application_id: str, **more: object
) -> StopControl:
    """Return the control of a driver that is about to start; its heart beats only when asked.

    ``folder`` is its control location.
    """
    names = {"application_id": application_id, "host": "there", "pid": 9, "processes": {}}
    described = {"schema_version": 2, **names, "kubernetes_driver": None, **more}
    monkeypatch.setattr(f"{Heartbeat.__module__}.describe_driver", lambda _: described)
    control, files = StopControl.__new__(StopControl), cast("Any", Files(folder))
    heartbeat = Heartbeat(cast("Any", None), files, INTERVAL, 4 * INTERVAL)
    monkeypatch.setattr(Heartbeat, "keep", lambda _: None)
    fences = Fences(files, str(folder.parent))
    lease = Lease(files, fences, heartbeat, 4 * INTERVAL)
    vars(control).update(
        _home=str(folder.parent),
        _files=files,
        _fences=fences,
        _heartbeat=heartbeat,
        _lease=lease,
        _interval=INTERVAL,
        _batch_timeout=1.0,
    )
    return control


class Query:
    """A query's stream that only notes what is done to it."""

    def __init__(self) -> None:
        self.did: list[str] = []

    def renew(self, _until: float) -> None:
        self.did.append("renewed")

    def hold(self) -> None:
        self.did.append("held")

    def abandon(self) -> None:
        self.did.append("abandoned")

    def committed(self) -> dict[str, int | None]:
        """Say nothing: there is no checkpoint."""
        return {}
