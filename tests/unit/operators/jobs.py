"""What a Spark job under StopControl leaves on its storage, without the job."""

import json
from pathlib import Path

from tests.unit.spark import checkpoints


class Job:
    """A folder with a job's checkpoint and control location."""

    def __init__(self, folder: Path, *offsets: int) -> None:
        self.folder = folder
        self.checkpoint, self.control = folder / "checkpoint", folder / "control"
        checkpoints.write(
            self.checkpoint,
            {
                "sources/0/0": checkpoints.start(checkpoints.orders(*(0 for _ in offsets))),
                "offsets/0": checkpoints.batch(checkpoints.orders(*offsets)),
                "commits/0": checkpoints.commit(),
            },
        )
        self.control.mkdir()
        self.beat(1)

    def commit(self, batch: int, *offsets: int) -> None:
        """Do a batch, as a job that runs does."""
        files = {f"offsets/{batch}": checkpoints.batch(checkpoints.orders(*offsets))}
        checkpoints.write(self.checkpoint, {**files, f"commits/{batch}": checkpoints.commit()})

    def beat(self, heartbeat: int, query_id: str = checkpoints.QUERY_ID, **more: object) -> None:
        driver = {"application_id": "app-1", "query_id": query_id, "run_id": "r", "host": "h"}
        self._write("driver.json", {**driver, "pid": 7, "heartbeat": heartbeat, **more})

    def asked(self) -> str | None:
        path = self.control / "stop-request.json"
        return json.loads(path.read_text())["request_id"] if path.exists() else None

    def acknowledge(self, error: str | None = None) -> None:
        answer = {"request_id": self.asked(), "application_id": "app-1", "batch_id": 0}
        self._write("stopped.json", {**answer, "offsets": None, "clean": True, "error": error})

    def _write(self, name: str, value: dict[str, object]) -> None:
        (self.control / name).write_text(json.dumps({"schema_version": 1, **value}))
