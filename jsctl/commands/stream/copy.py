"""`stream copy`: a new stream with the configuration of another, and with its messages."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from jsctl.api.errors import ApiError
from jsctl.api.stream import StreamConfig, StreamInfo
from jsctl.client.manager import as_request
from jsctl.commands.stream.config import (
    NOT_CREATED,
    check_config,
    required_level,
    with_flags,
)
from jsctl.commands.stream.copying import COPY_OF, Copier
from jsctl.commands.stream.show import show_stream
from jsctl.commands.toolkit.assets.failing import told_as
from jsctl.commands.toolkit.assets.picking import STREAM_NOT_FOUND, check_name
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.errors import Conflict, UsageError
from jsctl.render.humanize import counted, number
from jsctl.settings import GLOBAL_FLAGS, load

if TYPE_CHECKING:
    from jsctl.client.manager import Manager


async def copy(call: Call) -> None:
    """Makes the stream, or with `--data` goes on with one that was made so."""
    wanted = check_name(call.text("destination"), "stream", about=NOT_CREATED)
    async with call.manager() as manager, _destination(call, manager) as target:
        source = await manager.stream_info(check_name(call.text("source"), "stream"))
        config = _configuration(call, source, wanted)
        if not call.flag("data"):
            info = await _created(target, config)
            _say(call, f"Stream {config.name} was created\n")
            show_stream(call, info)
            return
        copier = Copier(manager, source, target, config.name, call.text("prefix"))
        begun = await _found(target, wanted)
        if begun is not None and begun.config.metadata.get(COPY_OF) != copier.origin:
            raise Conflict(
                f"stream {wanted} exists already and is no copy of {source.config.name}",
                hints=("a copy that was interrupted goes on by itself; choose another name",),
            )
        await copier.check(begun.config if begun else config)
        if begun is None:
            await _created(target, config)
            _say(call, f"Stream {config.name} was created")
        await _filled(call, copier, source)
        show_stream(call, await target.stream_info(wanted))


@asynccontextmanager
async def _destination(call: Call, manager: "Manager") -> "AsyncIterator[Manager]":
    """Where the copy is made: in the other context, with nothing of this one's login."""
    name = call.text("to")
    if not name:
        yield manager
        return
    from jsctl.client.manager import open_manager

    ours = {flag.env for flag in GLOBAL_FLAGS if flag.env}
    environ = {key: value for key, value in call.environ.items() if key not in ours}
    settings = load({"context": name}, environ)
    settings = replace(settings, timeout_ns=call.settings.timeout_ns)
    async with open_manager(settings, call.output.log) as other:
        yield other


def _configuration(call: Call, source: StreamInfo, name: str) -> StreamConfig:
    """That of the source, with what was given. Raises UsageError."""
    config = replace(as_request(source.config), name=name)
    prefix = call.text("prefix")
    if name == source.config.name and not call.text("to"):
        raise UsageError("source and destination Stream names cannot be the same")
    if prefix:
        config = replace(config, subjects=tuple(f"{prefix}.{one}" for one in config.subjects))
    fed = call.given("mirror") or call.given("sources")
    if fed:
        config = replace(config, subjects=(), mirror=None, sources=())
    elsewhere = bool(fed or prefix or call.text("to"))
    if not call.given("subjects") and config.mirror is None and not elsewhere:
        raise UsageError("the copy needs --subjects of its own")
    config = with_flags(call, config)
    if call.flag("data"):
        if fed:
            raise UsageError("messages come with --data, or with --mirror or --source, not both")
        # What is copied comes from here, as it is, and a sealed stream would take nothing.
        config = replace(config, mirror=None, sources=(), sealed=False)
        if not call.given("transform-source"):
            config = replace(config, subject_transform=None)
        marked = {**config.metadata, COPY_OF: Copier.name_of(source)}
        config = replace(config, metadata=marked)
    check_config(config)
    return config


async def _found(manager: "Manager", name: str) -> StreamInfo | None:
    try:
        return await manager.stream_info(name)
    except ApiError as error:
        if error.err_code != STREAM_NOT_FOUND:
            raise
        return None


async def _created(manager: "Manager", config: StreamConfig) -> StreamInfo:
    with told_as("could not create Stream"):
        return await manager.create_stream(config, level=required_level(config))


async def _filled(call: Call, copier: Copier, source: StreamInfo) -> None:
    """Copies messages until all that were there when it began are."""
    from jsctl.commands.toolkit.invocation.progress import counting

    start = await copier.position()
    if start:
        _say(call, f"Going on behind message {number(start)} of {source.config.name}")
    total = source.state.messages if call.flag("progress") else 0
    with counting(call, total, "messages") as left:
        copied = await copier.run(start, left if total else lambda _left: None)
    _say(call, f"Copied {counted(copied, 'message')} of stream {source.config.name}\n")


def _say(call: Call, text: str) -> None:
    if not call.as_json and not call.output.machine:
        call.output.print(text)
