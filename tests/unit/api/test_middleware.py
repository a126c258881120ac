"""The middleware of every route."""

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from airflow_mm2_offsets.api.middleware import Limits
from airflow_mm2_offsets.config import ServeSettings
from airflow_mm2_offsets.errors import ArchiveError, ClusterRefusedError, TopicNotFoundError
from tests.unit.api.api_harness import BASE, ApiHarness

JSON = {"Content-Type": "application/json"}


def post(api: ApiHarness, content: Any) -> httpx.Response:  # noqa: ANN401 - whatever httpx sends
    """Send a body as it is, in chunks where it is made of them."""

    async def answer() -> httpx.Response:
        transport = httpx.ASGITransport(api.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            return await client.post(f"{BASE}/translate", content=content, headers=JSON)

    return asyncio.run(answer())


def test_a_large_content_length_is_refused_before_reading() -> None:
    """By its Content-Length."""
    api = ApiHarness(limits=Limits(body_bytes=100))
    answer = post(api, b"x" * 101)
    assert answer.status_code == 413
    assert answer.json()["detail"] == "the body has more than 100 bytes"
    assert answer.headers["connection"] == "close"


def test_a_large_body_in_chunks_is_refused_where_it_becomes_large() -> None:
    """Reading stops at the first chunk beyond the limit."""
    api = ApiHarness(limits=Limits(body_bytes=100))
    sent = 0

    async def chunks() -> AsyncIterator[bytes]:
        nonlocal sent
        for _ in range(100):
            sent += 10
            yield b" " * 10

    assert post(api, chunks()).status_code == 413
    assert sent == 110


def test_a_slow_body_times_out() -> None:
    """A client that never ends its body does not hold the connection for ever."""
    api = ApiHarness(limits=Limits(body_seconds=0.05))

    async def chunks() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.Event().wait()

    answer = post(api, chunks())
    assert answer.status_code == 408
    assert answer.json()["detail"] == "the body did not arrive within 0.05 s"
    assert answer.headers["connection"] == "close"


def test_an_unexpected_error_has_a_number_in_the_log(
    api: ApiHarness, caplog: pytest.LogCaptureFixture
) -> None:
    """The answer has only the number; the log has the exception."""

    def fail() -> Any:  # noqa: ANN401 - it never returns
        raise ZeroDivisionError("a secret")

    api.read = fail
    with caplog.at_level(logging.ERROR):
        answer = api.client.get(f"{BASE}/translate/latest?topic=orders&partition=0&offset=1")
    assert answer.status_code == 500
    assert answer.headers["content-type"] == "application/problem+json"
    number = answer.json()["id"]
    assert number in answer.json()["detail"]
    assert "secret" not in answer.text
    assert "Traceback" not in answer.text
    (record,) = [each for each in caplog.records if number in each.getMessage()]
    assert record.exc_info is not None
    assert str(record.exc_info[1]) == "a secret"


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (TopicNotFoundError("target has no topic orders"), 404),
        (ClusterRefusedError("target refused"), 502),
        (ArchiveError("the archive is damaged"), 500),
    ],
)
def test_our_errors_show_their_message(api: ApiHarness, error: Exception, status: int) -> None:
    """Their messages hold no secret, so the answer shows them."""

    def fail() -> Any:  # noqa: ANN401 - it never returns
        raise error

    api.read = fail
    answer = api.client.get(f"{BASE}/translate/latest?topic=orders&partition=0&offset=1")
    assert (answer.status_code, answer.json()["detail"]) == (status, str(error))


def test_our_errors_have_their_fields(api: ApiHarness) -> None:
    """The fields stand beside the message, for programs; positions are text."""
    error = TopicNotFoundError(
        "does not exist", cluster="target", topic="orders", partition=7, position=2**60
    )

    def fail() -> Any:  # noqa: ANN401 - it never returns
        raise error

    api.read = fail
    answer = api.client.get(f"{BASE}/translate/latest?topic=orders&partition=7&offset=1").json()
    assert answer["detail"] == "target: orders[7]: does not exist"
    names = ("cluster", "topic", "partition", "position")
    assert [answer[name] for name in names] == ["target", "orders", 7, str(2**60)]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/", 404),
        ("DELETE", f"{BASE}/syncs", 405),
        ("GET", f"{BASE}/nothing", 404),
        ("GET", f"{BASE}/translate/", 404),
        ("POST", f"{BASE}/refresh/", 404),
        ("GET", "/healthz/", 404),
    ],
)
def test_unknown_routes_are_problems_too(
    api: ApiHarness, method: str, path: str, status: int
) -> None:
    """They are not FastAPI's own errors."""
    answer = api.client.request(method, path)
    assert answer.status_code == answer.json()["status"] == status
    assert answer.headers["content-type"] == "application/problem+json"


def test_a_wrong_method_is_answered_with_the_valid_ones(api: ApiHarness) -> None:
    """The answer lists all methods, though each method has a separate route."""
    assert api.client.put(f"{BASE}/translate").headers["allow"] == "GET, POST"
    assert api.client.get(f"{BASE}/refresh").headers["allow"] == "POST"


def test_every_answer_forbids_sniffing_and_caching(api: ApiHarness) -> None:
    """Browsers must not guess the type, and proxies must not cache."""
    for path in ("/healthz", f"{BASE}/status", "/nothing"):
        headers = api.client.get(path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"


def test_each_request_is_a_line_of_the_log(
    api: ApiHarness, caplog: pytest.LogCaptureFixture
) -> None:
    """With the client, the status and the time; probes only at level DEBUG, and no query."""
    with caplog.at_level(logging.INFO, "airflow_mm2_offsets.access"):
        api.client.get("/healthz")
        api.client.get(f"{BASE}/status?x=1")
        api.client.get("/a%0Ab")
    first, second = caplog.messages
    assert first.startswith(f"127.0.0.1 GET '{BASE}/status' 200, ")
    assert second.startswith(r"127.0.0.1 GET '/a\nb' 404, ")


TOKEN = ServeSettings(token="t0ken")  # noqa: S106 - a test's own
LOGIN = ServeSettings(username="user", password="pa:ss")  # noqa: S106 - a test's own
ROUTES = [
    ("GET", "/metrics"),
    ("GET", "/openapi.json"),
    ("GET", "/docs"),
    ("GET", f"{BASE}/status"),
    ("GET", f"{BASE}/syncs"),
    ("POST", f"{BASE}/refresh"),
    ("POST", f"{BASE}/plan"),
    ("GET", f"{BASE}/translate"),
    ("POST", f"{BASE}/translate"),
    ("GET", f"{BASE}/translate/latest"),
    ("POST", f"{BASE}/translate/latest"),
    ("POST", f"{BASE}/translate/batch"),
    ("POST", f"{BASE}/translate/batch/latest"),
]


def test_the_list_of_routes_is_whole(api: ApiHarness) -> None:
    """So that a new route's login is tested too."""
    paths = api.client.get("/openapi.json").json()["paths"]
    described = {(method.upper(), path) for path, each in paths.items() for method in each}
    probes = {("GET", "/healthz"), ("GET", "/readyz")}
    assert described | {("GET", "/openapi.json"), ("GET", "/docs")} == {*ROUTES, *probes}
    assert not any("{" in path for path in paths), "metrics take a path for its route"


@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_every_route_needs_a_login(method: str, path: str) -> None:
    """A missing, wrong or other login is answered by 401, before the request is validated."""
    wrong: list[dict[str, str]] = [
        {},
        {"Authorization": "Bearer t0ke"},
        {"Authorization": "Bearer t0kenn"},
        {"Authorization": "Bearer"},
        {"Authorization": "t0ken"},
        {"Authorization": "Basic dXNlcjpwYTpzcw=="},
        {"Authorization": "Bearer \xfft0ken"},
    ]
    client = ApiHarness(TOKEN).client
    for headers in wrong:
        raw = {name.encode(): value.encode("latin-1") for name, value in headers.items()}
        answer = client.request(method, path, headers=raw)
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"] == "Bearer"
        assert answer.json()["status"] == 401
    right = client.request(method, path, headers={"Authorization": "bearer t0ken"})
    assert right.status_code != 401


@pytest.mark.parametrize(("method", "path"), [route for route in ROUTES if route[0] == "POST"])
def test_no_body_is_read_before_the_login(method: str, path: str) -> None:
    """A client without a login gets its answer at once, and the rest of its body is not read."""
    api, read = ApiHarness(TOKEN), 0

    async def chunks() -> AsyncIterator[bytes]:
        nonlocal read
        for _ in range(100):
            read += 1
            yield b"["

    async def answer() -> httpx.Response:
        transport = httpx.ASGITransport(api.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            return await client.request(method, path, content=chunks(), headers=JSON)

    refused = asyncio.run(answer())
    assert refused.status_code == 401
    assert refused.headers["connection"] == "close"
    assert read == 0


def test_an_answer_after_the_whole_body_keeps_the_connection(api: ApiHarness) -> None:
    """Also where there is no body."""
    whole = post(api, b'{"topic": "orders", "partition": 0, "offset": 1}')
    assert whole.status_code == 200
    assert "connection" not in whole.headers
    empty = api.client.post(f"{BASE}/refresh", content=b"", headers={"Content-Length": "0"})
    assert "connection" not in empty.headers


@pytest.mark.parametrize(
    "content_type", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""]
)
def test_a_form_of_another_site_is_refused(api: ApiHarness, content_type: str) -> None:
    """A browser sends these types in its user's name for any page; JSON only after asking."""
    answer = api.client.post(
        f"{BASE}/translate",
        content=b'{"topic": "orders", "partition": 0, "offset": 1}',
        headers={"Content-Type": content_type},
    )
    assert answer.status_code == 415
    assert "send Content-Type: application/json" in answer.json()["detail"]


def test_json_may_have_parameters_and_a_suffix(api: ApiHarness) -> None:
    """As clients send it."""
    for content_type in ("application/json; charset=utf-8", "application/vnd.x+json"):
        answer = api.client.post(
            f"{BASE}/translate",
            content=b'{"topic": "orders", "partition": 0, "offset": 1}',
            headers={"Content-Type": content_type},
        )
        assert answer.status_code == 200


def test_a_password_is_accepted() -> None:
    """A password may contain a colon (RFC 7617); invalid base64 is refused."""
    client = ApiHarness(LOGIN).client
    assert client.get(f"{BASE}/status", auth=("user", "pa:ss")).status_code == 200
    for login in (("user", "pa"), ("user", ""), ("", "pa:ss"), ("use", "r:pa:ss")):
        assert client.get(f"{BASE}/status", auth=login).status_code == 401
    damaged = client.get(f"{BASE}/status", headers={"Authorization": "Basic %%%"})
    assert damaged.status_code == 401
    assert damaged.headers["www-authenticate"].startswith("Basic realm=")


def test_a_browser_is_asked_for_a_password_where_there_is_one() -> None:
    """Also where a token is set; a client with that token needs no challenge."""
    both = ServeSettings(token="t0ken", username="user", password="pa:ss")  # noqa: S106 - a test's own
    client = ApiHarness(both).client
    answer = client.get("/docs")
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == 'Basic realm="mm2-offsets"'
    assert client.get("/docs", auth=("user", "pa:ss")).status_code == 200
    assert client.get("/docs", headers={"Authorization": "Bearer t0ken"}).status_code == 200


def test_probes_need_no_login() -> None:
    """Orchestrators have no login."""
    client = ApiHarness(TOKEN).client
    assert client.get("/healthz").status_code == client.get("/readyz").status_code == 200
