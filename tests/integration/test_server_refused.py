"""What keeps a server alone from starting, and what ends it."""

import os
import signal
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

import pytest

from airflow_mm2_offsets.api.server import serve
from airflow_mm2_offsets.config import Settings, load_settings
from airflow_mm2_offsets.errors import (
    ClusterSecurityError,
    ClusterUnreachableError,
    ConfigurationError,
    MissingRightError,
    SyncsTopicError,
)


def _settings(settings: Mapping[str, object]) -> Settings:
    serve_settings = {"kafka_bootstrap_servers": "127.0.0.1:1", "serve_port": 0} | dict(settings)
    environ = {f"MM2_OFFSETS_{key.upper()}": str(value) for key, value in serve_settings.items()}
    return load_settings(None, environ)


def refusal(settings: Mapping[str, object]) -> str:
    """Return why a server does not start."""
    started: list[str] = []
    with pytest.raises(ConfigurationError) as raised:
        serve(_settings(settings), ready=started.append)
    assert not started
    return str(raised.value)


def test_a_server_that_is_ready_handles_ctrl_c(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever reads the URL may end the server at once: it ends by itself, without warnings."""
    # They are for a process that only serves.
    monkeypatch.setattr("gc.freeze", lambda: None)
    monkeypatch.setattr("sys.setswitchinterval", lambda _: None)
    handlers = []

    def end(_url: str) -> None:
        handlers.append(signal.getsignal(signal.SIGINT))
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        serve(_settings({}), ready=end)
    assert handlers
    assert handlers != [signal.default_int_handler]


@pytest.fixture
def first_reads(monkeypatch: pytest.MonkeyPatch) -> list[Exception]:
    """Return the errors of the first reads; after them, Ctrl-C is pressed."""
    errors: list[Exception] = []

    def read(*_: object) -> NoReturn:
        if len(errors) == 1:
            os.kill(os.getpid(), signal.SIGINT)
        raise errors.pop(0)

    monkeypatch.setattr("gc.freeze", lambda: None)
    monkeypatch.setattr("sys.setswitchinterval", lambda _: None)
    monkeypatch.setattr("airflow_mm2_offsets.api.pairs.read_on", read)
    return errors


NO_CA = ConfigurationError("ssl.ca.location does not exist here")
NO_LOGIN = ClusterSecurityError("authentication failed")
NO_RIGHT = MissingRightError("refused: a right is missing")
LATER = ClusterUnreachableError("did not answer")


@pytest.mark.parametrize("error", [NO_CA, NO_LOGIN, NO_RIGHT])
def test_settings_that_never_work_end_it(first_reads: list[Exception], error: Exception) -> None:
    """Also after reads that found nobody; the error is raised as it is."""
    first_reads += [LATER, error, LATER]
    with pytest.raises(type(error)) as raised:
        serve(_settings({"refresh_seconds": 1}))
    assert raised.value is error
    assert first_reads == [LATER]


@pytest.mark.parametrize("error", [LATER, SyncsTopicError("does not exist"), ValueError("x")])
def test_what_may_come_is_waited_for(first_reads: list[Exception], error: Exception) -> None:
    """A cluster that is down, a topic that MirrorMaker 2 has yet to make, and a defect."""
    first_reads += [error, error]
    with pytest.raises(KeyboardInterrupt):
        serve(_settings({"refresh_seconds": 1}))
    assert not first_reads


@pytest.mark.parametrize("error", [NO_LOGIN, NO_RIGHT])
def test_with_an_archive_a_refused_login_does_not_end_it(
    first_reads: list[Exception], error: Exception, tmp_path: Path
) -> None:
    """Plans go on from the archive, also where a broken source refuses every login."""
    first_reads += [error, error]
    with pytest.raises(KeyboardInterrupt):
        serve(_settings({"refresh_seconds": 1, "archive": tmp_path}))
    assert not first_reads


def test_a_port_that_is_taken_is_one_clear_error() -> None:
    """The error names the port and the setting of another one."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert refusal({"serve_port": port}) == (
            f"can't listen on 127.0.0.1:{port}: Address already in use; free the port, or give "
            f"another one (serve.host, serve.port)"
        )


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])  # noqa: S104 - what is refused
def test_beyond_loopback_a_login_is_required(host: str) -> None:
    """Beyond loopback a login is required, unless the user allows anonymous access."""
    assert refusal({"serve_host": host}) == (
        f"{host} can be reached from other machines, without a login: set serve.token, or "
        f"serve.username and serve.password, or serve.without.auth=true"
    )


@pytest.mark.parametrize("host", ["198.51.100.7", "no-such-host.invalid"])
def test_an_address_that_is_not_this_machines_is_named(host: str) -> None:
    """An address of another machine is named, even if no resolver knows it."""
    message = refusal({"serve_host": host, "serve_without_auth": "true"})
    assert message.startswith(f"can't listen on {host}:0: ")


def test_an_invalid_certificate_is_named(tmp_path: Path) -> None:
    """A missing or invalid certificate file is named, without its content."""
    file = tmp_path / "cert.pem"
    tls = {"serve_tls_certificate": file, "serve_tls_key": file}
    assert refusal(tls).startswith(f"{file} can't be read; give serve.tls.certificate")
    file.write_text("secret")
    message = refusal(tls)
    assert message.startswith(f"{file} and {file} are not a certificate and its key in PEM")
    assert "secret" not in message.replace(str(file), "")
