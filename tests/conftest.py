"""What all tests rest on."""

import signal


def pytest_configure() -> None:
    """Heed Ctrl-C, and let the programs that tests start heed it.

    What a shell starts in the background, as CI may, ignores SIGINT and hands that on.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
