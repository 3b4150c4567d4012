"""What commands that ask a server load: everything else would only make them start later."""

import subprocess
import sys

import pytest

from jsctl.testing import Broker

NEEDLESS = {
    "email.message",
    "httpx",
    "importlib.metadata",
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
