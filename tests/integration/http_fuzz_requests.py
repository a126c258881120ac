"""HTTP requests as bytes, valid and broken, drawn from a seed; ``fuzzing`` sends them."""

import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import quote, urlencode

from tests.integration.contract import BASE

_T = TypeVar("_T")

_READING = ("/translate/latest", "/refresh", "/plan", "/translate/batch/latest")
"""The slow routes: they read the clusters."""

_NUMBERS = (0, 1, -1, 2**31 - 1, 2**31, 2**63 - 1, 2**63, 10**400, 1.0, 1.5, 1e308, True, None)
_TEXTS = ("", "x", "7", "-7", " 7", "\u0667", "<b>", "a/b", "..", "\0", "\ud800", "é", "x" * 300)
_NESTED: tuple[object, ...] = ([], {}, [[]], {"a": [1]})
_ODD = (*_NUMBERS, *_TEXTS, "9" * 5000, float("nan"), float("inf"), *_NESTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class FuzzRequest:
    """What a client sends over its own connection, and how it leaves."""

    sent: bytes
    answered: bool = True
    """Whether an answer must come."""
    end: str = "reads"
    """``reads`` the answer; ``shuts`` its side first; ``leaves`` or ``resets`` at once."""


def fuzz_requests(seed: int, count: int, *, topic: str, token: str) -> Iterator[FuzzRequest]:
    """Yield ``count`` requests: valid, invalid and broken ones in turn."""
    fuzz = _Fuzz(random.Random(seed), topic, token)  # noqa: S311 - it is to be repeatable
    kinds: Sequence[Callable[[], FuzzRequest]] = (
        fuzz.translate,
        fuzz.batch,
        fuzz.look,
        fuzz.wrong_query,
        fuzz.wrong_body,
        fuzz.broken_body,
        fuzz.wrong_method,
        fuzz.wrong_path,
        fuzz.wrong_login,
        fuzz.broken_head,
        fuzz.hang_up,
    )
    for number in range(count):
        # Few, so that the clusters' answers are not what is waited for.
        yield fuzz.reading() if number % 50 == 0 else kinds[number % len(kinds)]()


@dataclass(frozen=True, slots=True)
class _Fuzz:
    """Makes the requests: each method is one kind."""

    chance: random.Random
    topic: str
    token: str

    def translate(self) -> FuzzRequest:
        query = self._position(self.chance.randrange(3))
        if self.chance.random() < 0.5:
            return self._post("/translate", query)
        return self._get("/translate", query | {"strategy": self._of("safe", "linear", "kafka")})

    def batch(self) -> FuzzRequest:
        items = [
            {"partition": self.chance.randrange(4), "startOffset": self._at()}
            for _ in range(self._of(1, 10, 1000))
        ]
        body = {"topicName": self.topic, "offsetList": items}
        return self._post("/translate/batch?check_source=false", body)

    def look(self) -> FuzzRequest:
        path = self._of("/status", "/syncs", f"/syncs?topic={self.topic}&limit=3")
        return self._request("GET", self._of(BASE + path, "/healthz", "/metrics", "/openapi.json"))

    def reading(self) -> FuzzRequest:
        bodies: dict[str, object] = {
            "/translate/latest": self._position(),
            "/plan": {"positions": {self.topic: {"0": self._at()}}},
            "/translate/batch/latest": {
                "topicName": self.topic,
                "offsetList": [{"partition": 0, "startOffset": self._at()}],
            },
        }
        path = self._of(*_READING)
        return self._post(path, bodies.get(path))

    def wrong_query(self) -> FuzzRequest:
        query = self._position() | {"strategy": "safe"}
        query[self._of(*query)] = self._of(*_TEXTS, *_NUMBERS)
        path = self._of("/translate", "/syncs", "/syncs?limit=0", "/syncs?after=x/0/9&limit=-1")
        return self._get(path, query)

    def wrong_body(self) -> FuzzRequest:
        item: dict[str, object] = {"partition": 0, "startOffset": 1}
        bodies: tuple[tuple[str, dict[str, object]], ...] = (
            ("/translate", self._position()),
            ("/translate/batch", {"topicName": self.topic, "offsetList": [item] * 3}),
            ("/translate/batch", item),
            ("/plan", {"positions": {}, "strategy": "safe"}),
        )
        path, body = self._of(*bodies)
        wrong = body | {self._of(*body): self._of(*_ODD)}
        if self.chance.random() < 0.3:
            item[self._of(*item)] = self._of(*_ODD)
            wrong = {"topicName": self.topic, "offsetList": [item]}
        return self._post(path, wrong if self.chance.random() < 0.5 else self._of(*_ODD))

    def broken_body(self) -> FuzzRequest:
        text = json.dumps({"topic": self.topic, "partition": 0, "offset": 1})
        body = self._of(
            b"",
            text.encode()[: self.chance.randrange(len(text))],
            text.encode("utf-16"),
            b"\xef\xbb\xbf" + text.encode(),
            b'{"topic": "\xff\xfe", "partition": 0}',
            b"[" * 20_000,
            b'{"a":' * 20_000,
            b'{"topic": 1e999, "offset": -0, "partition": %s}' % (b"9" * 5000),
            self.chance.randbytes(self._of(1, 100, 100_000)),
            b"\0" * 1000,
        )
        kind = self._of(
            "application/json",
            "text/plain",
            "application/json; charset=utf-16",
            "application/x-www-form-urlencoded",
            "multipart/form-data",
            "multipart/form-data; boundary=x",
            "\xff/\xfe",
        )
        more = {"Content-Encoding": self._of("gzip", "br", "none")}
        path = self._of("/translate", "/translate/batch", "/plan")
        return self._request("POST", BASE + path, body, {"Content-Type": kind} | more)

    def wrong_method(self) -> FuzzRequest:
        method = self._of("PUT", "DELETE", "PATCH", "OPTIONS", "HEAD", "TRACE", "LOCK", "PROPFIND")
        path = self._of("/translate", "/translate/batch", "/syncs", "/status", "/nowhere")
        return self._request(method, BASE + path, self._of(b"", b"{}"))

    def wrong_path(self) -> FuzzRequest:
        path = self._of(
            "/",
            "//",
            "/../../etc/passwd",
            f"{BASE}/translate/",
            f"{BASE}/translate/%00",
            f"{BASE}//translate",
            f"{BASE}/%ff%fe",
            f"{BASE}/syncs?{'&' * 1000}",
            f"{BASE}/syncs?partition=1&partition=2",
            f"{BASE}/status?conn_id={'x' * self._of(1, 300)}",
            f"{BASE}/{'x' * self._of(1, 1000, 30_000)}",
            "/docs",
            "/" + quote(self.chance.randbytes(20)),
        )
        return self._request("GET", path)

    def wrong_login(self) -> FuzzRequest:
        authorization = self._of(
            "",
            "Bearer",
            "Bearer wrong",
            f"Basic {self.token}",
            "Basic \xff\xfe",
            "Bearer \xc3\xa9",
            "x" * 5000,
        )
        path = self._of(f"{BASE}/status", "/metrics", "/openapi.json", "/nowhere", "/healthz")
        return self._request("GET", path, headers={"Authorization": authorization})

    def broken_head(self) -> FuzzRequest:
        line = f"GET {BASE}/status HTTP/1.1\r\n"
        head = self._of(
            self.chance.randbytes(self._of(10, 1000)) + b"\r\n\r\n",
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + self.chance.randbytes(500),
            b"GET / HTTP/9.9\r\n\r\n",
            b"get / http/1.1\r\n\r\n",
            b"GET  / HTTP/1.1\r\n\r\n",
            f"{line}no colon\r\n\r\n".encode(),
            f"{line}a: b\0c\r\n\r\n".encode(),
            f"{line}Content-Length: -1\r\n\r\n".encode(),
            f"{line}Content-Length: 1\r\nContent-Length: 2\r\n\r\n".encode(),
            f"{line}Transfer-Encoding: chunked\r\n\r\nzz\r\n".encode(),
            f"{line}Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n".encode(),
            (line + "".join(f"h{number}: x\r\n" for number in range(500)) + "\r\n").encode(),
            f"{line}h: {'x' * 100_000}\r\n\r\n".encode(),
            f"{line}Upgrade: websocket\r\nConnection: upgrade\r\n\r\n".encode(),
        )
        # The server may wait for the rest of an incomplete request: the client ends it.
        return FuzzRequest(sent=head, answered=False, end="shuts")

    def hang_up(self) -> FuzzRequest:
        whole = self._of(self.translate, self.batch, self.look)().sent
        cut = self.chance.randrange(len(whole) + 1)
        twice = whole.replace(b"Connection: close", b"Connection: keep-alive") + whole
        sent = self._of(whole, whole[:cut], twice)
        return FuzzRequest(sent=sent, answered=False, end=self._of("shuts", "leaves", "resets"))

    def _get(self, path: str, query: dict[str, object]) -> FuzzRequest:
        encoded = urlencode(query, errors="surrogatepass")
        return self._request("GET", f"{BASE}{path}{'&' if '?' in path else '?'}{encoded}")

    def _post(self, path: str, body: object) -> FuzzRequest:
        return self._request("POST", BASE + path, json.dumps(body).encode())

    def _request(
        self, method: str, path: str, body: bytes = b"", headers: dict[str, str] | None = None
    ) -> FuzzRequest:
        fields = {
            "Host": "localhost",
            "Authorization": f"Bearer {self.token}",
            "Content-Type": "application/json",
            "Content-Length": str(len(body)),
            "Connection": "close",
        } | (headers or {})
        lines = (f"{name}: {value}\r\n" for name, value in fields.items())
        head = f"{method} {path} HTTP/1.1\r\n{''.join(lines)}\r\n"
        return FuzzRequest(sent=head.encode("latin-1") + body)

    def _position(self, partition: int = 0) -> dict[str, object]:
        return {"topic": self.topic, "partition": partition, "offset": self._at()}

    def _at(self) -> int:
        return self.chance.randrange(400)

    def _of(self, *choices: _T) -> _T:
        return self.chance.choice(choices)
