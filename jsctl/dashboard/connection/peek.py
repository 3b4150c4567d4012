"""Reading a stream without leaving a trace: single messages by sequence, no consumer.

Pages go forward from a sequence, or end at the newest message; a point in time is found by
bisection, because every server can look up a message by its sequence.
"""

from jsctl.api.errors import ApiError
from jsctl.client.manager import Manager
from jsctl.dashboard.model.message import StoredMessage
from jsctl.dashboard.model.tracks import time_of

PAGE = 50
WIDER_MAX = 10
"""How often a page at the end looks further back for enough messages."""
NOT_FOUND = 404


class Peek:
    """Looks into one stream; `subject` limits what it sees. Raises ApiError and JsctlError."""

    def __init__(self, manager: Manager, stream: str, subject: str = ">") -> None:
        self.manager = manager
        self.stream = stream
        self.subject = subject or ">"

    async def one(self, seq: int) -> StoredMessage | None:
        """The first message at or after a sequence."""
        try:
            found = await self.manager.message(self.stream, seq=max(1, seq), next_for=self.subject)
        except ApiError as error:
            if error.code == NOT_FOUND:
                return None
            raise
        headers = parse_headers(found.hdrs)
        return StoredMessage(found.seq, time_of(found.time), found.subject, headers, found.data)

    async def page(self, seq: int, count: int = PAGE) -> list[StoredMessage]:
        """Up to `count` messages from a sequence on."""
        found: list[StoredMessage] = []
        while len(found) < count:
            message = await self.one(seq)
            if message is None:
                break
            found.append(message)
            seq = message.seq + 1
        return found

    async def newest(self, first: int, last: int, count: int = PAGE) -> list[StoredMessage]:
        """The last `count` messages of a stream that reaches from `first` to `last`."""
        return await self.before(first, last + 1, count)

    async def before(self, first: int, end: int, count: int = PAGE) -> list[StoredMessage]:
        """The last `count` messages with sequences below `end`."""
        span, found = count, list[StoredMessage]()
        for _ in range(WIDER_MAX):
            start = max(first, end - span)
            found = [one for one in await self.page(start, span) if one.seq < end]
            if len(found) >= count or start <= first:
                break
            span *= 4
            if span > count * 64:
                break
        return found[-count:]

    async def at_time(self, first: int, last: int, time_ns: int) -> int:
        """The sequence of the first message stored at or after a time; last + 1 if none was."""
        low, high = first, last + 1
        while low < high:
            middle = (low + high) // 2
            message = await self.one(middle)
            if message is None or message.time_ns >= time_ns:
                high = middle
            else:
                low = max(middle + 1, message.seq + 1)
        return low


def parse_headers(block: bytes) -> tuple[tuple[str, str], ...]:
    """Names and values of a header block, in order."""
    lines = block.decode("utf-8", "replace").split("\r\n")[1:]
    pairs = (line.partition(":") for line in lines if ":" in line)
    return tuple((name, value.strip()) for name, _, value in pairs)
