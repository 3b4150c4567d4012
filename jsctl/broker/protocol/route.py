"""The route protocol: bytes from another server to operations (routes 3.1.5).

A connection that is dedicated to one account leaves account names out; the parser is told the
account then and puts it into every operation.
"""

import re
from typing import NamedTuple

from jsctl.broker.protocol.client import BLANKS_MAX, number, words_of
from jsctl.broker.protocol.intake import Intake
from jsctl.broker.protocol.ops import (
    LINE_TOO_LONG,
    PAYLOAD_TOO_LARGE,
    UNKNOWN,
    VIOLATION,
    Bad,
    Connect,
    Info,
    Interest,
    NoInterest,
    Ok,
    PeerError,
    Ping,
    Pong,
    Routed,
    RouteOp,
)

LINE_FACTOR = 16
"""A control line of leaf nodes and hubs may be this many times a client's."""
LINK_LINE_FACTOR = 2 * LINE_FACTOR
"""The same of servers of clusters, who pass those on with an account and a cluster in front."""
CLUSTER_BYTES_MAX = 1024
"""The name of a leaf node's cluster, which stands there."""
GREETINGS_MAX = 64
"""Lines until a connection is linked. It takes a few, and each is carried out by itself."""
TOO_MANY_GREETINGS = Bad("Protocol Violation", b"Too many operations before the handshake is done")

_VERB = re.compile(
    rb"(?:(RMSG|HMSG|LMSG|RS\+|RS-|LS\+|LS-|A\+|A-|CONNECT|INFO|-ERR)[ \t]+|(PING|PONG|\+OK))",
    re.IGNORECASE,
).match
_ARGUED = rb"RMSG HMSG LMSG RS+ RS- LS+ LS- A+ A- CONNECT INFO -ERR PING PONG +OK".split()
_VERB_PREFIXES = frozenset(word[:size] for word in _ARGUED for size in range(10))
_BARE: dict[bytes, Ping | Pong | Ok] = {b"PING": Ping(), b"PONG": Pong(), b"+OK": Ok()}
_TEXTS: dict[bytes, type[Connect] | type[Info] | type[PeerError]] = {
    b"CONNECT": Connect,
    b"INFO": Info,
    b"-ERR": PeerError,
}


class RoutedHead(NamedTuple):
    """The control line of a message; `header_size` is -1 without a header block."""

    account: bytes
    subject: bytes
    reply: bytes
    queues: tuple[bytes, ...]
    header_size: int
    size: int
    origin: bytes


Line = RoutedHead | Interest | NoInterest | Connect | Info | Ping | Pong | Ok | PeerError | Bad


class _Words(NamedTuple):
    """A line that is no handshake's: its verb in capitals, and what stands behind it."""

    verb: bytes
    words: list[bytes]


def control(line: bytes, line_max: int, payload_max: int, account: bytes) -> Line:
    """Understand one control line, given with its line feed. `account` as in Parser."""
    split = _split(line, line_max)
    if not isinstance(split, _Words):
        return split
    verb, words = split
    if verb[0] == 65:  # A: only servers of other clusters say so
        return UNKNOWN
    origin = b""
    if verb[0] == 76:  # L: on behalf of a leafnode's cluster
        if not words:
            return VIOLATION
        origin = words.pop(0)
    if account:
        words.insert(0, account)
    if verb.endswith(b"MSG"):
        return _message(words, verb != b"RMSG", origin, payload_max)
    return _interest(words, origin) if verb[-1] == 43 else _no_interest(words, origin)


def leaf_control(line: bytes, line_max: int, payload_max: int) -> Line:
    """The same of a leaf node or a hub, whose connection belongs to one account: that is not named,
    nor are clusters."""
    split = _split(line, line_max)
    if not isinstance(split, _Words):
        return split
    verb, words = split[0], [b"", *split[1]]
    if verb[0] in (65, 82):  # A, R: only servers of clusters say so
        return UNKNOWN
    if verb.endswith(b"MSG"):
        return _message(words, verb == b"HMSG", b"", payload_max)
    return _interest(words, b"") if verb[-1] == 43 else _no_interest(words, b"")


def gateway_control(line: bytes, line_max: int, payload_max: int) -> Line:
    """The same of a server of another cluster. That an account has no subscription there, or has
    some again (A-, A+), tells nothing to whom each subscription is told."""
    split = _split(line, line_max)
    if not isinstance(split, _Words):
        return split
    verb, words = split
    if verb[0] == 76:  # L: leaf nodes are not told of beyond their cluster
        return UNKNOWN
    if verb[0] == 65:
        return Ok() if len(words) == 1 else VIOLATION
    if verb.endswith(b"MSG"):
        return _message(words, verb == b"HMSG", b"", payload_max)
    return _interest(words, b"") if verb[-1] == 43 else _no_interest(words, b"")


def _split(line: bytes, line_max: int) -> Line | _Words:
    found = _VERB(line)
    if found is None:
        return UNKNOWN
    if found[2] is not None:
        return _BARE[found[2].upper()]
    argument = line[found.end() : -1]
    if argument.endswith(b"\r"):
        argument = argument[:-1]
    verb = found[1].upper()
    text = _TEXTS.get(verb)
    if text is not None:
        return text(argument)
    return _Words(verb, words_of(argument)) if len(argument) <= line_max else LINE_TOO_LONG


def _interest(words: list[bytes], origin: bytes) -> Interest | Bad:
    if len(words) == 2:
        return Interest(words[0], words[1], b"", 1, origin)
    if len(words) == 4:
        weight = number(words[3])
        if weight > 0:
            return Interest(words[0], words[1], words[2], weight, origin)
    return VIOLATION


def _no_interest(words: list[bytes], origin: bytes) -> NoInterest | Bad:
    if len(words) == 2:
        return NoInterest(words[0], words[1], b"", origin)
    if len(words) == 3:
        return NoInterest(words[0], words[1], words[2], origin)
    return VIOLATION


def _message(
    words: list[bytes], with_headers: bool, origin: bytes, payload_max: int
) -> RoutedHead | Bad:
    sizes = 2 if with_headers else 1
    middle = words[2:-sizes]
    if len(words) < 2 + sizes:
        return VIOLATION
    size = number(words[-1])
    header_size = number(words[-2]) if with_headers else -1
    if size < 0 or header_size > size or (with_headers and header_size < 0):
        return VIOLATION
    if size > payload_max:
        return PAYLOAD_TOO_LARGE
    reply = b""
    queues: tuple[bytes, ...] = ()
    if not middle:
        pass
    elif middle[0] == b"|":
        queues = tuple(middle[1:])
    elif middle[0] == b"+" and len(middle) > 1:
        reply, queues = middle[1], tuple(middle[2:])
    elif len(middle) == 1:
        reply = middle[0]
    else:
        return VIOLATION
    return RoutedHead(words[0], words[1], reply, queues, header_size, size, origin)


def unfinished(rest: bytes, line_max: int) -> Bad | None:
    """Whether the start of a line can be refused before its end has come."""
    found = _VERB(rest)
    if found is None:
        known = rest[:8].upper() in _VERB_PREFIXES and len(rest) <= 8
        return None if known else UNKNOWN
    return LINE_TOO_LONG if len(rest) > max(line_max, BLANKS_MAX) * 2 else None


class RouteParser:
    """Cuts a route's bytes into operations. After a `Bad` everything is ignored.

    `line_max` is that of routes (`LINK_LINE_FACTOR` times a client's), `payload_max` bounds what a
    peer may make this server hold; below 0 he is a stranger, who has no messages to give and little
    to say. `account` may be set once the handshake has told it.
    """

    __slots__ = ("_dead", "_greetings", "_intake", "account", "line_max", "payload_max")

    def __init__(self, line_max: int, payload_max: int, account: bytes = b"") -> None:
        self.line_max = line_max
        self.payload_max = payload_max
        self.account = account
        self._intake = Intake()
        self._dead = False
        self._greetings = 0

    def feed(self, chunk: bytes) -> list[RouteOp]:
        """The operations that `chunk` completes; bad input ends the list with a Bad."""
        ops: list[RouteOp] = []
        data, position = self.gather(chunk), 0
        while data is not None and 0 <= position < len(data):
            op, position = self.step(data, position)
            if op is not None:
                ops.append(self._greeting(op) if self.payload_max < 0 else op)
            if self._dead:
                break
        return ops

    def _greeting(self, op: RouteOp) -> RouteOp:
        self._greetings += 1
        return op if self._greetings <= GREETINGS_MAX else self._end(TOO_MANY_GREETINGS)[0]

    def gather(self, chunk: bytes) -> bytes | None:
        """What is there for `step`; None while nothing can be made of it."""
        return None if self._dead else self._intake.gather(chunk)

    def step(self, data: bytes, position: int) -> tuple[RouteOp | None, int]:
        """The operation at `position` and the position behind it, -1 at the end of what is there.

        An operation that is not complete is kept, until the next `gather`.
        """
        end = data.find(b"\n", position) + 1
        if not end:
            bad = unfinished(data[position:], self.line_max)
            if bad is not None:
                return self._end(bad)
            self._intake.keep(data[position:], 0)
            return None, -1
        line = self._control(data[position:end])
        if not isinstance(line, RoutedHead):
            return self._end(line) if isinstance(line, Bad) else (line, end)
        after = end + line.size + 2
        trailer = data[after - 2 : after]
        if trailer == b"\r\n":
            return _routed(line, data[end : after - 2]), after
        if b"\r\n".startswith(trailer):
            self._intake.keep(data[position:], after - position - (not trailer))
            return None, -1
        return self._end(UNKNOWN)

    def _control(self, line: bytes) -> Line:
        return control(line, self.line_max, self.payload_max, self.account)

    def _end(self, bad: Bad) -> tuple[Bad, int]:
        self._dead = True
        return bad, -1


class LeafParser(RouteParser):
    """The same for the connection of a leaf node or a hub."""

    __slots__ = ()

    def _control(self, line: bytes) -> Line:
        return leaf_control(line, self.line_max, self.payload_max)


class GatewayParser(RouteParser):
    """The same for the connection of a server of another cluster."""

    __slots__ = ()

    def _control(self, line: bytes) -> Line:
        return gateway_control(line, self.line_max, self.payload_max)


def _routed(head: RoutedHead, body: bytes) -> Routed:
    headers, at = None, max(head.header_size, 0)
    if head.header_size > 0 or (head.header_size == 0 and not head.origin):
        headers = body[:at]
    return Routed(
        head.account, head.subject, head.reply, head.queues, headers, body[at:], head.origin
    )
