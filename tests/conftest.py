"""Settings of all tests: Hypothesis without deadlines, and a working Ctrl-C."""

import signal

from hypothesis import HealthCheck, settings

# On a busy machine the time of an example proves nothing.
settings.register_profile(
    "busy-machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("busy-machine")


def pytest_configure() -> None:
    """Restore SIGINT for the tests and for the programs that they start.

    A process that a shell starts in the background, as CI may, ignores SIGINT, and so do its
    children.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
