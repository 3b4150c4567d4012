"""`jsctl broker`: run the server. Takes nats-server's own flags, so it parses none itself."""

from collections.abc import Callable, Sequence

from jsctl.broker import app


def main(arguments: Sequence[str], leave: Callable[[int], object] | None = None) -> int:
    """Run the command with the words behind `broker`; the exit status is returned.

    `leave` ends the process, if it is the broker's: see `app.main`.
    """
    return app.main(arguments, leave=leave)
