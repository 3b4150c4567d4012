"""Deliveries of consumers that other servers lead, to a client here.

The reply of such a message names the subject that the client is to be shown, so the loop of `accel`
stops in front of it. They come in runs, to the inbox of one request: a run is understood by one
expression for each message, and written at once. What is not for one plain client, or is not said
as servers say it, is left to the steps.
"""

import re

from jsctl.broker.accounts.accounts import Account
from jsctl.broker.interest.targets import RouteLink
from jsctl.broker.protocol.route import RouteParser
from jsctl.broker.routing.router import Router
from jsctl.broker.routing.shown import ACK_PREFIX

TRACE = b"Nats-Trace-Dest"
_REPLY = rb"(\$JS\.ACK(?:\.[^. \t\r\n]+){2}(?:\.[0-9]+){5})@([^ \t\r\n]+) "
"""Reply, and subject to show: numbers have no `@`, so the first one behind them parts these."""
_SIZE = rb"(0|[1-9][0-9]{0,8})\r\n"
_plain = re.compile(_REPLY + _SIZE).match
_headed = re.compile(_REPLY + rb"([1-9][0-9]{0,8}) " + _SIZE).match


def take_deliveries(
    router: Router,
    account: Account,
    link: RouteLink,
    parser: RouteParser,
    data: bytes,
    position: int,
    verbs: tuple[bytes, bytes],
) -> int:
    """Pass on the run that begins at a position, to one inbox; the position behind it. `verbs` are
    what its messages begin with, without and with headers, as far as the inbox."""
    start = position + len(verbs[0])
    inbox = data[start : data.find(b" ", start, start + parser.line_max)]
    begin = start + len(inbox) + 1
    if not inbox or not data.startswith(ACK_PREFIX, begin) or b"\t" in inbox or b"\r" in inbox:
        return position
    plan = account.sublist.match(inbox)
    if not plan.sole or plan.clients[0][1].closing:
        return position
    sub, session = plan.clients[0]
    plain, headed = (verb + inbox + b" " for verb in verbs)
    words, header_words, infix = session.kind.verb, session.kind.header_verb, sub.infix
    takes_headers = session.headers and not account.traced
    parts: list[bytes] = []
    count = size = 0
    while True:
        if data.startswith(plain, position):
            found, at = _plain(data, begin), 0
            total = 0 if found is None else int(found[3])
        elif takes_headers and data.startswith(headed, position):
            found = _headed(data, begin)
            at, total = (0, 0) if found is None else (int(found[3]), int(found[4]))
        else:
            break
        if found is None or at > total or total > parser.payload_max:
            break
        body = found.end()
        after = body + total + 2
        fits = body - position <= parser.line_max and data[after - 2 : after] == b"\r\n"
        if not fits or (at and data.find(TRACE, body, body + at) >= 0):
            break
        reply, shown = found[1], found[2]
        rest = data[found.start(3) : after]
        parts += (header_words if at else words, shown, infix, reply, b" ", rest)
        count, size, position = count + 1, size + total, after
        begin = position + len(plain)
    if count:
        link.in_messages += count
        link.in_bytes += size
        router.delivery.worded(account, plan, count, size, b"".join(parts))
    return position
