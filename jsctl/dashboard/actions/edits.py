"""Editing a configuration: reading it, sending the changed one, and the command line for it."""

from dataclasses import fields, replace
from typing import TypeAlias

from jsctl.api.codec import wire_of
from jsctl.api.consumer import ConsumerConfig
from jsctl.api.fields import About
from jsctl.api.stream import StreamConfig
from jsctl.api.times import format_duration
from jsctl.client.manager import Manager, as_request, without_server_metadata
from jsctl.dashboard.actions.plans import Run, Target, words
from jsctl.dashboard.connection.link import Link
from jsctl.dashboard.model.snapshot import Consumer, Stream

Config: TypeAlias = StreamConfig | ConsumerConfig
FILE = "config.json"
"""Stands for a file, where flags cannot say what changed."""


async def config_of(manager: Manager, target: Target) -> Config:
    """The configuration of a stream or consumer as it would be sent."""
    if isinstance(target, Consumer):
        info = await manager.consumer_info(target.stream, target.name)
        config = info.config or ConsumerConfig()
        return replace(config, metadata=without_server_metadata(config.metadata))
    assert isinstance(target, Stream)
    return as_request((await manager.stream_info(target.name)).config)


def update_of(target: Target, after: Config) -> Run:
    """Makes a configuration that of a stream or consumer."""

    async def run(link: Link, _choice: str) -> str:
        if isinstance(after, StreamConfig):
            await link.manager.update_stream(after)
        else:
            assert isinstance(target, Consumer)
            await link.manager.create_consumer(target.stream, after, action="update")
        return "changed"

    return run


def edit_command(target: Target, before: Config, after: Config) -> str:
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
