"""The client protocol: bytes to operations (client protocol 1.1 to 1.5).

`control` understands one control line; `ClientParser` cuts chunks into lines and payloads with it.
The lane does the same cutting in bulk; both must agree on every input.

What a client may not send at all, and whatever is not a verb, is `UNKNOWN`. Wrong counts and
numbers of arguments are `VIOLATION`: the real server closes without a word there.
"""

import re
from typing import NamedTuple

from jsctl.broker.protocol.intake import Intake
from jsctl.broker.protocol.ops import (
    LINE_TOO_LONG,
    PAYLOAD_TOO_LARGE,
    UNKNOWN,
    VIOLATION,
    Bad,
    ClientOp,
    Connect,
    Info,
    Ok,
    PeerError,
    Ping,
    Pong,
    Publish,
    Subscribe,
    Unsubscribe,
)

SIZE_DIGITS_MAX = 9
BLANKS_MAX = 65536
"""More blanks than this before an argument are not waited out."""

words_of = re.compile(rb"[^ \t\r\n]+").findall
_VERB = re.compile(
    rb"(?:(PUB|HPUB|SUB|UNSUB|CONNECT|INFO|-ERR)[ \t]+|(PING|PONG|\+OK))", re.IGNORECASE
).match
_WITH_ARGUMENTS = (b"PUB", b"HPUB", b"SUB", b"UNSUB", b"CONNECT", b"INFO", b"-ERR")
_VERB_PREFIXES = frozenset(
    word[:size] for word in (*_WITH_ARGUMENTS, b"PING", b"PONG", b"+OK") for size in range(10)
)


class Head(NamedTuple):
    """The control line of a PUB or HPUB; `header_size` is -1 for PUB."""

    subject: bytes
    reply: bytes
    header_size: int
    size: int


Line = Head | Subscribe | Unsubscribe | Connect | Info | Ping | Pong | Ok | PeerError | Bad


def number(text: bytes) -> int:
    """A size or count of at most nine decimal digits; -1 for anything else."""
    return int(text) if len(text) <= SIZE_DIGITS_MAX and text.isdigit() else -1


def control(line: bytes, line_max: int, payload_max: int) -> Line:
    """Understand one control line, given with its line feed."""
    found = _VERB(line)
    if found is None:
        return UNKNOWN
    if found[2] is not None:
        return _BARE[found[2].upper()]
    argument = line[found.end() : -1]
    if argument.endswith(b"\r"):
        argument = argument[:-1]
    if len(argument) > line_max:
        return LINE_TOO_LONG
    verb = found[1].upper()
    if verb == b"PUB":
        return _pub(words_of(argument), payload_max)
    if verb == b"HPUB":
        return _hpub(words_of(argument), payload_max)
    if verb == b"SUB":
        return _sub(words_of(argument))
    if verb == b"UNSUB":
        return _unsub(words_of(argument))
    return _TEXTS[verb](argument)


def unfinished(rest: bytes, line_max: int) -> Bad | None:
    """Whether the start of a line can be refused before its end has come."""
    found = _VERB(rest)
    if found is None:
        word = rest[:8].upper()
        return None if word in _VERB_PREFIXES and len(rest) <= 8 else UNKNOWN
    if found[2] is not None:
        return LINE_TOO_LONG if len(rest) > BLANKS_MAX else None
    argument_size = len(rest) - found.end() - rest.endswith(b"\r")
    if argument_size > line_max or found.end() > BLANKS_MAX:
        return LINE_TOO_LONG
    return None


_BARE: dict[bytes, Ping | Pong | Ok] = {b"PING": Ping(), b"PONG": Pong(), b"+OK": Ok()}
_TEXTS: dict[bytes, type[Connect] | type[Info] | type[PeerError]] = {
    b"CONNECT": Connect,
    b"INFO": Info,
    b"-ERR": PeerError,
}


def _pub(words: list[bytes], payload_max: int) -> Head | Bad:
    count = len(words)
    if count != 2 and count != 3:
        return VIOLATION
    size = number(words[-1])
    if size < 0:
        return VIOLATION
    if size > payload_max:
        return PAYLOAD_TOO_LARGE
    return Head(words[0], words[1] if count == 3 else b"", -1, size)


def _hpub(words: list[bytes], payload_max: int) -> Head | Bad:
    count = len(words)
    if count != 3 and count != 4:
        return VIOLATION
    header_size, size = number(words[-2]), number(words[-1])
    if header_size < 0 or size < 0 or header_size > size:
        return VIOLATION
    if size > payload_max:
        return PAYLOAD_TOO_LARGE
    return Head(words[0], words[1] if count == 4 else b"", header_size, size)


def _sub(words: list[bytes]) -> Subscribe | Bad:
    if len(words) == 2:
        return Subscribe(words[0], b"", words[1])
    if len(words) == 3:
        return Subscribe(words[0], words[1], words[2])
    return VIOLATION


def _unsub(words: list[bytes]) -> Unsubscribe | Bad:
    if len(words) == 1:
        return Unsubscribe(words[0], 0)
    if len(words) == 2:
        maximum = number(words[1])
        return Unsubscribe(words[0], max(maximum, 0))
    return VIOLATION


class ClientParser:
    """Cuts a connection's bytes into operations. After a `Bad` everything is ignored."""

    __slots__ = ("_dead", "_intake", "line_max", "payload_max")

    def __init__(self, line_max: int, payload_max: int) -> None:
        self.line_max = line_max
        self.payload_max = payload_max
        self._intake = Intake()
        self._dead = False

    def feed(self, chunk: bytes) -> list[ClientOp]:
        """The operations that `chunk` completes; bad input ends the list with a Bad."""
        ops: list[ClientOp] = []
        data = None if self._dead else self._intake.gather(chunk)
        if data is None:
            return ops
        position = 0
        while position < len(data):
            end = data.find(b"\n", position) + 1
            if not end:
                bad = unfinished(data[position:], self.line_max)
                if bad is not None:
                    ops.append(bad)
                    break
                self._intake.keep(data[position:], 0)
                return ops
            line = control(data[position:end], self.line_max, self.payload_max)
            if not isinstance(line, Head):
                ops.append(line)
                position = end
                if isinstance(line, Bad):
                    break
                continue
            after = end + line.size + 2
            trailer = data[after - 2 : after]
            if trailer == b"\r\n":
                ops.append(publish(line, data[end : after - 2]))
                position = after
            elif b"\r\n".startswith(trailer):
                self._intake.keep(data[position:], after - position - (not trailer))
                return ops
            else:
                ops.append(UNKNOWN)
                break
        self._dead = bool(ops) and isinstance(ops[-1], Bad)
        return ops


def publish(head: Head, body: bytes) -> Publish:
    """A head and the bytes of its size, put together."""
    if head.header_size < 0:
        return Publish(head.subject, head.reply, None, body)
    at = head.header_size
    return Publish(head.subject, head.reply, body[:at], body[at:])
