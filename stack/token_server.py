"""An OAuth 2 token endpoint on loopback: client credentials (RFC 6749, 4.4) for signed JWTs."""

import base64
import json
import ssl
import threading
import time
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs, unquote

from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.hashes import SHA256

AUDIENCE = "kafka"
SCOPE = "kafka.read"
_KEY_ID = "stack"
_LIFETIME = 600


class TokenServer:
    """Signs a token for each client that names its secret; as a context manager, from up to down.

    Args:
        clients: The secret of each client; the client's id is the token's subject.
        certificate: A PEM file with certificate and key: the endpoint speaks TLS.
        port: Where it listens on 127.0.0.1; 0 takes a free port.

    Attributes:
        issued: All tokens that were given out.
    """

    def __init__(
        self, clients: Mapping[str, str], *, certificate: Path | None = None, port: int = 0
    ) -> None:
        """Bind the port; nothing is answered yet."""
        self.clients = clients
        self.issued: list[str] = []
        self._key = generate_private_key(public_exponent=65537, key_size=2048)
        self._server = ThreadingHTTPServer(("127.0.0.1", port), _Handler)
        self._server.issuer = self  # type: ignore[attr-defined]
        self._server.daemon_threads = True
        scheme = "https" if certificate else "http"
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.url = f"{scheme}://127.0.0.1:{self._server.server_address[1]}"
        self.token_url = f"{self.url}/token"
        self.keys_url = f"{self.url}/keys"

    def __enter__(self) -> Self:
        """Answer."""
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(
        self,
        _type: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        """Close the port."""
        self._server.shutdown()
        self._server.server_close()

    def token(self, client: str, scope: str) -> str:
        """Return a token signed by RS256 (RFC 7519)."""
        now = int(time.time())
        header = {"alg": "RS256", "kid": _KEY_ID, "typ": "JWT"}
        claims = {"iss": self.url, "aud": AUDIENCE, "sub": client, "scope": scope}
        times = {"iat": now, "exp": now + _LIFETIME}
        signed = f"{_encoded(header)}.{_encoded(claims | times)}"
        signature = self._key.sign(signed.encode(), PKCS1v15(), SHA256())
        self.issued.append(f"{signed}.{_base64(signature)}")
        return self.issued[-1]

    def keys(self) -> dict[str, Any]:
        """Return the public key as a JSON Web Key Set (RFC 7517)."""
        public = self._key.public_key().public_numbers()
        numbers = {"n": _number(public.n), "e": _number(public.e)}
        return {"keys": [{"kty": "RSA", "alg": "RS256", "use": "sig", "kid": _KEY_ID, **numbers}]}


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        """Answer the keys."""
        self._answer(200, self.server.issuer.keys())  # type: ignore[attr-defined]

    def do_POST(self) -> None:
        """Answer a token, or why not (RFC 6749, 5.2)."""
        issuer: TokenServer = self.server.issuer  # type: ignore[attr-defined]
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        form = {name: values[0] for name, values in parse_qs(body).items()}
        client, secret = self._login(form)
        scope = form.get("scope", "")
        if issuer.clients.get(client) != secret:
            self._answer(401, {"error": "invalid_client", "error_description": "wrong secret"})
        elif scope not in {"", SCOPE, "other"}:
            self._answer(400, {"error": "invalid_scope", "error_description": "unknown scope"})
        else:
            token = issuer.token(client, scope)
            answer = {"access_token": token, "token_type": "Bearer", "expires_in": _LIFETIME}
            self._answer(200, answer)

    def _login(self, form: Mapping[str, str]) -> tuple[str, str]:
        kind, _, text = self.headers.get("Authorization", "").partition(" ")
        if kind != "Basic":
            return form.get("client_id", ""), form.get("client_secret", "")
        client, _, secret = base64.b64decode(text).decode().partition(":")
        return unquote(client), unquote(secret)

    def _answer(self, status: int, values: Mapping[str, Any]) -> None:
        body = json.dumps(values).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as http.server has it
        """Stay silent."""


def _encoded(values: Mapping[str, Any]) -> str:
    return _base64(json.dumps(values).encode())


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _number(value: int) -> str:
    return _base64(value.to_bytes((value.bit_length() + 7) // 8, "big"))
