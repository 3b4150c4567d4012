"""Checks of passwords in a thread: those that nobody waits for any more are left out."""

import asyncio
import threading

import bcrypt

from jsctl.broker.server.verify import Verifier
from jsctl.broker.turn import Verify

WAIT_S = 30


async def test_who_is_gone_is_not_checked() -> None:
    """A check takes far longer than it takes to ask for one and to leave."""
    here, goes_on = {1, 2, 3}, threading.Event()
    answers: asyncio.Queue[tuple[int, bool]] = asyncio.Queue()

    def waits(token: int) -> bool:
        assert goes_on.wait(WAIT_S)
        return token in here

    verifier = Verifier(1, lambda *answer: answers.put_nowait(answer), waits)
    hashed = bcrypt.hashpw(b"x", bcrypt.gensalt(4))
    for token in (1, 2, 3):
        verifier.submit(Verify(token, b"x", hashed))
    here.discard(2)
    goes_on.set()
    async with asyncio.timeout(WAIT_S):
        assert [await answers.get() for _ in range(2)] == [(1, True), (3, True)]
    verifier.stop()
