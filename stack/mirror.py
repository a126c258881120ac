"""What every stack can do, wherever its brokers run, and MirrorMaker 2 through Connect's REST."""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

import httpx

from stack.connect import connect_client
from stack.jvm import QUICK_START
from stack.waiting import Progress, quiet, wait_until

JVM_OPTIONS = ("-Xmx512m", *QUICK_START)
"""A heap that fits a laptop."""
CONFIG = Path(__file__).with_name("config")
SOURCE_CONNECTOR = "mm2-source"
# The heartbeats first: they give the source connector a topic to find at once. They are written
# to the source and copied from there, as in MM2's dedicated mode (MirrorMaker.java), so that their
# age on the target tells the lag: hence that connector's aliases are the other way round.
CONNECTORS = ("mm2-heartbeat", SOURCE_CONNECTOR, "mm2-checkpoint")

Broker = Literal["source", "target"]
# Made up: 16 bytes each, in base64.
CLUSTER_IDS: Mapping[Broker, str] = {
    "source": "c291cmNlLWNsdXN0ZXI0Mg",
    "target": "dGFyZ2V0LWNsdXN0ZXI0Mg",
}


class MirrorFailedError(RuntimeError):
    """A connector or a task failed; the message holds Connect's trace."""


class Stack(ABC):
    """Two brokers and a Connect worker beside the target; as a context manager, from up to down.

    Attributes:
        source: The source's bootstrap servers, as seen from here.
        target: The target's.
        connect_url: Kafka Connect's REST address.
        connect_login: User and password of it; None where it takes requests from everybody.
    """

    source: str
    target: str
    connect_url: str
    connect_login: tuple[str, str] | None = None

    def __init__(self, *, progress: Progress = quiet) -> None:
        """Prepare the stack without starting it."""
        self.progress = progress

    def __enter__(self) -> Self:
        """Start the stack; if a start fails, stop what was started."""
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self,
        _type: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        """Stop the stack."""
        self.stop()

    @abstractmethod
    def start(self) -> None:
        """Start both brokers and Connect, and wait until all answer."""

    @abstractmethod
    def stop(self) -> None:
        """Stop all programs; their data may be gone."""

    @abstractmethod
    def kill_connect(self) -> None:
        """SIGKILL the Connect worker: MirrorMaker 2 later repeats what it had not committed."""

    @abstractmethod
    def start_connect(self) -> None:
        """Start the Connect worker, which resumes its connectors."""

    @abstractmethod
    def stop_broker(self, name: Broker) -> None:
        """SIGKILL a broker: that cluster is lost."""

    @abstractmethod
    def start_broker(self, name: Broker) -> None:
        """Start a killed broker on the data that it left, and wait until it answers."""

    def create_mirror(self, topics: str, **overrides: str | int) -> None:
        """Create or change the three connectors, and wait until they run.

        Args:
            topics: The regular expression of the topics to copy.
            overrides: Settings that replace those of stack/config/mm2-*.json in all three.

        Raises:
            MirrorFailedError: A connector or a task failed.
            WaitTimeoutError: They did not run in time.
            httpx.HTTPError: Connect did not answer, or refused the settings.
        """
        with self.connect_client() as client:
            for name in CONNECTORS:
                config = json.loads((CONFIG / f"{name}.json").read_text())
                config |= self.connector_logins(name)
                config |= {"topics": topics} | {key: str(to) for key, to in overrides.items()}
                client.put(f"/connectors/{name}/config", json=config).raise_for_status()
        wait_until(self.mirror_running, "MirrorMaker 2", progress=self.progress)

    def connector_logins(self, name: str) -> Mapping[str, str]:  # noqa: ARG002 - of one with logins
        """Return what a connector needs to log in to both clusters."""
        return {}

    def mirror_running(self) -> bool:
        """Tell whether all three connectors and their tasks run, and the source has a task."""
        with self.connect_client() as client:
            status = {name: client.get(f"/connectors/{name}/status") for name in CONNECTORS}
        if not all(answer.is_success for answer in status.values()):
            return False  # Connect has not read its own writing yet, or is busy rebalancing.
        states = [state for answer in status.values() for state in _states(answer.json())]
        return set(states) == {"RUNNING"} and bool(status[SOURCE_CONNECTOR].json()["tasks"])

    def connect_client(self) -> httpx.Client:
        """Return a client of Kafka Connect's REST API that logs in, if it must."""
        return connect_client(self.connect_url, self.connect_login)

    def connect_healthy(self) -> bool:
        """Tell whether the Connect worker is past its start and in its group (KIP-1017)."""
        try:
            url = f"{self.connect_url}/health"
            return httpx.get(url, auth=self.connect_login, timeout=5).is_success
        except httpx.TransportError:
            return False


def _states(status: dict[str, Any]) -> list[str]:
    parts = [status["connector"], *status["tasks"]]
    for part in parts:
        if part["state"] == "FAILED":
            raise MirrorFailedError(f"{status['name']} failed: {part.get('trace', 'no trace')}")
    return [part["state"] for part in parts]
