"""A real nats-server with JetStream for tests that compare with it."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.waiting import wait_for

BINARY = Path(sys.executable).parent / "nats-server"


@contextmanager
def real_server(directory: Path, *flags: str | Path, configured: bool = False) -> Iterator[str]:
    """Runs until the block ends, with more flags if there are some; gives the URL for clients.

    `configured`: the flags name a configuration that says where streams are stored."""
    command: list[str | Path] = [
        BINARY,
        "-js",
        "-a",
        "127.0.0.1",
        "-p",
        "-1",
    ]
    if not configured:
        command += ["-sd", directory / "data"]
    command += ["--ports_file_dir", directory, *flags]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            ports = directory / f"nats-server_{process.pid}.ports"
            text = wait_for(lambda: ports.exists() and ports.read_text(), "the ports file")
            url = json.loads(str(text))["nats"][0]
            yield url
        finally:
            process.terminate()
