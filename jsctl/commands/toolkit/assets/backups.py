"""Streams into directories and back: what `backup` does, and what `stream` and `account` did."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from jsctl.api.codec import DecodeError, encode
from jsctl.api.errors import ApiError
from jsctl.api.stream import StreamConfig, StreamInfo
from jsctl.api.times import SECOND_NS, format_duration
from jsctl.backups.directory import Description, archive_of, description_of
from jsctl.client.backup import (
    CHUNK_BYTES,
    WINDOW_BYTES,
    backup_stream,
    check_target,
    restore_stream,
)
from jsctl.commands.toolkit.assets.config_files import load_config
from jsctl.commands.toolkit.assets.picking import check_name
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.commands.toolkit.invocation.interrupts import told
from jsctl.errors import Conflict, JsctlError, NotFound, RequestFailed, UsageError
from jsctl.files import make_folder
from jsctl.render.details import Details
from jsctl.render.humanize import counted, number, size
from jsctl.render.reports.stream.screen import stream_screen

if TYPE_CHECKING:
    from jsctl.client.manager import Manager

MILLISECOND_NS = 1_000_000
PART_BYTES_MAX = (1 << 31) - 1


def warn_of_old_words(call: Call, old: str, new: str) -> None:
    """Whoever uses a hidden command hears which one is meant today."""
    call.output.note(
        f'WARNING: "jsctl {old}" is deprecated and will be removed in a future release, '
        f'use "jsctl {new}" instead\n'
    )


def backup_target(call: Call) -> Path:
    """The directory that was named. Raises UsageError: an empty name is not the one we are in."""
    if not call.text("target"):
        raise UsageError("the target is empty", hints=("name a directory that is new or empty",))
    return Path(call.text("target")).expanduser()


async def back_up(call: Call, manager: "Manager", name: str, directory: Path) -> dict[str, object]:
    """One stream into a directory that is new or empty; what was done."""
    with told(call, lambda: f"there is no backup in {directory}"):
        return await _backed_up(call, manager, name, directory)


def _chunk_bytes(call: Call) -> int:
    """Of what is sent at once. Raises UsageError for what no server sends."""
    found = call.size("chunk-size", CHUNK_BYTES)
    if not 0 <= found <= PART_BYTES_MAX:
        most = f"maximum value {PART_BYTES_MAX:,}"
        raise UsageError(f"--chunk-size: bytes value out of allowed range: {most}")
    return found


async def _backed_up(
    call: Call, manager: "Manager", name: str, directory: Path
) -> dict[str, object]:
    chunk_bytes = _chunk_bytes(call)
    held = (await manager.stream_info(name)).state.bytes
    check_target(directory)
    call.output.say(f'Starting backup of Stream "{name}" with {size(held)}')
    if call.flag("check"):
        call.output.say(
            "Health Check was requested, this can take a long time without progress reports\n"
        )
    try:
        done = await backup_stream(
            manager,
            name,
            directory,
            consumers=call.switch("consumers") is not False,
            check=call.flag("check"),
            chunk_bytes=chunk_bytes,
            window_bytes=call.size("window-size", WINDOW_BYTES),
        )
    except ApiError as error:
        raise RequestFailed(error, prefix=f"could not back up stream {name}") from None
    took = format_duration(round(done.seconds * SECOND_NS / MILLISECOND_NS) * MILLISECOND_NS)
    call.output.say(
        f"\nReceived {size(done.bytes)} compressed data in {counted(done.chunks, 'chunk')} for "
        f'stream "{name}" in {took}, {size(done.stream_bytes)} uncompressed'
    )
    return {
        "stream": name,
        "directory": str(directory),
        "compressed_bytes": done.bytes,
        "chunks": done.chunks,
        "stream_bytes": done.stream_bytes,
        "seconds": done.seconds,
    }


class _Restoring:
    """How far a restore of one or more streams is."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.sent = ""
        """The stream whose archive is with the server, as a whole, and not restored yet."""
        self.part = ""
        """One that the server may have kept a part of."""

    def left(self) -> str:
        """What there is if it ends here."""
        some = f"restored {', '.join(self.done)}" if self.done else "nothing was restored"
        if self.sent:
            return f"{some}, the server may still make {self.sent}: it has the whole archive"
        if self.part:
            return f"{some}, but the server may have a part of {self.part}: it does not answer"
        return some


async def restore(call: Call, manager: "Manager", directory: Path) -> StreamInfo:
    """One stream from a directory, where its options say. Raises Conflict if it is there."""
    state = _Restoring()
    with told(call, state.left):
        info = await _restored(call, manager, directory, state)
    call.output.print()
    return info


async def _restored(
    call: Call, manager: "Manager", directory: Path, state: _Restoring
) -> StreamInfo:
    try:
        description = description_of(directory)
    except NotFound as error:
        why = str(error).removeprefix("stat ")
        raise NotFound(f"restore failed: open {why}" if why != str(error) else why) from None
    name = description.name
    if name in await manager.stream_names():
        raise Conflict(f'Stream "{name}" already exist')
    config = _configuration(call, description)
    call.output.say(f'Starting restore of Stream "{name}" from file "{directory}"\n')
    held = archive_of(directory).stat().st_size

    def progress(sent: int) -> None:
        state.sent = name if sent == held else ""

    def part_left() -> None:
        state.part = name

    try:
        done = await restore_stream(
            manager, directory, config, description.state, progress=progress, part_left=part_left
        )
    except (JsctlError, OSError) as error:
        if state.part:
            call.output.note(f"the server may have a part of {name}: it does not answer")
        if isinstance(error, ApiError):
            raise RequestFailed(error, prefix="restore failed") from None
        raise
    state.done, state.sent = [*state.done, name], ""
    seconds = round(done.seconds)
    call.output.say(f'\nRestored stream "{name}" in {format_duration(seconds * SECOND_NS)}\n')
    info = await manager.stream_info(name)
    if not call.output.asked:
        call.output.details(stream_screen(info))
    return info


def _configuration(call: Call, description: Description) -> dict[str, object]:
    """That of the backup, or of a file, with what was given. Raises UsageError."""
    config = dict(description.config)
    if call.text("config"):
        config = encode(load_config(call.text("config"), StreamConfig))
        if config.get("name") != description.name:
            raise UsageError("stream names may not be changed during restore")
    placement: dict[str, object] = {}
    if call.text("cluster"):
        placement["cluster"] = call.text("cluster")
    if call.texts("tag"):
        placement["tags"] = list(call.texts("tag"))
    if placement:
        config["placement"] = placement
    if call.integer("replicas") > 0:
        config["num_replicas"] = call.integer("replicas")
    return config


def _backups_in(parent: Path, existing: Sequence[str]) -> list[Path]:
    """The backups in a directory, one for each stream. Raises UsageError and Conflict."""
    found = sorted(parent.iterdir())
    for one in found:
        if not one.is_dir():
            raise UsageError(f'expected a directory "{one.name}"')
        if one.name in existing:
            raise Conflict(f'stream "{one.name}" exists already')
        description_of(one)
    return found


async def back_up_account(call: Call) -> None:
    """All streams, each into a directory of its name. Raises JsctlError if one failed."""
    target = backup_target(call)
    async with call.manager() as manager:
        listing = await manager.streams()
        if listing.missing:
            count = len(listing.missing)
            raise JsctlError(f"could not obtain stream information for {count} streams")
        if listing.offline and not call.flag("force"):
            count = len(listing.offline)
            raise JsctlError(f"could not obtain stream information for {count} offline streams")
        if not listing.items:
            raise NotFound("no streams found")
        screen = Details(f"Performing backup of all streams to {target}")
        states = [one.state for one in listing.items]
        screen.row("Streams", number(len(states)))
        screen.row("Size", size(sum(state.bytes for state in states)))
        screen.row("Consumers", number(sum(state.consumer_count for state in states)))
        if not call.output.asked:
            call.output.details(screen)
            call.output.print()
        if not call.confirm("Perform backup", prefix=""):
            return
        failed = await _all(call, manager, [one.config.name for one in listing.items], target)
    if failed:
        call.output.say("\n".join(["Backup failures: ", *(f"  {one}" for one in failed), ""]))
        raise JsctlError("backup failed")


async def _all(call: Call, manager: "Manager", names: list[str], target: Path) -> list[str]:
    failed: list[str] = []
    done: list[dict[str, object]] = []
    is_new = not target.exists()
    make_folder(target)

    def remove_empty() -> None:
        if is_new and not any(target.iterdir()):
            target.rmdir()

    def left() -> str:
        remove_empty()
        return f"{counted(len(done), 'stream')} of {len(names)} backed up in {target}"

    with told(call, left):
        for name in names:
            try:
                # A name that is a way to another folder is none that a server should tell.
                folder = target / check_name(name, "stream")
                done.append(await _backed_up(call, manager, name, folder))
            except (JsctlError, DecodeError) as error:
                call.output.say(f"Backup of {name} failed: {error}")
                failed.append(f"{name}: {error}")
            call.output.print()
    remove_empty()
    if call.output.asked:
        call.output.json(done)
    return failed


async def restore_account(call: Call) -> None:
    """Every stream of a directory; nothing is begun when one of them is there already."""
    parent = Path(call.text("directory")).expanduser()
    async with call.manager() as manager:
        found = _backups_in(parent, await manager.stream_names())
        call.output.say(f'Restoring backup of all {len(found)} streams in directory "{parent}"\n')
        state = _Restoring()
        with told(call, state.left):
            restored = [await _restored(call, manager, one, state) for one in found]
    if call.output.asked:
        call.output.json(restored)
