"""The image's HEALTHCHECK: ends with 0 if the server in this container answers."""

import os
import ssl
import sys
from http.client import HTTPConnection, HTTPException, HTTPSConnection

SECONDS = 4
PORT = int(os.environ.get("MM2_OFFSETS_SERVE_PORT") or "8080")
HAS_TLS = bool(os.environ.get("MM2_OFFSETS_SERVE_TLS_CERTIFICATE"))


def _connection() -> HTTPConnection:
    if not HAS_TLS:
        return HTTPConnection("127.0.0.1", PORT, timeout=SECONDS)
    context = ssl.create_default_context()
    # The certificate names the service, not the loopback address.
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return HTTPSConnection("127.0.0.1", PORT, timeout=SECONDS, context=context)


def main() -> None:
    """Ask ``/healthz``; it needs no login."""
    try:
        connection = _connection()
        connection.request("GET", "/healthz")
        status = connection.getresponse().status
    except (OSError, HTTPException) as error:
        sys.exit(f"no answer on port {PORT}: {error}")
    if status != 200:  # noqa: PLR2004 - OK
        sys.exit(f"/healthz answers {status}")


main()
