"""A server that reads everything from its file, and reads it again when the file has changed."""

import re
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from jsctl.testing import HOST, Broker, RealServer
from tests.support.waiting import wait_for

OUTCOMES = ("Reloaded server configuration", "Failed to reload server configuration: ")
ALWAYS = (
    "Reloaded: authorization users",
    "Reloaded: authorization nkey users",
    "Reloaded: accounts",
)
"""nats-server says so at every reload, of nkeys where there are any."""
RELOAD_S = 20.0


class _FromFile(Broker):
    """No flag wins over the file: what it says is what is reloaded."""

    def command(self) -> list[str]:
        """The program and its file."""
        path = self.directory / "broker.conf"
        path.write_text(self.filled(self.config))
        return [*self.program, "-c", str(path)]

    def filled(self, text: str) -> str:
        """A configuration with the server's places in it."""
        text = text.replace("@DIR", str(self.directory))
        if "listen:" not in text.partition("{")[0]:
            text = f'listen: "{HOST}:{self.port}"\n{text}'
        text = text.replace("@HTTP", self.monitor_url.rpartition(":")[2])
        if not re.search("^https?(_port)?:", text, re.MULTILINE):
            text = f'http: "{self.monitor_url.removeprefix("http://")}"\n{text}'
        return text


class OurServer(_FromFile):
    """The broker."""


class TheirServer(_FromFile, RealServer):
    """nats-server."""


class CarelessServer(_FromFile):
    """The broker with a bug in its reloads; see `careless_reload`."""

    program = (sys.executable, "-m", "tests.support.careless_reload")


KINDS: dict[str, type[_FromFile]] = {"nats-server": TheirServer, "jsctl": OurServer}
PROGRAMS: dict[str, type[_FromFile]] = {**KINDS, "careless": CarelessServer}


class Reloading:
    """A running server whose file a test changes."""

    def __init__(
        self, kind: str, config: str, prepare: Callable[[Path], object] | None = None
    ) -> None:
        """`prepare` puts files into the server's directory before it starts."""
        self.kind = kind
        self.broker = PROGRAMS[kind](config=config)
        try:
            if prepare is not None:
                prepare(self.broker.directory)
            self.broker.start()
        except BaseException:
            self.broker.close()
            raise

    def __enter__(self) -> "Reloading":
        return self

    def __exit__(self, *_: object) -> None:
        self.broker.close()

    @property
    def port(self) -> int:
        """Where clients connect."""
        return self.broker.port

    @property
    def file(self) -> Path:
        """The configuration."""
        return self.broker.directory / "broker.conf"

    def reload(self, config: str) -> list[str]:
        """Have it read another configuration; what it logged until that was done or refused."""
        self.file.write_text(self.broker.filled(config))
        return self.again()

    def again(self) -> list[str]:
        """Have it read its file; the outcome is the last of the lines."""
        size = len(self.broker.logs)
        self.broker.signal(signal.SIGHUP)
        return wait_for(lambda: self._outcome(size), "the end of the reload", RELOAD_S)

    def _outcome(self, size: int) -> list[str]:
        lines = [_text(line) for line in self.broker.logs[size:].splitlines()]
        ends = [number for number, line in enumerate(lines) if line.startswith(OUTCOMES)]
        return lines[: ends[0] + 1] if ends else []

    def must_reload(self, config: str) -> list[str]:
        """The same for a configuration that is taken; its lines without those always said."""
        lines = self.reload(config)
        assert lines[-1].startswith(OUTCOMES[0]), lines
        return [line for line in lines[:-1] if line.startswith("Reload") and line not in ALWAYS]

    def must_refuse(self, config: str) -> str:
        """The same for one that is refused; the reason."""
        lines = self.reload(config)
        assert lines[-1].startswith(OUTCOMES[1]), lines
        assert not [line for line in lines if line.startswith("Reloaded:")], lines
        return lines[-1].removeprefix(OUTCOMES[1])


def _text(line: str) -> str:
    """A line of the log without process, time and level."""
    return re.sub(r"^(\[\d+\] )?([\d/]+ [\d:.]+ )?(\[\w{3}\] )?", "", line)
