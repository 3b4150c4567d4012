"""Lines that the server writes to clients and routes."""

import json
from collections.abc import Mapping, Sequence

from jsctl.broker.protocol.headers import build_status

OK = b"+OK\r\n"
PING = b"PING\r\n"
PONG = b"PONG\r\n"

Json = str | int | bool | None | Sequence["Json"] | Mapping[str, "Json"]


def info(fields: Mapping[str, Json]) -> bytes:
    """An INFO line; the real server puts a blank before the line's end."""
    text = json.dumps(fields, separators=(",", ":"), ensure_ascii=False)
    return b"INFO %s \r\n" % text.encode()


def connect(fields: Mapping[str, Json]) -> bytes:
    """A CONNECT line, as servers send it to each other."""
    return b"CONNECT %s\r\n" % json.dumps(fields, separators=(",", ":")).encode()


def error(text: bytes) -> bytes:
    """An -ERR line."""
    return b"-ERR '%s'\r\n" % text


def message(verb: bytes, subject: bytes, sid: bytes, reply: bytes, payload: bytes) -> bytes:
    """A message without headers; `verb` ends in a blank."""
    if reply:
        return b"%s%s %s %s %d\r\n%s\r\n" % (verb, subject, sid, reply, len(payload), payload)
    return b"%s%s %s %d\r\n%s\r\n" % (verb, subject, sid, len(payload), payload)


def header_message(
    verb: bytes, subject: bytes, sid: bytes, reply: bytes, headers: bytes, payload: bytes
) -> bytes:
    """A message with headers; `verb` ends in a blank."""
    size = len(headers)
    total = size + len(payload)
    if reply:
        head = b"%s%s %s %s %d %d\r\n" % (verb, subject, sid, reply, size, total)
    else:
        head = b"%s%s %s %d %d\r\n" % (verb, subject, sid, size, total)
    return b"%s%s%s\r\n" % (head, headers, payload)


def no_responders(subject: bytes, sid: bytes, reply: bytes) -> bytes:
    """The 503 that tells a requester that nobody listens on `subject`."""
    headers = build_status(503, extra=[(b"Nats-Subject", subject)])
    return header_message(b"HMSG ", reply, sid, b"", headers, b"")


def interest(
    account: bytes, subject: bytes, queue: bytes, weight: int, origin: bytes = b""
) -> bytes:
    """RS+, or LS+ on behalf of a cluster of leaf nodes; `account` is empty on a connection
    dedicated to one account."""
    words = [word for word in (origin, account, subject, queue) if word]
    if queue:
        words.append(b"%d" % weight)
    return b"%sS+ %s\r\n" % (b"L" if origin else b"R", b" ".join(words))


def no_interest(account: bytes, subject: bytes, queue: bytes, origin: bytes = b"") -> bytes:
    """RS-, or LS-."""
    words = [word for word in (origin, account, subject, queue) if word]
    return b"%sS- %s\r\n" % (b"L" if origin else b"R", b" ".join(words))


def leaf_interest(subject: bytes, queue: bytes, weight: int) -> bytes:
    """LS+ to a leaf node or a hub, or LS- when there is none any more."""
    if not weight:
        return b"LS- %s %s\r\n" % (subject, queue) if queue else b"LS- %s\r\n" % subject
    return b"LS+ %s %s %d\r\n" % (subject, queue, weight) if queue else b"LS+ %s\r\n" % subject


def routed(
    verb: bytes,
    prefix: bytes,
    reply: bytes,
    queues: Sequence[bytes],
    headers: bytes | None,
    payload: bytes,
) -> bytes:
    """A message between servers; `prefix` is `[account ]subject`, `verb` ends in a blank."""
    words = [prefix]
    if queues:
        words.extend([b"+", reply, *queues] if reply else [b"|", *queues])
    elif reply:
        words.append(reply)
    if headers is None:
        return b"%s%s %d\r\n%s\r\n" % (verb, b" ".join(words), len(payload), payload)
    size = len(headers)
    total = size + len(payload)
    return b"%s%s %d %d\r\n%s%s\r\n" % (verb, b" ".join(words), size, total, headers, payload)
