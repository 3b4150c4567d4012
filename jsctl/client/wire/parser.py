"""Reads what a server sends, in place of the library's parser.

That one takes vertical tabs and form feeds for the end of a word, as regular expressions do.
Servers do not: subjects may have them, and whoever published to one ended the connections of all
who listened. It also knows no line that is not UTF-8.
"""

from collections.abc import Awaitable, Callable, Mapping

from nats.errors import ProtocolError
from nats.protocol.parser import Parser

from jsctl.api.jsontext import parse_object
from jsctl.api.strict import DecodeError

END = b"\r\n"
LINE_MAX = 1 << 20
"""No line of a server is longer: what is has no end."""
DIGITS_MAX = 18
_HEADERS = b"HMSG"
_MESSAGES: Mapping[bytes, tuple[int, int]] = {b"MSG": (4, 5), _HEADERS: (5, 6)}
"""Words of a message's line, without and with a reply subject."""


class LineParser(Parser):
    """Splits at blanks and line ends and nowhere else. The state of `Parser` is not used."""

    async def parse(self, data: bytes = b"") -> None:
        """Passes on what is whole; the rest waits for more. Raises ProtocolError."""
        self.buf.extend(data)
        while (end := self.buf.find(END, 0, LINE_MAX)) >= 0:
            line = bytes(self.buf[:end])
            words = line.split(b" ")
            if words[0] in _MESSAGES:
                if not await self._message(words, end + len(END)):
                    return
                continue
            del self.buf[: end + len(END)]
            await self._control(words[0], line[len(words[0]) :].strip())
        if len(self.buf) >= LINE_MAX:
            raise ProtocolError("nats: a line without an end")

    async def _message(self, words: list[bytes], start: int) -> bool:
        """Passes a message on; False if it is not whole yet."""
        short, long = _MESSAGES[words[0]]
        if len(words) not in (short, long):
            raise ProtocolError("nats: malformed MSG")
        sid, size = _number(words[2]), _number(words[-1])
        head = _number(words[-2]) if words[0] == _HEADERS else 0
        if head > size:
            raise ProtocolError("nats: malformed MSG")
        stop = start + size
        if len(self.buf) < stop + len(END):
            return False
        block = bytes(self.buf[start : start + head]) if head else None
        payload = bytes(self.buf[start + head : stop])
        del self.buf[: stop + len(END)]
        reply = words[3] if len(words) == long else b""
        await self.nc._process_msg(sid, words[1], reply, payload, block)
        return True

    async def _control(self, word: bytes, rest: bytes) -> None:
        """A line that is no message."""
        told: Mapping[bytes, Callable[[], Awaitable[None]]] = {
            b"PING": self.nc._process_ping,
            b"PONG": self.nc._process_pong,
        }
        if word in told:
            await told[word]()
        elif word == b"-ERR":
            await self.nc._process_err(rest.decode("utf-8", "replace"))
        elif word == b"INFO":
            await self.nc._process_info(_document(rest))
        elif word != b"+OK":
            raise ProtocolError("nats: unknown protocol")


def _number(word: bytes) -> int:
    """Of digits alone: what is less than nothing would leave the parser where it stands."""
    if not word.isdigit() or len(word) > DIGITS_MAX:
        raise ProtocolError("nats: malformed MSG")
    return int(word)


def _document(text: bytes) -> dict[str, object]:
    try:
        return parse_object(text)
    except DecodeError:
        raise ProtocolError("nats: malformed INFO") from None
