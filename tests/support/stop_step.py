"""A stop step that is played: it writes a job's control location as docs/stop-protocol.md says."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

from stack.waiting import wait_until

RUN = "failover:manual__1"
JOURNAL = "/records/orders"


class StopStep:
    """The run of a failover that writes the control location of a job's home."""

    def __init__(self, control: Path) -> None:
        """Write nothing yet."""
        self.control = control

    @property
    def number(self) -> int:
        """The number of the newest fence; 0 without one."""
        return max((int(path.stem) for path in self.control.glob("fence/[0-9]*.json")), default=0)

    def fence(self, state: str, request_id: str, number: int | None = None, **fields: Any) -> int:
        """Write a fence, by default the next one; return its number."""
        number = number or self.number + 1
        self.write(
            f"fence/{number:06d}.json",
            {
                "number": number,
                "state": state,
                "request_id": request_id,
                "moved_to": "the target",
                "at": datetime.now(UTC).isoformat(),
                "journal": JOURNAL,
                **fields,
            },
        )
        return number

    def ask(self, request_id: str | None = None) -> str:
        """Ask the job to stop; return the stop's id."""
        request_id = request_id or f"{RUN}#{self.number + 1}"
        self.fence("stopping", request_id)
        return request_id

    def move(self, request_id: str = f"{RUN}#1") -> int:
        """Hand the job over to the target."""
        return self.fence("moved", request_id)

    def let_run(self, request_id: str = f"{RUN}#1", **fields: Any) -> int:
        """Let the job run at this home."""
        return self.fence("open", request_id, **fields)

    def sign(self, request_id: str, interval: float = 1.0) -> None:
        """Give a sign of life: the step waits for the answer."""
        sign = {"request_id": request_id, "at": uuid4().hex, "interval": interval}
        self.write("stop-heartbeat.json", sign)

    def sign_until(self, request_id: str, condition: Callable[[], bool], what: str) -> None:
        """Give signs of life until something has come."""

        def has_come() -> bool:
            self.sign(request_id)
            return condition()

        wait_until(has_come, what)

    def stop(self, request_id: str | None = None) -> dict[str, Any]:
        """Ask the job to stop, and return its answer."""
        request_id = self.ask(request_id)
        self.sign_until(request_id, lambda: self.answer(request_id) is not None, "the answer")
        answer = self.answer(request_id)
        assert answer is not None
        return answer

    def withdraw(self, request_id: str) -> bool:
        """Withdraw a stop, and return whether the job runs on: its fence is open then."""
        if self.has_stopped(request_id):
            return False
        self.let_run(request_id)
        if not self.has_stopped(request_id):
            return True
        self.ask()
        return False

    def has_stopped(self, request_id: str) -> bool:
        """Return whether the job carries out a stop, or has answered it."""
        # The driver first: it announces a stop before the answer is written.
        driver = self.read("driver.json") or {}
        return driver.get("stopping") == request_id or self.answer(request_id) is not None

    def answer_in_its_place(self, request_id: str) -> None:
        """Answer for a job that is silent."""
        answer = {"request_id": request_id, "application_id": "app-1", "clean": False}
        ends: dict[str, Any] = {
            "batch_id": None,
            "offsets": None,
            "queries": [],
            "error": None,
            "proof": "silent",
        }
        self.write("stopped.json", {**answer, **ends})

    def answer(self, request_id: str) -> dict[str, Any] | None:
        """Return the answer to a stop."""
        answer = self.read("stopped.json")
        return answer if answer is not None and answer["request_id"] == request_id else None

    def driver(self) -> dict[str, Any]:
        """Return what the job says of its driver."""
        driver = self.read("driver.json")
        assert driver is not None
        return driver

    def read(self, name: str) -> dict[str, Any] | None:
        """Return a file of the control location; None if there is no such file."""
        try:
            return dict(json.loads((self.control / name).read_text()))
        except FileNotFoundError:
            return None

    def write(self, name: str, values: dict[str, Any]) -> None:
        """Write a file whole, and its folder."""
        file = self.control / name
        file.parent.mkdir(parents=True, exist_ok=True)
        temporary = file.with_name(f".{file.name}.tmp")
        temporary.write_text(json.dumps({"schema_version": 2, **values}))
        temporary.replace(file)
