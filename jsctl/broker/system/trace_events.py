"""Traces in the words of NATS ADR-41: one event of this server for each message that it traced."""

from jsctl.api.codec import encode
from jsctl.api.fields import Json
from jsctl.api.server import ServerInfo
from jsctl.api.times import format_time
from jsctl.broker.routing.trace import Event, Trace


def document(trace: Trace, server: ServerInfo) -> dict[str, Json]:
    """The event as JSON."""
    request: dict[str, Json] = {}
    if trace.header:
        request["header"] = {name: list(values) for name, values in trace.header.items()}
    request["msgsize"] = trace.size
    found: dict[str, Json] = {"server": encode(server), "request": request}
    if trace.hops:
        found["hops"] = trace.hops
    found["events"] = [_event(one) for one in trace.events]
    return found


def _event(event: Event) -> Json:
    return {"type": event.type, "ts": format_time(event.at_ns), **event.fields}
