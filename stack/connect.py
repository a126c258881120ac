"""A client of Kafka Connect's REST API that waits out rebalances."""

import time
from http import HTTPStatus

import httpx

_REBALANCE_SECONDS = 60.0
_PAUSE_SECONDS = 0.2


class _RebalanceTransport(httpx.HTTPTransport):
    """Repeats what a worker refuses with 409 (``HerderRequestHandler`` of Kafka Connect).

    After a change of settings the workers rebalance, and refuse what comes in that moment.
    """

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request, again and again while the answer is 409, for a minute."""
        deadline = time.monotonic() + _REBALANCE_SECONDS
        answer = super().handle_request(request)
        while answer.status_code == HTTPStatus.CONFLICT and time.monotonic() < deadline:
            answer.close()
            time.sleep(_PAUSE_SECONDS)
            answer = super().handle_request(request)
        return answer


def connect_client(url: str, login: tuple[str, str] | None = None) -> httpx.Client:
    """Return a client of a worker's REST API, whose requests are paths below the URL."""
    return httpx.Client(base_url=url, auth=login, timeout=30, transport=_RebalanceTransport())
