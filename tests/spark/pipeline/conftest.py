"""Both kinds of server, and quick ways to fill streams and to run command lines."""

import asyncio
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from jsctl.api.stream import StreamConfig
from jsctl.api.times import SECOND_NS
from jsctl.cli import main
from jsctl.client.manager import Manager, open_manager
from jsctl.settings import Context, Settings
from jsctl.spark.java.class_archive import SWITCH
from jsctl.testing import Broker, RealServer

KINDS: dict[str, type[Broker]] = {"nats-server": RealServer, "jsctl": Broker}
IN_FLIGHT = 1000
_NUMBERS = count(1)
Message = tuple[str, bytes] | tuple[str, bytes, Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class Result:
    """What a command line did."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The document on stdout."""
        return json.loads(self.out)


Run = Callable[..., Result]


@pytest.fixture(scope="session", params=list(KINDS))
def server(request: pytest.FixtureRequest, brokers: Callable[[str], Broker]) -> Broker:
    """A server with JetStream of either kind, shared: names must be fresh."""
    return brokers(str(request.param))


@pytest.fixture(scope="session")
def broker(brokers: Callable[[str], Broker]) -> Broker:
    """One server of ours, where the kind does not matter."""
    return brokers("jsctl")


@pytest.fixture
def fresh() -> str:
    """A name that no other test uses."""
    return f"P{next(_NUMBERS)}"


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No context or variable of the person who runs the tests gets in."""
    for name in list(os.environ):
        if name != SWITCH and name.startswith(("NATS_", "JSCTL_", "LLMFORMAT", "FORCE_COLOR")):
            monkeypatch.delenv(name)
    for variable in ("XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(variable, str(tmp_path / variable.lower()))
    monkeypatch.setenv("TZ", "UTC")


@pytest.fixture
def cli(capfd: pytest.CaptureFixture[str]) -> Run:
    """Runs a command line in this process, with the session of the tests."""

    def run(*words: str) -> Result:
        capfd.readouterr()
        code = main(words)
        captured = capfd.readouterr()
        return Result(code, captured.out, captured.err)

    return run


def quick_java() -> dict[str, str]:
    """The environment of a process whose Java compiles only cheaply: half the time to warm up."""
    return {**os.environ, "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1"}


def settings_of(server: Broker) -> Settings:
    """How to reach a server."""
    return Settings(connection=Context(url=server.url), timeout_ns=20 * SECOND_NS)


def on(server: Broker, body: Callable[[Manager], Any]) -> Any:
    """What an asynchronous use of the API gives."""

    async def run() -> Any:
        async with open_manager(settings_of(server)) as manager:
            return await body(manager)

    return asyncio.run(run())


def make_stream(server: Broker, name: str, **config: Any) -> None:
    """A stream that takes `name.>` unless told otherwise."""
    fields = {"subjects": (f"{name}.>",), **config}
    on(server, lambda manager: manager.create_stream(StreamConfig(name=name, **fields)))


def publish(server: Broker, messages: Sequence[Message]) -> None:
    """Store messages in their order; every one must be acknowledged."""

    async def send(manager: Manager) -> None:
        for at in range(0, len(messages), IN_FLIGHT):
            parts = messages[at : at + IN_FLIGHT]
            replies = await asyncio.gather(
                *(
                    manager.client.request(
                        one[0], one[1], timeout=20, headers=dict(one[2]) if len(one) > 2 else None
                    )
                    for one in parts
                )
            )
            for reply in replies:
                assert "error" not in json.loads(reply.data), reply.data

    on(server, send)


def orders(stream: str, number: int, *, bad_every: int = 0) -> list[Message]:
    """`stream.<n % 7>.new` with {"id", "amount"}, some of them no JSON."""
    return [
        (
            f"{stream}.{n % 7}.new",
            b"no json" if bad_every and n % bad_every == 0 else
            json.dumps({"id": n, "amount": n / 2}).encode(),
            {"N": str(n)},
        )
        for n in range(number)
    ]  # fmt: skip


def stored(server: Broker, stream: str) -> int:
    """How many messages a stream has."""
    info = on(server, lambda manager: manager.stream_info(stream))
    found: int = info.state.messages
    return found


def write_spec(directory: Path, text: str) -> Path:
    """A pipeline file."""
    path = directory / "pipeline.yaml"
    path.write_text(text)
    return path
