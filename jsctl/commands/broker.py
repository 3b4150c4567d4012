"""`jsctl broker`: run the server. Takes nats-server's own flags, so it parses none itself."""

from collections.abc import Sequence

from jsctl.broker import app


def main(arguments: Sequence[str]) -> int:
    """Run the command with the words behind `broker`; the exit status is returned."""
    return app.main(arguments)
