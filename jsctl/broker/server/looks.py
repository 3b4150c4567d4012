"""The loop's looks at the sockets: what can be read of plain connections is read at once, and the
turns that this asks for run behind the same look, with all that it found (decision 60).

What is left goes asyncio's way: listeners, connections with TLS or with a handshake still to come,
ends, and everything that is not plainly input.
"""

import math
import select
import selectors
import sys
from typing import Any

from jsctl.broker.accel import sockets
from jsctl.broker.accel.choice import socket_loops
from jsctl.broker.accel.contract import SocketLoops
from jsctl.broker.server.connection import READ_ERROR, Connections

Ready = list[tuple[selectors.SelectorKey, int]]


class Looks(selectors.DefaultSelector):
    """The selector of the server's loop, in Python and for any system."""

    def __init__(self) -> None:
        super().__init__()
        self.served: Connections | None = None
        """Whose plain connections are read."""

    def serve(self, connections: Connections) -> None:
        """Read what is plain of these, from now on: as with each of them, a selector is told what
        it has to look at when there is something."""
        assert self.served is None, "a loop has one server"
        self.served = connections

    def select(self, timeout: float | None = None) -> Ready:
        """What is left to the loop."""
        shared = self.served
        if shared is None:
            return super().select(timeout)
        left, turns = self._look(shared, timeout), shared.turns
        if turns.has_input and not turns.asked:
            if left or (timeout is not None and timeout <= 0):
                turns.wake()
            elif turns.run():
                # A loop that waits has nothing else to do: the turn need not go round it, and the
                # one that it asks for comes behind what has arrived meanwhile.
                left = self._look(shared, 0)
        return left

    def _look(self, shared: Connections, timeout: float | None) -> Ready:
        """Wait for sockets, and read; what is not read."""
        found = super().select(timeout)
        plain = shared.plain
        left = []
        for one in found:
            key, events = one
            conn = plain.get(key.fd)
            if (
                conn is None
                or events != selectors.EVENT_READ
                or not self._read(shared, key.fd, conn)
            ):
                left.append(one)
        return left

    def _read(self, shared: Connections, fd: int, conn: int) -> bool:
        """Take what can be read; False if that is the end, which is for the loop."""
        buffer = shared.buffer_now()
        size = sockets.read(fd, buffer)
        if size == sockets.BROKEN:
            shared.by_id[conn].abort(READ_ERROR)
        if size <= 0:
            return size != sockets.ENDED
        shared.turns.inputs.chunks.append((conn, bytes(buffer[:size])))
        shared.turns.bytes_in += size
        return True


if sys.platform == "linux":

    class CompiledLooks(Looks):
        """The same, on Linux: one call waits and reads. It asks for no more room than a turn wants
        to have, however many connections there are."""

        def __init__(self, loops: SocketLoops) -> None:
            super().__init__()
            self._take = loops.look
            self._epoll = self.fileno()
            self._keys: dict[int, selectors.SelectorKey] = {}
            """What is registered, by file descriptor."""

        def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
            """See the library."""
            key = super().register(fileobj, events, data)
            self._keys[key.fd] = key
            return key

        def unregister(self, fileobj: Any) -> selectors.SelectorKey:
            """See the library."""
            key = super().unregister(fileobj)
            self._keys.pop(key.fd, None)
            return key

        def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
            """See the library."""
            key = super().modify(fileobj, events, data)
            self._keys[key.fd] = key
            return key

        def _look(self, shared: Connections, timeout: float | None) -> Ready:
            wait_ms = -1 if timeout is None else math.ceil(timeout * 1000) if timeout > 0 else 0
            turns = shared.turns
            size, left = self._take(
                self._epoll,
                wait_ms,
                shared.plain,
                turns.inputs.chunks,
                shared.buffer,
                len(shared.small),
                shared.limits.turn_bytes_high - turns.bytes_in,
            )
            turns.bytes_in += size
            return [] if left is None else self._left(shared, left)

        def _left(self, shared: Connections, left: list[tuple[int, int]]) -> Ready:
            ready: Ready = []
            for fd, found in left:
                if (tell := shared.told.get(fd)) is not None:
                    tell()
                    continue
                if not found:
                    shared.by_id[shared.plain[fd]].abort(READ_ERROR)
                    continue
                events = selectors.EVENT_WRITE if found & ~select.EPOLLIN else 0
                if found & ~select.EPOLLOUT:
                    events |= selectors.EVENT_READ
                key = self._keys.get(fd)
                if key is not None:
                    ready.append((key, events & key.events))
            return ready


def made_looks() -> Looks:
    """A selector for the loop, the compiled one where there is one."""
    loops = socket_loops()
    if sys.platform == "linux" and loops is not None:
        return CompiledLooks(loops)
    return Looks()
