"""`python -m jsctl`, and a short way to the broker that loads nothing of the front end."""

import os
import sys

INTERRUPTED = 130
"""128 and the number of SIGINT: it came before the broker could trap it."""


def main() -> int:
    """Run the command line; the exit status is returned."""
    if sys.argv[1:2] == ["broker"]:
        try:
            from jsctl.commands.broker import main as run_broker

            status = run_broker(sys.argv[2:])
        except KeyboardInterrupt:
            status = INTERRUPTED
        # Clients have been let go: whoever saw that counts on the process being gone. Taking the
        # interpreter apart would keep it for tens of milliseconds, and nothing is left to do.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    from jsctl.cli import main as run_cli

    return run_cli(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
