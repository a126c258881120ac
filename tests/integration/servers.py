"""Starts the REST server in a separate process."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from stack.process import Program, free_ports

TOKEN = "t0ken"  # noqa: S105 - a test's own

_SERVE = """
import functools, logging, os
from airflow_mm2_offsets.api import middleware, protocol, server
from airflow_mm2_offsets.config import load_settings

seconds = os.environ.get("TEST_SECONDS")
if seconds:
    protocol.HEAD_SECONDS = protocol.TAKE_SECONDS = float(seconds)
    limits = middleware.Limits(body_seconds=float(seconds))
    server.create_app = functools.partial(server.create_app, limits=limits)
logging.basicConfig(level="INFO")
server.serve(load_settings(None, os.environ), ready=lambda url: print("ready", url, flush=True))
"""


def program(log: Path, settings: Mapping[str, str]) -> Program:
    """Return a server that is not started; settings in capitals are variables as they are."""
    env = {
        key if key.isupper() else f"MM2_OFFSETS_{key.upper()}": value
        for key, value in settings.items()
    }
    # Otherwise glibc keeps an arena for each thread, and growth shows no leak.
    env.setdefault("MALLOC_ARENA_MAX", "2")
    return Program("server", [sys.executable, "-c", _SERVE], log=log, env=env)


@contextmanager
def running(log: Path, settings: Mapping[str, str]) -> Iterator[str]:
    """Start a server, yield its URL once it listens, and stop it."""
    (port,) = free_ports(1)
    server = program(log, {"serve_port": str(port), "serve_token": TOKEN} | dict(settings))
    server.start()
    try:
        server.wait_ready(lambda: "ready http" in log.read_text())
        yield log.read_text().partition("ready ")[2].split()[0]
    finally:
        server.stop()
