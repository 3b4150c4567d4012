"""A host that stands for several servers, this one among them: another one is dialed."""

import socket
from typing import Any

import pytest

from jsctl.broker.options import Options
from jsctl.broker.turn import ONLY_OWN
from tests.broker.server.harness import LOCAL, running

HERE, ELSEWHERE, NOWHERE = "127.0.0.1", "127.0.0.2", "127.0.0.3"
"""Where the server of these tests listens, and where nobody does."""


def resolved(*_: object, **__: object) -> list[tuple[Any, ...]]:
    """What is found for each name."""
    kind = (socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "")
    return [(*kind, (host, 0)) for host in (ELSEWHERE, NOWHERE, HERE)]


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
