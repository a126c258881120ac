"""Authentication of the standalone server: by a token, or by user name and password."""

import base64
import hmac
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Annotated, TypeAlias

from fastapi import Depends, Request
from fastapi.security import HTTPBasic, HTTPBasicCredentials, HTTPBearer

from airflow_mm2_offsets.api.problems import Problem
from airflow_mm2_offsets.config import ServeSettings

Auth: TypeAlias = Callable[..., Awaitable[None]]


class _Basic(HTTPBasic):
    """For the OpenAPI description only: ``_allows`` reads the header."""

    async def __call__(self, request: Request) -> HTTPBasicCredentials | None:  # type: ignore[override] # noqa: ARG002 - see above
        return None


_BEARER = HTTPBearer(auto_error=False)
_BASIC = _Basic(auto_error=False)


def make_auth(settings: ServeSettings) -> Auth:
    """Return a dependency that checks a request's login; without one in the settings, nothing."""
    token = settings.token
    login = f"{settings.username}:{settings.password}" if settings.username else None
    # A browser then asks for the password; of two challenges in one header it knows the first.
    challenge = 'Basic realm="mm2-offsets"' if login else "Bearer"

    async def check(
        request: Request,
        _bearer: Annotated[object, Depends(_BEARER)],
        _basic: Annotated[object, Depends(_BASIC)],
    ) -> None:
        if not _allows(request.headers.get("authorization", ""), token, login):
            raise Problem(
                HTTPStatus.UNAUTHORIZED,
                "authentication required: the Authorization header is missing or invalid",
                headers={"WWW-Authenticate": challenge},
            )

    async def pass_all() -> None:
        """Check nothing."""

    return check if has_auth(settings) else pass_all


def has_auth(settings: ServeSettings) -> bool:
    """Tell whether requests need a login."""
    return bool(settings.token or settings.username)


def _allows(header: str, token: str | None, login: str | None) -> bool:
    scheme, _, credentials = header.partition(" ")
    match scheme.lower():
        case "bearer" if token:
            return _equal(credentials.strip().encode(), token)
        case "basic" if login:
            try:
                return _equal(base64.b64decode(credentials, validate=True), login)
            except ValueError:
                return False
    return False


def _equal(credentials: bytes, secret: str) -> bool:
    # A duration that depends on how many characters match would betray the secret.
    return hmac.compare_digest(credentials, secret.encode())
