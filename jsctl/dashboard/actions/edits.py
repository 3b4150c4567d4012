"""The command line that makes one configuration of another."""

from dataclasses import fields

from jsctl.api.codec import wire_of
from jsctl.api.consumer import ConsumerConfig
from jsctl.api.fields import About
from jsctl.api.stream import StreamConfig
from jsctl.api.times import format_duration
from jsctl.dashboard.actions.plans import Target, words
from jsctl.dashboard.model.snapshot import Consumer

FILE = "config.json"
"""Stands for a file, where flags cannot say what changed."""


def edit_command(
    target: Target, before: StreamConfig | ConsumerConfig, after: StreamConfig | ConsumerConfig
) -> str:
    """Flags for every changed field, or a file if one of them has no flag."""
    if isinstance(target, Consumer):
        head = ("consumer", "edit", target.stream, target.name)
    else:
        head = ("stream", "edit", str(getattr(target, "name", "")))  # type: ignore[assignment]
    flags: list[str] = []
    for one in fields(after):
        old, new = getattr(before, one.name), getattr(after, one.name)
        if old == new:
            continue
        about = wire_of(one).about
        can = about is not None and about.flag and about.editable
        made = _flag(about, new) if can and about is not None else None
        if made is None:
            return words(*head, "--config", FILE, "-f")
        flags += made
    return words(*head, *flags, "-f")


def _flag(about: About, value: object) -> list[str] | None:
    name = f"--{about.flag}"
    if about.unit in ("flag", "switch", "inverse"):
        on = bool(value) is not (about.unit == "inverse")
        return [name if on else f"--no-{about.flag}"]
    if about.unit == "duration" and isinstance(value, int):
        return [name, format_duration(value)]
    if about.unit == "choice":
        wire = getattr(value, "value", value)
        return [name, next((word for word, sent in about.choices if sent == wire), str(wire))]
    if about.unit == "subjects" and isinstance(value, tuple):
        return [name, ",".join(value)]
    if about.unit == "map" and isinstance(value, dict):
        return [part for key, one in value.items() for part in (name, f"{key}={one}")] or None
    return [name, str(value)] if isinstance(value, str | int) else None
