"""What commands that ask a server load: everything else would only make them start later."""

import subprocess
import sys

import pytest

from jsctl.testing import Broker

NEEDLESS = {
    "email.message",
    "httpx",
    "importlib.metadata",
    "jsctl.render.reports.stream.screen",
    "nats.js.api",
    "prompt_toolkit",
    "questionary",
    "rich",
    "textual",
    "typer",
    "yaml",
    "zipfile",
}


@pytest.mark.processes
@pytest.mark.parametrize("line", ["stream report", "stream ls -j", "pub a.b body", "kv ls"])
def test_nothing_needless_is_loaded(line: str) -> None:
    program = (
        "import sys; from jsctl.cli import main; status = main(sys.argv[1:]); "
        "print(*sys.modules, file=sys.stderr); sys.exit(status)"
    )
    with Broker(jetstream=True) as broker:
        words = [sys.executable, "-c", program, "-s", broker.url, *line.split()]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-500:]
    assert "nats.aio.client" in done.stderr
    assert not NEEDLESS & set(done.stderr.split())


COMPLETED = {
    "stream in": 0,
    "stream add --ma": 0,
    "consumer add --max": 0,
    "stream info S": 1,
    "kv get B": 1,
    "--context ": 1,
}
"""Lines to complete, and whether names are looked up for it."""
SLOW_TO_LOAD = NEEDLESS | {
    "asyncio",
    "click",
    "email",
    "jsctl.client.connection",
    "jsctl.client.manager",
    "jsctl.commands.stream.config",
    "jsctl.commands.stream.show",
    "jsctl.commands.toolkit.invocation.call",
    "logging",
    "nats",
    "secrets",
    "ssl",
    "subprocess",
    "tempfile",
}


@pytest.mark.processes
@pytest.mark.parametrize("line", COMPLETED)
def test_a_key_does_not_wait_for_what_commands_need(line: str) -> None:
    """A completion reads declarations, and asks over a socket of its own."""
    program = (
        "import sys; from jsctl.completion import main; main(['--', *sys.argv[1].split(' ')]); "
        "print(*sys.modules, file=sys.stderr)"
    )
    words = [sys.executable, "-c", program, line]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-500:]
    loaded = set(done.stderr.split())
    assert not SLOW_TO_LOAD & loaded
    assert ("jsctl.completion.quick" in loaded) is bool(COMPLETED[line])
