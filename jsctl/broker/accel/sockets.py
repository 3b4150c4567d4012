"""Plain connections, read and written to without asyncio: the reference of `_sockets.c`, which does
each with all of them in one call.

`plain` has the number of a connection by its file descriptor, `direct` the other way round those
whose transport has nothing unsent. Descriptors in them are open and do not block.
"""

import os
from collections.abc import Sequence

ENDED = -1
BROKEN = -2


def read(fd: int, buffer: memoryview) -> int:
    """What a look at a socket reads into a buffer, 0 if nothing is there after all; ENDED or
    BROKEN if nothing ever will be."""
    try:
        return os.readv(fd, (buffer,)) or ENDED
    except BlockingIOError:
        return 0
    except OSError:
        return BROKEN


def send(
    writes: Sequence[tuple[int, bytes]], direct: dict[int, int]
) -> Sequence[tuple[int, bytes, int]]:
    """Give to the system what it takes of (connection, bytes); what is left, and how much of it is
    sent. What is behind that on the same connection is left, too, as it is not `direct` then."""
    rest: list[tuple[int, bytes, int]] = []
    for conn, data in writes:
        fd, sent = direct.get(conn), 0
        if fd is not None:
            try:
                sent = os.write(fd, data)
            except OSError:
                pass  # Whoever sends the rest sees it again, and tells.
            if sent == len(data):
                continue
            del direct[conn]
        rest.append((conn, data, sent))
    return rest
