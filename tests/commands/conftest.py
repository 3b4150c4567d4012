"""A cluster per kind of server for the session, and a way to run command lines on it."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from nats.errors import NoRespondersError

from jsctl.cli import main
from jsctl.testing import Broker, Cluster, RealServer
from tests.support.command_line import PATIENCE, led
from tests.support.kept import kept
from tests.support.waiting import eventually

KINDS: dict[str, type[Broker]] = {"nats-server": RealServer, "jsctl": Broker}
ENABLED = ["nats-server"]
"""Which kinds of server the command tests run on."""

HEAVY = ("asyncio", "ssl", "rich", "nats", "textual", "click", "httpx", "yaml")
"""What neither help nor the declarations may load: it takes longer than all else they do."""

_CONNECTION_VARIABLES = ("NATS_", "JSCTL_", "LLMFORMAT", "FORCE_COLOR", "CLICOLOR_FORCE")


@dataclass(frozen=True, slots=True)
class Result:
    """What a command line did."""

    code: int
    out: str
    err: str


@dataclass(frozen=True, slots=True)
class Server:
    """A running cluster and who to be on it."""

    kind: str
    cluster: Cluster

    @property
    def url(self) -> str:
        """For an ordinary client."""
        return ",".join(self.cluster.urls)


Run = Callable[..., Result]


@pytest.fixture(scope="package")
def clusters() -> Iterator[Callable[[str], Cluster]]:
    """One cluster of each kind."""
    yield from kept(lambda kind: Cluster(3, server=KINDS[kind]))


@pytest.fixture(scope="package", params=ENABLED)
def server(request: pytest.FixtureRequest, clusters: Callable[[str], Cluster]) -> Server:
    kind = str(request.param)
    return Server(kind, clusters(kind))


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No context or variable of the person who runs the tests gets in."""
    for name in list(os.environ):
        if name.startswith(_CONNECTION_VARIABLES):
            monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.setenv("TERM", "xterm")


@pytest.fixture
def cli(capfd: pytest.CaptureFixture[str]) -> Run:
    """Runs a command line in this process."""

    def run(*words: str) -> Result:
        capfd.readouterr()
        code = main(words)
        captured = capfd.readouterr()
        return Result(code, captured.out, captured.err)

    return run


@pytest.fixture
def run(server: Server, cli: Run, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    """Runs a command line against the server; streams are removed afterwards."""
    monkeypatch.setenv("NATS_TIMEOUT", PATIENCE)

    def on_server(*words: str) -> Result:
        return led(lambda: cli("--server", server.url, *words))

    yield on_server
    for name in on_server("stream", "ls", "-n").out.split():
        on_server("stream", "rm", name, "-f")


@pytest.fixture
def publish(server: Server) -> Callable[..., None]:
    """Stores a message and waits for its acknowledgement."""
    import asyncio

    from jsctl.client.connection import connect
    from jsctl.settings import Context, Settings

    settings = Settings(connection=Context(url=server.url))

    async def store(subject: str, payload: bytes, headers: dict[str, str] | None) -> None:
        async with connect(settings) as client:

            async def taken() -> bool:
                try:
                    await client.request(subject, payload, timeout=30, headers=headers)
                except NoRespondersError:
                    return False
                return True

            await eventually(taken, "every server knows the stream's subjects")

    def publish_one(subject: str, payload: bytes, headers: dict[str, str] | None = None) -> None:
        asyncio.run(store(subject, payload, headers))

    return publish_one
