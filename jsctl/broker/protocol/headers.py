"""Header blocks: `NATS/1.0[ code[ text]]` and `Key: value` lines (client protocol 1.12).

Lookups are exact in case and the first occurrence wins. A block that is not one (clients may
send anything) simply has no headers.
"""

import re
from collections.abc import Sequence

VERSION = b"NATS/1.0"
EMPTY = b"NATS/1.0\r\n\r\n"
REQUEST_INFO = b"Nats-Request-Info"
"""What a request that came through a service import tells the service of who asks."""
_STATUS = re.compile(rb"NATS/1\.0[ ]+(\d{1,9})(?!\d)[ ]*([^\r\n]*)\r\n")

Pairs = Sequence[tuple[bytes, bytes]]


def build(pairs: Pairs) -> bytes:
    """A block with these headers, in order."""
    return b"".join([b"NATS/1.0\r\n", *[b"%s: %s\r\n" % pair for pair in pairs], b"\r\n"])


def build_status(code: int, text: bytes = b"", extra: Pairs = ()) -> bytes:
    """A block with a status line and headers behind it."""
    first = b"NATS/1.0 %d %s\r\n" % (code, text) if text else b"NATS/1.0 %d\r\n" % code
    return b"".join([first, *[b"%s: %s\r\n" % pair for pair in extra], b"\r\n"])


def status(headers: bytes) -> tuple[int, bytes]:
    """Code and text of the status line; code 0 when there is none."""
    found = _STATUS.match(headers)
    return (int(found[1]), found[2]) if found is not None else (0, b"")


def _span(headers: bytes, key: bytes) -> tuple[int, int] | None:
    start = headers.find(b"\r\n" + key + b":")
    if start < 0:
        return None
    start += 2
    end = headers.find(b"\r\n", start)
    return None if end < 0 else (start, end)


def get(headers: bytes, key: bytes) -> bytes | None:
    """The value of the first header of that name; None without one."""
    if key not in headers:
        return None
    span = _span(headers, key)
    if span is None:
        return None
    return headers[span[0] + len(key) + 1 : span[1]].lstrip(b" ")


def remove(headers: bytes, key: bytes) -> bytes:
    """The block without any header of that name; empty when no header is left."""
    if key in headers:
        first, *lines = headers.split(b"\r\n")
        start = key + b":"
        kept = [line for line in lines[:-1] if not line.startswith(start)]
        headers = b"\r\n".join([first, *kept, *lines[-1:]])
    return b"" if headers == EMPTY else headers


def append(headers: bytes, key: bytes, value: bytes) -> bytes:
    """The block with one more header at its end; starts a block when there is none."""
    block = headers or EMPTY
    return block[:-2] + key + b": " + value + b"\r\n\r\n"


def put(headers: bytes, key: bytes, value: bytes) -> bytes:
    """The block with this value in the first header of that name; in one at its end, if it has
    none."""
    span = _span(headers, key)
    if span is None:
        return append(headers, key, value)
    start, end = span
    return headers[: start + len(key) + 1] + b" " + value + headers[end:]


def set_value(headers: bytes, key: bytes, value: bytes) -> bytes:
    """The block with exactly one header of that name, at the end."""
    return append(remove(headers, key), key, value)
