"""What keeps a server alone from starting."""

import socket
from collections.abc import Mapping
from pathlib import Path

import pytest

from airflow_mm2_offsets.api.server import serve
from airflow_mm2_offsets.config import load_settings
from airflow_mm2_offsets.errors import ConfigurationError


def refusal(settings: Mapping[str, object]) -> str:
    """Return why a server does not start."""
    given = {"kafka_bootstrap_servers": "127.0.0.1:1", "serve_port": 0} | dict(settings)
    environ = {f"MM2_OFFSETS_{key.upper()}": str(value) for key, value in given.items()}
    started: list[str] = []
    with pytest.raises(ConfigurationError) as raised:
        serve(load_settings(None, environ), ready=started.append)
    assert not started
    return str(raised.value)


def test_a_port_that_is_taken_is_one_clear_error() -> None:
    """It names the port, and where to give another."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert refusal({"serve_port": port}) == (
            f"can't listen on 127.0.0.1:{port}: Address already in use; free the port, or give "
            f"another one (serve.host, serve.port)"
        )


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])  # noqa: S104 - what is refused
def test_beyond_loopback_somebody_must_be_kept_out(host: str) -> None:
    """Or the user says that all may ask."""
    assert refusal({"serve_host": host}) == (
        f"{host} can be reached from other machines, without a login: set serve.token, or "
        f"serve.username and serve.password, or serve.without.auth=true"
    )


@pytest.mark.parametrize("host", ["198.51.100.7", "no-such-host.invalid"])
def test_an_address_that_is_not_this_machines_is_named(host: str) -> None:
    """Also where no resolver knows it."""
    message = refusal({"serve_host": host, "serve_without_auth": "true"})
    assert message.startswith(f"can't listen on {host}:0: ")


def test_a_certificate_that_is_none_is_named(tmp_path: Path) -> None:
    """A missing file, or one of another kind; nothing of it is shown."""
    file = tmp_path / "cert.pem"
    tls = {"serve_tls_certificate": file, "serve_tls_key": file}
    assert refusal(tls).startswith(f"{file} can't be read; give serve.tls.certificate")
    file.write_text("secret")
    message = refusal(tls)
    assert message.startswith(f"{file} and {file} are not a certificate and its key in PEM")
    assert "secret" not in message.replace(str(file), "")
