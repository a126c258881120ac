"""A connector of the Kafka Connect worker in memory; ``connect`` answers with it.

The answers are those of Kafka's ``ConnectorsResource``.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

Reply: TypeAlias = tuple[int, object]
"""The status and the JSON of an answer; None: no body."""

_STATES = {"pause": "PAUSED", "resume": "RUNNING", "stop": "STOPPED"}
_NOT_STOPPED = (
    "Connectors must be in the STOPPED state before their offsets can be modified. This can be "
    "done for the specified connector by issuing a 'PUT' request to the "
    "'/connectors/{name}/stop' endpoint"
)


@dataclass(slots=True, kw_only=True, eq=False)
class SimulatedConnector:
    """A connector that takes every change at once."""

    name: str
    config: Mapping[str, str]
    state: str = "RUNNING"
    tasks: Sequence[Mapping[str, Any]] = ({"id": 0, "state": "RUNNING"},)
    offsets: list[dict[str, Any]] = field(default_factory=list)
    """Each with its ``partition`` and ``offset``, as Connect tells them."""

    def answer(self, method: str, what: str, content: bytes) -> Reply | None:
        """Answer a request about the connector; None: there is no such resource."""
        if method == "PUT" and what in _STATES:
            self.state = _STATES[what]
            self.tasks = () if what == "stop" else [{"id": 0, "state": self.state}]
            return (204 if what == "stop" else 202), None
        answers: Mapping[tuple[str, str], Callable[[], Reply]] = {
            ("GET", "config"): lambda: (200, dict(self.config)),
            ("GET", "status"): lambda: (200, self._status()),
            ("GET", "offsets"): lambda: (200, {"offsets": self.offsets}),
            ("POST", "restart"): self._restart,
            ("PATCH", "offsets"): lambda: self._change(json.loads(content)["offsets"]),
            ("DELETE", "offsets"): lambda: self._change(None),
        }
        make = answers.get((method, what))
        return make() if make else None

    def _status(self) -> dict[str, Any]:
        return {"name": self.name, "connector": {"state": self.state}, "tasks": list(self.tasks)}

    def _restart(self) -> Reply:
        self.state = "RUNNING" if self.state == "FAILED" else self.state
        self.tasks = [{"id": each["id"], "state": "RUNNING"} for each in self.tasks]
        return 202, self._status()

    def _change(self, entries: Sequence[Mapping[str, Any]] | None) -> Reply:
        if self.state != "STOPPED":
            return 400, {"error_code": 400, "message": _NOT_STOPPED.format(name=self.name)}
        changed = [each["partition"] for each in entries or ()]
        kept = [each for each in self.offsets if entries and each["partition"] not in changed]
        self.offsets = kept + [dict(each) for each in entries or () if each["offset"] is not None]
        return 200, {"message": "The offsets for this connector have been altered successfully"}
