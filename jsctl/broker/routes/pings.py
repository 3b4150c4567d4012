"""Whether the peer at the other end of a link lives, and how far away it is."""

from jsctl.broker.routes.state import Link
from jsctl.broker.routes.types import PING_INTERVAL_MAX_NS, MeshOptions


def is_due(link: Link, now_ns: int) -> bool:
    """Whether a link was not asked for so long that it is to be asked again, or given up."""
    return now_ns >= link.ping_due_ns


def is_stale(link: Link, options: MeshOptions) -> bool:
    """Whether too many questions in a row had no answer."""
    return link.pings_out >= options.ping_max


def asked(link: Link, options: MeshOptions, now_ns: int) -> None:
    """A PING is sent."""
    link.pings_out += 1
    link.ping_sent_ns = link.ping_sent_ns or now_ns
    link.ping_due_ns = now_ns + min(options.ping_interval_ns, PING_INTERVAL_MAX_NS)


def answered(link: Link, now_ns: int) -> bool:
    """A PONG came; whether it answers a question whose time is known, and so says how far it is."""
    link.pings_out = 0
    if not link.ping_sent_ns:
        return False
    link.rtt_ns = max(now_ns - link.ping_sent_ns, 1)
    link.ping_sent_ns = 0
    return True
