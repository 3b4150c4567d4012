"""Configurations, good and bad, and what a server makes of them that is only asked to read them."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from jsctl.testing import HOST, Broker, find_real_server
from jsctl.testing.broker import fork_server

ENDED_S = 30.0


class Bad(str):
    """A configuration that nobody takes; `said` is in the broker's error."""

    said: str

    def __new__(cls, config: str, said: str) -> "Bad":
        """Words of the broker's own."""
        made = super().__new__(cls, config)
        made.said = said
        return made


def filled(config: str, certificates: Path) -> str:
    """A configuration with the files' places in it."""
    for name, file in (("@CERT", "cert.pem"), ("@KEY", "key.pem"), ("@CA", "ca.pem")):
        config = config.replace(name, str(certificates / file))
    return config


def ended(kind: str, config: str, directory: Path, *words: str) -> tuple[int, str]:
    """How a server with a configuration ends, and what it says; it has to end."""
    path = directory / "x.conf"
    path.write_text(f'listen: "{HOST}:-1"\n{config.replace("@DIR", str(directory))}')
    words = ("-c", str(path), *words)
    if kind == "jsctl":
        return _ours(words, directory / "said")
    program = (find_real_server(), *words)
    done = subprocess.run(program, capture_output=True, text=True, timeout=ENDED_S, check=False)
    return done.returncode, done.stdout + done.stderr


def _ours(words: Sequence[str], said: Path) -> tuple[int, str]:
    if not Broker.forked:
        program = (*Broker.program, *words)
        done = subprocess.run(program, capture_output=True, text=True, timeout=ENDED_S, check=False)
        return done.returncode, done.stdout + done.stderr
    with said.open("wb") as log:
        child = fork_server().launch(words, os.environ, log.fileno())
        try:
            status = child.wait(ENDED_S)
        finally:
            child.kill()
    return status, said.read_text()


def refused_by_both(bad: Bad, certificates: Path, directory: Path) -> None:
    """Neither server starts with it; the broker names what, where, and what helps."""
    config = filled(bad, certificates)
    line = config[: config.index(config.rpartition("\n")[2])].count("\n") + 2
    status, said = ended("jsctl", config, directory)
    assert status == 1, said
    assert bad.said in said
    place = f"{directory}/x.conf:{line}:"
    assert place in said and said.rstrip().endswith(")"), "it names place and remedy"
    status, said = ended("nats-server", config, directory)
    assert status == 1, said
