"""`python -m jsctl`, and a short way to the broker that loads nothing of the front end."""

import sys


def main() -> int:
    """Run the command line; the exit status is returned."""
    if sys.argv[1:2] == ["broker"]:
        from jsctl.commands.broker import main as run_broker

        return run_broker(sys.argv[2:])
    from jsctl.cli import main as run_cli

    return run_cli(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
