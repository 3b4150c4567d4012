"""Configurations, good and bad, and what a server makes of them that is only asked to read them."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from jsctl.testing import HOST, find_real_server


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
    ours = (sys.executable, "-m", "jsctl", "broker")
    program: Sequence[str] = ours if kind == "jsctl" else (find_real_server(),)
    done = subprocess.run(
        [*program, "-c", str(path), *words], capture_output=True, text=True, timeout=30, check=False
    )
    return done.returncode, done.stdout + done.stderr


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
