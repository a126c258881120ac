"""The stack as local JVMs, for machines without a container engine."""

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Self

from stack.mirror import CLUSTER_IDS, CONFIG, JVM_OPTIONS, Broker, Stack
from stack.process import Program, accepts, free_ports, refuse_taken, stop_all
from stack.waiting import Progress, quiet

JVM = ("java", *JVM_OPTIONS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """Loopback ports; each broker has one for clients and one for its controller."""

    source: int
    source_controller: int
    target: int
    target_controller: int
    connect: int

    @classmethod
    def free(cls) -> Self:
        """Take free ports."""
        source, source_controller, target, target_controller, connect = free_ports(5)
        return cls(
            source=source,
            source_controller=source_controller,
            target=target,
            target_controller=target_controller,
            connect=connect,
        )


class LocalStack(Stack):
    """Two brokers and Connect as JVMs on loopback ports.

    What differs in a stack with logins is in the public methods; see ``stack.secure``.

    Args:
        folder: Holds data, logs and the brokers' configuration; it may hold an earlier run's.
        jars: The folder of Kafka's jars (see stack.jars).
        ports: Fixed ports; free ones where None.
        exactly_once: Whether Connect copies each record once, in transactions (KIP-618).
        progress: Told what is being waited for.
    """

    jvm_options: tuple[str, ...] = ()
    """Further options of each JVM."""
    more_jars: tuple[Path, ...] = ()
    """Further folders of jars for each JVM."""

    def __init__(
        self,
        folder: Path,
        jars: Path,
        *,
        ports: Ports | None = None,
        exactly_once: bool = False,
        progress: Progress = quiet,
    ) -> None:
        """Choose the ports; nothing runs yet."""
        super().__init__(progress=progress)
        self._ports = ports = ports or Ports.free()
        self.source = f"127.0.0.1:{ports.source}"
        self.target = f"127.0.0.1:{ports.target}"
        self.connect_url = f"http://127.0.0.1:{ports.connect}"
        self.folder = folder
        self._jars = jars
        self._brokers: dict[Broker, Program] = {
            "source": self._broker("source", ports.source, ports.source_controller),
            "target": self._broker("target", ports.target, ports.target_controller),
        }
        self._connect = self._connect_worker(exactly_once=exactly_once)

    def start(self) -> None:
        """Start both brokers, then Connect, and wait until all answer."""
        self.start_brokers()
        self.start_connect()

    def start_brokers(self) -> None:
        """Start both brokers, and wait until they answer."""
        refuse_taken({name: f"127.0.0.1:{port}" for name, port in asdict(self._ports).items()})
        self._format()
        for broker in self._brokers.values():
            broker.start()
        for name in self._brokers:
            self._wait_for_broker(name)

    def stop(self) -> None:
        """Stop Connect and the brokers; their data stays in the folder."""
        self._connect.stop()
        stop_all(list(self._brokers.values()))

    def kill_connect(self) -> None:
        """SIGKILL the Connect worker: MirrorMaker 2 later copies again what it had not noted."""
        self._connect.kill()

    def start_connect(self) -> None:
        """Start the Connect worker, which resumes its connectors."""
        self._connect.start()
        self._connect.wait_ready(self.connect_healthy, progress=self.progress)

    def stop_broker(self, name: Broker) -> None:
        """SIGKILL a broker: that cluster is lost."""
        self._brokers[name].kill()

    def start_broker(self, name: Broker) -> None:
        """Start a killed broker on the data that it left, and wait until it answers."""
        self._brokers[name].start()
        self._wait_for_broker(name)

    def _wait_for_broker(self, name: Broker) -> None:
        # A broker opens its port when it has joined its quorum and can serve.
        address = {"source": self.source, "target": self.target}[name]
        self._brokers[name].wait_ready(partial(accepts, address), progress=self.progress)

    def _format(self) -> None:
        formats = [self._storage_tool(name) for name in self._brokers]
        for one in formats:
            one.start()
        for one in formats:
            one.wait_end(progress=self.progress)

    def _storage_tool(self, name: Broker) -> Program:
        options = ["format", "--ignore-formatted", "-t", CLUSTER_IDS[name]]
        options += ["-c", str(self._properties(name))]
        return self._jvm(f"{name} storage", "kafka.tools.StorageTool", *options)

    def _broker(self, name: Broker, port: int, controller: int) -> Program:
        overrides = self.broker_properties(name, port, controller)
        lines = [f"{key}={value}\n" for key, value in overrides.items()]
        properties = self._properties(name)
        properties.parent.mkdir(parents=True, exist_ok=True)
        properties.write_text((CONFIG / "broker.properties").read_text() + "".join(lines))
        return self._jvm(f"{name} broker", "kafka.Kafka", str(properties))

    def broker_properties(self, name: Broker, port: int, controller: int) -> dict[str, str]:
        """Return what a broker has beside stack/config/broker.properties."""
        return {
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}",
            "log.dirs": str(self.folder / name),
        }

    def worker_properties(self) -> Path:
        """Return the file of the Connect worker's properties."""
        return CONFIG / "connect-distributed.properties"

    def mirror_addresses(self) -> tuple[str, str]:
        """Return the bootstrap servers of source and target that MirrorMaker 2 uses."""
        return self.source, self.target

    def _connect_worker(self, *, exactly_once: bool) -> Program:
        source, target = self.mirror_addresses()
        return self._jvm(
            "Kafka Connect",
            "org.apache.kafka.connect.cli.ConnectDistributed",
            str(self.worker_properties()),
            env={
                "SOURCE_BOOTSTRAP": source,
                "TARGET_BOOTSTRAP": target,
                "CONNECT_LISTENER": self.connect_url,
                "CONNECT_HOST": "127.0.0.1",
                "CONNECT_EXACTLY_ONCE": "enabled" if exactly_once else "disabled",
            },
        )

    def _properties(self, name: Broker) -> Path:
        return self.folder / f"{name}.properties"

    def _jvm(
        self, name: str, main: str, *arguments: str, env: Mapping[str, str] | None = None
    ) -> Program:
        logging = f"-Dlog4j2.configurationFile={CONFIG / 'log4j2.yaml'}"
        log = self.folder / "logs" / f"{name.replace(' ', '-').lower()}.log"
        path = os.pathsep.join(f"{jars}/*" for jars in (self._jars, *self.more_jars))
        command = [*JVM, *self.jvm_options, logging, "-cp", path, main, *arguments]
        return Program(name, command, log=log, env=env)
