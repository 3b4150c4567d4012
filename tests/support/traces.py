"""Trace events of messages as both servers tell them, without what differs from run to run."""

import json
import re
from typing import Any

REPLY = re.compile(r"_R_\.[A-Za-z0-9.]+")
CONTEXT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0{}"


def plain(data: bytes) -> dict[str, Any]:
    """One event: times, ids and connection numbers checked for being there and left out."""
    event: dict[str, Any] = json.loads(REPLY.sub("_R_", data.decode()))
    server = event.pop("server")
    assert server["id"] and server["time"] and server["host"] and server["ver"]
    event["server"] = {key: server.get(key) for key in ("name", "cluster", "jetstream")}
    for one in event["events"]:
        assert one.pop("ts")
        assert one["type"] not in ("in", "eg") or one.pop("cid") > 0
    header = event["request"].get("header", {})
    if header.pop("Nats-Request-Info", None) or "Nats-Trace-Hop" in header:
        event["request"].pop("msgsize")
    return event


def steps(event: dict[str, Any]) -> list[str]:
    """The events in short, `type key=value ...`: ingress first, then in the order of the words."""
    first, *rest = [
        " ".join([one["type"], *[f"{key}={one[key]}" for key in sorted(one) if key != "type"]])
        for one in event["events"]
    ]
    return [first, *sorted(rest)]
