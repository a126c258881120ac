"""What all tests rest on."""

import signal

from hypothesis import HealthCheck, settings

# A busy machine is slow: how long an example takes proves nothing.
settings.register_profile(
    "busy-machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("busy-machine")


def pytest_configure() -> None:
    """Heed Ctrl-C, and let the programs that tests start heed it.

    What a shell starts in the background, as CI may, ignores SIGINT and hands that on.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
