"""The stack in containers, started by testcontainers."""

import gc
import warnings
from collections.abc import Callable
from contextlib import ExitStack

import docker
from docker.errors import DockerException, ImageNotFound
from testcontainers.core.config import testcontainers_config
from testcontainers.core.container import DockerContainer
from testcontainers.core.network import Network

from stack.mirror import CLUSTER_IDS, CONFIG, JVM_OPTIONS, Broker, Stack
from stack.process import ProgramError, free_ports
from stack.waiting import Progress, WaitTimeoutError, quiet, wait_until

IMAGE = "apache/kafka:4.3.1"
CONFIG_INSIDE = "/mnt/stack"
HOST_PORT = 9094
_JVM = {
    "KAFKA_HEAP_OPTS": " ".join(JVM_OPTIONS),
    # The published image chooses another collector here, and Java refuses two.
    "KAFKA_JVM_PERFORMANCE_OPTS": "-server",
}
LOG_LINES = 15


def obstacle() -> str | None:
    """Say why containers cannot be used here, or None where they can."""
    try:
        return _look_for_image()
    finally:
        # Where no engine answers, docker leaves a socket open that only the collector closes.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            gc.collect()


def _look_for_image() -> str | None:
    try:
        client = docker.from_env(timeout=5)
    except DockerException:
        return "no container engine answers"
    try:
        client.images.get(IMAGE)
    except ImageNotFound:
        return f"the image {IMAGE} is not here"
    finally:
        client.close()
    return None


class ContainerStack(Stack):
    """Two brokers and Connect in containers of one network, published on loopback ports.

    Args:
        exactly_once: Whether Connect copies each record once, in transactions (KIP-618).
        progress: Told what is being waited for.
    """

    def __init__(self, *, exactly_once: bool = False, progress: Progress = quiet) -> None:
        """Choose the ports; nothing runs yet."""
        super().__init__(progress=progress)
        _do_without_missing_ryuk()
        source, target, connect = free_ports(3)
        self.source = f"127.0.0.1:{source}"
        self.target = f"127.0.0.1:{target}"
        self.connect_url = f"http://127.0.0.1:{connect}"
        loopback = {"com.docker.network.bridge.host_binding_ipv4": "127.0.0.1"}
        self._network = Network(docker_network_kw={"options": loopback})
        self._brokers: dict[Broker, DockerContainer] = {
            "source": self._broker("source", source),
            "target": self._broker("target", target),
        }
        self._connect = self._connect_worker(connect, exactly_once=exactly_once)
        self._undo = ExitStack()

    def start(self) -> None:
        """Start both brokers, then Connect, and wait until all answer."""
        self._network.create()
        self._undo.callback(self._network.remove)
        for container in [*self._brokers.values(), self._connect]:
            self._undo.callback(container.stop)
            container.start()
        for name in self._brokers:
            self._wait_for_broker(name)
        self._wait("Kafka Connect", self._connect, self.connect_healthy)

    def stop(self) -> None:
        """Remove the containers, with their data, and the network."""
        self._undo.close()

    def kill_connect(self) -> None:
        """SIGKILL the Connect worker: MirrorMaker 2 later copies again what it had not noted."""
        self._connect.get_wrapped_container().kill()

    def start_connect(self) -> None:
        """Start the Connect worker, which resumes its connectors."""
        self._connect.get_wrapped_container().start()
        self._wait("Kafka Connect", self._connect, self.connect_healthy)

    def stop_broker(self, name: Broker) -> None:
        """SIGKILL a broker: that cluster is lost."""
        self._brokers[name].get_wrapped_container().kill()

    def start_broker(self, name: Broker) -> None:
        """Start a killed broker on the data that it left, and wait until it answers."""
        self._brokers[name].get_wrapped_container().start()
        self._wait_for_broker(name)

    def _wait_for_broker(self, name: Broker) -> None:
        # Asked inside: the engine's proxy takes connections before the broker does.
        broker = self._brokers[name]
        self._wait(f"{name} broker", broker, lambda: _listens(broker))

    def _wait(self, name: str, container: DockerContainer, ready: Callable[[], bool]) -> None:
        def alive_and_ready() -> bool:
            container.reload()
            if container.status != "running":
                raise ProgramError(f"{name} ended; {_last_words(container)}")
            return ready()

        try:
            wait_until(alive_and_ready, name, progress=self.progress)
        except WaitTimeoutError as error:
            raise ProgramError(f"{error}; {_last_words(container)}") from error

    def _broker(self, name: Broker, port: int) -> DockerContainer:
        return (
            DockerContainer(IMAGE)
            .with_network(self._network)
            .with_network_aliases(name)
            .with_bind_ports(HOST_PORT, port)
            .with_volume_mapping(
                CONFIG / "broker.properties", "/mnt/shared/config/server.properties"
            )
            .with_envs(
                CLUSTER_ID=CLUSTER_IDS[name],
                **_JVM,
                KAFKA_LISTENERS=f"PLAINTEXT://:9092,HOST://:{HOST_PORT},CONTROLLER://:9093",
                KAFKA_ADVERTISED_LISTENERS=f"PLAINTEXT://{name}:9092,HOST://127.0.0.1:{port}",
            )
        )

    def _connect_worker(self, port: int, *, exactly_once: bool) -> DockerContainer:
        return (
            DockerContainer(IMAGE)
            .with_network(self._network)
            .with_network_aliases("connect")
            .with_bind_ports(8083, port)
            .with_volume_mapping(CONFIG, CONFIG_INSIDE)
            .with_envs(
                **_JVM,
                SOURCE_BOOTSTRAP="source:9092",
                TARGET_BOOTSTRAP="target:9092",
                CONNECT_LISTENER="http://0.0.0.0:8083",
                CONNECT_HOST="connect",
                CONNECT_EXACTLY_ONCE="enabled" if exactly_once else "disabled",
            )
            .with_command(
                [
                    "/opt/kafka/bin/connect-distributed.sh",
                    f"{CONFIG_INSIDE}/connect-distributed.properties",
                ]
            )
        )


def _listens(broker: DockerContainer) -> bool:
    return broker.exec(["bash", "-c", f"</dev/tcp/127.0.0.1/{HOST_PORT}"]).exit_code == 0


def _last_words(container: DockerContainer) -> str:
    lines = b"".join(container.get_logs()).decode(errors="replace").splitlines()[-LOG_LINES:]
    return "its last lines:\n" + "\n".join(lines)


def _do_without_missing_ryuk() -> None:
    # Ryuk removes what a killed test run leaves behind. Where its image is missing it would be
    # pulled, which fails where no registry is in reach, and the stack with it.
    client = docker.from_env()
    try:
        client.images.get(testcontainers_config.ryuk_image)
    except ImageNotFound:
        testcontainers_config.ryuk_disabled = True
    finally:
        client.close()
