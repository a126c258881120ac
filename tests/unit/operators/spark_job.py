"""The files that a Spark job under StopControl leaves on its storage, written without Spark."""

import json
from pathlib import Path
from typing import Any

from upath import UPath

from airflow_mm2_offsets.moves.fences import Fence, read_fence
from airflow_mm2_offsets.moves.journal import Entry, FenceState, Journal
from airflow_mm2_offsets.moves.move import job_at
from tests.unit.spark import checkpoints


class Job:
    """A folder with a job's checkpoint and control location."""

    folder: Path

    def __init__(self, folder: Path, *offsets: int) -> None:
        self.folder = folder
        checkpoints.write(
            self.checkpoint,
            {
                "sources/0/0": checkpoints.start(checkpoints.orders(*(0 for _ in offsets))),
                "offsets/0": checkpoints.batch(checkpoints.orders(*offsets)),
                "commits/0": checkpoints.commit(),
            },
        )
        self.control.mkdir(exist_ok=True)  # a hand-over may have made it
        self.beat(1)

    @classmethod
    def at(cls, folder: Path) -> "Job":
        """Return the job of a folder that has one already."""
        job = cls.__new__(cls)
        job.folder = folder
        return job

    @property
    def checkpoint(self) -> Path:
        return self.folder / "checkpoint"

    @property
    def control(self) -> Path:
        return self.folder / "control"

    def commit(self, batch: int, *offsets: int) -> None:
        """Do a batch, as a job that runs does."""
        files = {f"offsets/{batch}": checkpoints.batch(checkpoints.orders(*offsets))}
        checkpoints.write(self.checkpoint, {**files, f"commits/{batch}": checkpoints.commit()})

    def beat(self, heartbeat: int, **fields: object) -> None:
        """Write another heartbeat of the driver; ``fields`` replace those of ``driver.json``."""
        ids = {"query_id": checkpoints.QUERY_ID, "run_id": "r", **fields}
        query = {name: ids[name] for name in ("query_id", "run_id")}
        driver = {
            "application_id": "app-1",
            **query,
            "host": "h",
            "pid": 7,
            "heartbeat": heartbeat,
            "lease": 8.0,
            "queries": [{**query, "checkpoint": f"file:{self.checkpoint}"}],
            "control": f"file:{self.control}",
        }
        self._write("driver.json", {**driver, **fields})

    def read(self, name: str) -> dict[str, Any] | None:
        """Return what a file of the control location holds, as the job's ``HadoopFiles`` do."""
        path = self.control / name
        return json.loads(path.read_text()) if path.exists() else None

    def fence(self) -> Fence | None:
        """Return the fence that counts."""
        return read_fence(UPath(self.control))

    def requested_stop(self) -> str | None:
        """Return the stop that the job is asked for."""
        fence = self.fence()
        return fence.request_id if fence and fence.state is FenceState.STOPPING else None

    def entries(self) -> list[Entry]:
        """Return the job's journal."""
        return Journal(UPath(job_at(str(self.folder), UPath).journal)).entries()

    def acknowledge(self, error: str | None = None, **fields: object) -> None:
        """Answer the request; ``fields`` replace those of ``stopped.json``."""
        answer = {"request_id": self.requested_stop(), "application_id": "app-1", "batch_id": 0}
        outcome = {"offsets": None, "clean": True, "error": error}
        self._write("stopped.json", {**answer, **outcome, **fields})

    def query_answer(self, batch_id: int | None = 0, *offsets: int) -> dict[str, object]:
        """Return a query's part of the answer, with the end of its last batch if given."""
        return {
            "query_id": checkpoints.QUERY_ID,
            "run_id": "r",
            "batch_id": batch_id,
            "offsets": [json.loads(checkpoints.orders(*offsets))] if offsets else None,
            "clean": True,
            "error": None,
        }

    def _write(self, name: str, value: dict[str, object]) -> None:
        # Renamed into place, as a job does it: a task of a real Airflow may read it at this moment.
        file = self.control / f"{name}.tmp"
        file.write_text(json.dumps({"schema_version": 2, **value}))
        file.replace(self.control / name)
