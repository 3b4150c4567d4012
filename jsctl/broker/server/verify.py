"""Password checks in a few threads: bcrypt is slow on purpose and must not hold up a turn."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from jsctl.broker.turn import Verify

BCRYPT_BYTES_MAX = 72
"""bcrypt looks at no more of a password; the library refuses longer ones."""


class Verifier:
    """`answer(token, ok)` runs in the loop's thread. `waits(token)` is asked in another one: who is
    gone when it would be his turn is not checked, so that what many began and left is over at once.
    """

    def __init__(
        self, threads: int, answer: Callable[[int, bool], None], waits: Callable[[int], bool]
    ) -> None:
        self._threads = threads
        self._answer = answer
        self._waits = waits
        self._pool: ThreadPoolExecutor | None = None
        self._loop = asyncio.get_running_loop()

    def submit(self, request: Verify) -> None:
        """Check one password, some time."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="verify")
        self._pool.submit(self._check, request)

    def stop(self) -> None:
        """Forget what is queued."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)

    def _check(self, request: Verify) -> None:
        if not self._waits(request.token):
            return
        ok = matches(request.password, request.hashed)
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._answer, request.token, ok)


def matches(password: bytes, hashed: bytes) -> bool:
    """Whether a bcrypt hash was made from a password; False for a hash that is none."""
    import bcrypt  # loaded in the thread: a broker without hashed passwords never needs it

    try:
        return bcrypt.checkpw(password[:BCRYPT_BYTES_MAX], hashed)
    except ValueError:
        return False
