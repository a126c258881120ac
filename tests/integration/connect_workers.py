"""A Connect worker of an older Kafka beside the brokers of a stack."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import httpx

from stack.local import JVM
from stack.mirror import CONFIG, Stack
from stack.process import Program, free_ports

_KEPT = ("connect-configs", "connect-offsets", "connect-status")


@contextmanager
def older_worker(stack: Stack, folder: Path, jars: Path) -> Iterator[str]:
    """Run a worker of the jars' version, with topics and a group of its own; yield its URL."""
    url, mark = f"http://127.0.0.1:{free_ports(1)[0]}", uuid4().hex[:6]
    lines = (CONFIG / "connect-distributed.properties").read_text()
    for topic in _KEPT:
        lines = lines.replace(topic, f"{topic}-{mark}")
    properties = folder / "worker.properties"
    properties.write_text(lines.replace("group.id=mm2", f"group.id=mm2-{mark}"))
    program = Program(
        "the older Kafka Connect",
        [
            *JVM,
            *("-cp", os.pathsep.join([f"{jars}/*"])),
            "org.apache.kafka.connect.cli.ConnectDistributed",
            str(properties),
        ],
        log=folder / "connect.log",
        env={
            "SOURCE_BOOTSTRAP": stack.source,
            "TARGET_BOOTSTRAP": stack.target,
            "CONNECT_LISTENER": url,
            "CONNECT_HOST": "127.0.0.1",
            "CONNECT_EXACTLY_ONCE": "disabled",
        },
    )
    program.start()
    try:
        program.wait_ready(lambda: _answers(url))
        yield url
    finally:
        program.stop()


def _answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/connectors", timeout=5).is_success
    except httpx.TransportError:
        return False
