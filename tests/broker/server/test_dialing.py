"""A host of several addresses: which one is dialed, of those that are silent, this server's, or
another one's."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import pytest

from jsctl.broker.options import Options
from jsctl.broker.turn import ONLY_OWN
from tests.broker.server.harness import LOCAL, running

HERE, ELSEWHERE, NOWHERE = "127.0.0.1", "127.0.0.2", "127.0.0.3"
"""Where the server of these tests listens, and where nobody does."""


def resolved(*_: object, port: int = 0, **__: object) -> list[tuple[Any, ...]]:
    """What is found for each name."""
    kind = (socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "")
    return [(*kind, (host, port)) for host in (ELSEWHERE, NOWHERE, HERE)]


@pytest.mark.parametrize(
    ("own", "answer", "only_own"),
    [
        ((ELSEWHERE,), "DIALED False", False),
        ((ELSEWHERE, NOWHERE), "DIALED False", False),
        ((HERE,), "NOT DIALED", False),
        ((HERE, ELSEWHERE, NOWHERE), "NOT DIALED", True),
    ],
)
async def test_which_address_is_dialed(
    own: tuple[str, ...], answer: str, only_own: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(Options(listen=LOCAL)) as server:
        client = await server.client()
        await client.line()
        monkeypatch.setattr(socket, "getaddrinfo", resolved)
        assert await client.ask(" ".join(["DIAL", str(server.port()), *own])) == answer
        reasons = [reason for one in server.node.seen for _, reason in one.dial_failed]
        assert (ONLY_OWN in reasons) is only_own
        await client.close()


async def test_localhost_is_one_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who listens at the one address of it would go on trying the other one for ever."""

    def localhost(*_: object, **__: object) -> list[tuple[Any, ...]]:
        kind = (socket.SOCK_STREAM, socket.IPPROTO_TCP, "")
        both = ((socket.AF_INET6, "::1"), (socket.AF_INET, HERE))
        return [(family, *kind, (host, 0)) for family, host in both]

    async with running(Options(listen=LOCAL)) as server:
        client = await server.client()
        await client.line()
        monkeypatch.setattr(socket, "getaddrinfo", localhost)
        assert await client.ask(f"DIAL 1 {HERE}") == "NOT DIALED"
        reasons = [reason for one in server.node.seen for _, reason in one.dial_failed]
        assert reasons == [ONLY_OWN]
        await client.close()


@contextmanager
def silent(port: int) -> Iterator[None]:
    """Nobody answers at a port elsewhere: who waits there already is all that there is room for."""
    with ExitStack() as stack:
        door = stack.enter_context(socket.create_server((ELSEWHERE, port), backlog=0))
        for _ in range(3):
            waits = stack.enter_context(socket.socket())
            waits.setblocking(False)
            waits.connect_ex(door.getsockname())
        yield


@pytest.mark.parametrize("words", ["DIAL %d", f"DIAL %d {NOWHERE}", "HUB %d"])
async def test_an_address_that_is_silent_is_not_waited_for(
    words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(Options(listen=LOCAL)) as server:
        client = await server.client()
        await client.line()
        monkeypatch.setattr(socket, "getaddrinfo", partial(resolved, port=server.port()))
        with silent(server.port()):
            assert await client.ask(words % server.port()) == "DIALED False"
        await client.close()
