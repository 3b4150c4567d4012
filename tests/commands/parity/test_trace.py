"""`trace`: the way of a message, on one server and through a cluster."""

import asyncio
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread

import pytest

from jsctl.client.connection import connect
from jsctl.settings import Context, Settings
from jsctl.testing import Broker
from tests.commands.conftest import Result
from tests.commands.conftest import Server as ClusterServer
from tests.commands.parity.conftest import BOTH_KINDS, PASSWORD, Same

LINES = """
trace
trace nobody.listens
trace heard.here hello
trace heard.here hello --deliver -H A:b
trace kept.a x --deliver
trace kept.a x
trace kept.a x --deliver -T
"""
ABOUT = re.compile(r'"(NATS CLI Version \\S+|jsctl)"|cid:\d+|version:"[^"]+"')


def tidy(text: str) -> str:
    """Without what each client is called."""
    return ABOUT.sub("*", re.sub(r'"(NATS CLI Version [^"]+|jsctl)"', "*", text))


@contextmanager
def listening(settings: Settings, subject: str) -> Iterator[None]:
    """Somebody listens meanwhile."""
    ready, done = Event(), Event()

    async def listen() -> None:
        async with connect(settings) as client:
            await client.subscribe(subject, queue="q", cb=_nothing)
            await client.flush()
            ready.set()
            await asyncio.get_running_loop().run_in_executor(None, done.wait)

    thread = Thread(target=asyncio.run, args=(listen(),))
    thread.start()
    try:
        assert ready.wait(60)
        yield
    finally:
        done.set()
        thread.join()


async def _nothing(_message: object) -> None:
    """Messages are only counted by the trace."""


@pytest.mark.parametrize("one_server", BOTH_KINDS, indirect=True)
def test_one_server(same: Same, one_server: Broker) -> None:
    same("stream add KEPT --subjects kept.> --defaults", who="both", tidy=lambda _: "")
    who = Context(url=one_server.url, user="both", password=PASSWORD)
    with listening(Settings(connection=who), "heard.>"):
        same(LINES, who="both", tidy=tidy)


def test_a_cluster(
    run: Callable[..., Result], server: ClusterServer, cli: Callable[..., Result]
) -> None:
    """The listener is on another server than the one that is asked."""
    first, second = server.cluster.urls[:2]
    with listening(Settings(connection=Context(url=second)), "far.away"):
        result = cli("trace", "far.away", "--server", first)
    assert result.code == 0
    lines = result.out.splitlines()
    assert lines[2].startswith("Client ") and 'server:"n1"' in lines[2]
    assert lines[3].startswith("--> Router ")
    assert lines[4].startswith("    Router ") and 'server:"n2"' in lines[4]
    assert lines[5].startswith("    --C Client ") and 'subject:"far.away" queue:"q"' in lines[5]
    assert lines[-2:] == ["  Client: 1", "  Router: 1"]
