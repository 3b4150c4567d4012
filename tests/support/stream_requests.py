"""Bodies of API requests that tests of nodes send."""

from typing import Any


def stream(name: str = "S", replicas: int = 3, **more: Any) -> dict[str, Any]:
    """A whole configuration, with subjects below the name in small letters."""
    fields: dict[str, Any] = {
        "name": name,
        "subjects": [f"{name.lower()}.>"],
        "retention": "limits",
        "storage": "file",
        "num_replicas": replicas,
        "discard": "old",
    }
    fields |= dict.fromkeys(("max_consumers", "max_msgs", "max_bytes"), -1)
    return {**fields, "max_age": 0, **more}


def consumer(name: str = "C", stream_name: str = "S", **more: Any) -> dict[str, Any]:
    """A durable pull consumer."""
    config = {"durable_name": name, "ack_policy": "explicit", "deliver_policy": "all", **more}
    return {"stream_name": stream_name, "config": config}
