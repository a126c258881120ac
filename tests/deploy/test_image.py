"""The image that `make image` has built, started as in production: no rights, nothing writable.

No cluster is needed: a server whose clusters don't answer runs, and says that it is not ready.
"""

import json
import os
from collections.abc import Iterator
from typing import Any

import docker
import httpx
import pytest

from airflow_mm2_offsets import __version__
from stack.waiting import wait_until

IMAGE = os.environ.get("IMAGE", "airflow-mm2-offsets")
TOKEN = "the-token-of-this-test"  # noqa: S105 - of this test
MEBIBYTES = 2**20
LARGEST_IMAGE, MOST_MEMORY = 520 * MEBIBYTES, 128 * MEBIBYTES


@pytest.fixture(scope="module")
def engine() -> Iterator[docker.DockerClient]:
    """The container engine of this machine."""
    client = docker.from_env()
    yield client
    client.close()


@pytest.fixture(scope="module")
def container(
    engine: docker.DockerClient,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Any]:
    """The server, by another user's id than the image's own: Kubernetes may choose any."""
    token = tmp_path_factory.mktemp("secrets") / "token"
    token.write_text(TOKEN + "\n")
    for folder in (token, *token.parents[:3]):
        folder.chmod(0o755)
    started = engine.containers.run(
        IMAGE,
        detach=True,
        read_only=True,
        cap_drop=["ALL"],
        security_opt=["no-new-privileges"],
        user="23456:23456",
        ports={"8080/tcp": ("127.0.0.1", 0)},
        volumes={str(token): {"bind": "/run/secrets/token", "mode": "ro"}},
        environment={
            "MM2_OFFSETS_KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:1",
            "MM2_OFFSETS_SERVE_TOKEN_FILE": "/run/secrets/token",
        },
    )
    yield started
    started.remove(force=True)


@pytest.fixture
def client(container: Any) -> Iterator[httpx.Client]:  # noqa: ANN401 - docker has no types
    """A client without a login, once the server answers."""
    container.reload()
    (published,) = container.attrs["NetworkSettings"]["Ports"]["8080/tcp"]
    url = f"http://127.0.0.1:{published['HostPort']}"
    with httpx.Client(base_url=url, timeout=5) as client:
        wait_until(lambda: _answers(client), f"the server in {container.short_id}", seconds=20)
        yield client


def test_the_server_runs_without_any_right(client: httpx.Client) -> None:
    """It answers, is not ready while no cluster answers, and takes its token from the file."""
    assert client.get("/healthz").json() == {"status": "ok"}
    assert client.get("/readyz").status_code == 503
    assert client.get("/api/v1/offsets/status").status_code == 401
    login = {"Authorization": f"Bearer {TOKEN}"}
    assert client.get("/api/v1/offsets/status", headers=login).is_success


def test_the_engine_finds_the_server_healthy(container: Any, client: httpx.Client) -> None:  # noqa: ANN401
    """By the image's own check, which needs no curl."""
    assert client.get("/healthz").is_success
    check = container.client.api.inspect_image(IMAGE)["Config"]["Healthcheck"]["Test"]
    code, output = container.exec_run(check[1:])
    assert (code, output) == (0, b"")
    code, output = container.exec_run(check[1:], environment={"MM2_OFFSETS_SERVE_PORT": "1"})
    assert code == 1
    assert b"no answer on port 1" in output


def test_the_image_has_a_user_by_number_and_says_its_version(engine: docker.DockerClient) -> None:
    """Kubernetes' runAsNonRoot takes no name; the engine's own answer has no rights to write."""
    image = engine.images.get(IMAGE)
    assert image.attrs["Config"]["User"] == "10001:10001"
    said = engine.containers.run(
        IMAGE, ["--version"], remove=True, read_only=True, network_mode="none"
    )
    assert said.decode().strip() == f"airflow-mm2-offsets {__version__}"


def test_nothing_secret_is_in_the_image(engine: docker.DockerClient) -> None:
    """Neither what this machine's environment holds, nor files of the checkout but the package."""
    config = json.dumps(engine.images.get(IMAGE).attrs["Config"])
    assert TOKEN not in config
    listed = engine.containers.run(
        IMAGE, ["-c", "ls -A /opt/mm2-offsets /build; true"], entrypoint="sh", remove=True
    )
    files = {*listed.decode().split()} - {"/opt/mm2-offsets:"}
    assert files == {
        ".gitignore",
        ".lock",
        "CACHEDIR.TAG",
        "bin",
        "healthcheck.py",
        "lib",
        "lib64",
        "pyvenv.cfg",
    }


def test_image_and_server_are_small(
    engine: docker.DockerClient,
    container: Any,  # noqa: ANN401
    client: httpx.Client,
) -> None:
    """The figures of docs/deploy.md; a new dependency that doubles them is found."""
    size = engine.images.get(IMAGE).attrs["Size"]
    memory = container.stats(stream=False)["memory_stats"]["usage"]
    print(f"\nimage: {size / MEBIBYTES:.0f} MiB; server: {memory / MEBIBYTES:.0f} MiB")  # noqa: T201
    assert client.get("/healthz").is_success
    assert size < LARGEST_IMAGE
    assert memory < MOST_MEMORY


def test_a_server_ends_when_it_is_told_to(container: Any, client: httpx.Client) -> None:  # noqa: ANN401
    """By SIGTERM, long before the engine kills it; the last test, since it ends the server."""
    assert client.get("/healthz").is_success
    container.stop(timeout=30)
    container.reload()
    assert container.attrs["State"]["ExitCode"] == 0


def _answers(client: httpx.Client) -> bool:
    try:
        return client.get("/healthz").is_success
    except httpx.TransportError:
        return False
