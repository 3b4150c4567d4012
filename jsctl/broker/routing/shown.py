"""Replies of JetStream deliveries between servers, which tell the subject that receivers see.

What finds a consumer's client is its inbox, what the client reads is the subject of the message:
other servers are told both, as `$JS.ACK.….<pending>@<subject>`.

A reply proves nothing: leaf nodes are asked whether they may say what they send, not what they have
shown. So that counts for who only reads it, and for what a consumer delivers where it is awaited.
"""

from jsctl.broker.interest.outbound import Origin
from jsctl.broker.interest.targets import LeafLink, Sink

ACK_PREFIX = b"$JS.ACK."
ACK_DOTS = 8
"""An ack reply has this many dots in front of an `@` that ends it."""
ANSWER = ACK_PREFIX + b"@"
"""The reply of an answer to a request that came in at the server which it is sent to."""


def telling(reply: bytes, subject: bytes, shown: bytes) -> bytes:
    """A reply for another server, which tells what is to be shown in place of the subject."""
    told = shown is not subject and reply.startswith(ACK_PREFIX)
    return reply + b"@" + shown if told else reply


def split_reply(reply: bytes) -> tuple[bytes, bytes]:
    """(reply, subject to show) of a routed JetStream delivery; the latter empty elsewhere."""
    if not reply.startswith(ACK_PREFIX) or b"@" not in reply:
        return reply, b""
    position = -1
    for _ in range(ACK_DOTS):
        position = reply.find(b".", position + 1)
        if position < 0:
            return reply, b""
    at = reply.find(b"@", position)
    if at < 0 or at == len(reply) - 1:
        return reply, b""
    return reply[:at], reply[at + 1 :]


def captured_as(sink: Sink, origin: Origin, subject: bytes, shown: bytes) -> bytes:
    """The subject under which a sink gets a message that was sent to `subject`: services answer
    what they were asked, and streams store no other subject for leaf nodes, here or elsewhere."""
    if shown == subject or sink.arrivals:
        return shown
    if not sink.stream or isinstance(origin, LeafLink):
        return subject
    return subject if origin is not None and origin.cluster else shown
