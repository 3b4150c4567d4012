"""What holds for all tests."""

import signal


def pytest_configure() -> None:
    """Ctrl-C has its usual meaning in the programs that tests start and interrupt.

    A shell that starts the tests in the background has them ignore it, and what is ignored stays
    so in every process below.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
