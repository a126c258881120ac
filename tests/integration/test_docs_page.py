"""The page ``/docs`` of a server alone, in a browser."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.integration.servers import running

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
SETTINGS = {
    "kafka_bootstrap_servers": "127.0.0.1:1",
    "serve_username": "user",
    "serve_password": "pass",
}

pytestmark = pytest.mark.skipif(BROWSER is None, reason="no Chromium on the PATH")


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.URL]:
    """Return a server that takes a token, or a user and a password."""
    with running(tmp_path_factory.mktemp("server") / "server.log", SETTINGS) as url:
        yield httpx.URL(url)


def _browse(url: httpx.URL, profile: Path) -> subprocess.CompletedProcess[str]:
    """Return what a browser made of a page, and its console, where no other host is known."""
    return subprocess.run(
        [
            *(str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"),
            *("--enable-logging=stderr", f"--user-data-dir={profile}"),
            "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
            str(url),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )


def test_it_opens_with_a_password_and_without_other_hosts(url: httpx.URL, tmp_path: Path) -> None:
    """The browser logs in, finds the routes, and has nothing to refuse by the page's policy."""
    shown = _browse(url.copy_with(path="/docs", username="user", password="pass"), tmp_path)  # noqa: S106 - a test's own
    assert ">GET /api/v1/offsets/translate</h3>" in shown.stdout
    assert "Content Security Policy" not in shown.stderr


def test_without_a_login_it_shows_nothing(url: httpx.URL, tmp_path: Path) -> None:
    """A browser without a password gets the problem, and no route."""
    assert "/api/v1/" not in _browse(url.copy_with(path="/docs"), tmp_path).stdout
