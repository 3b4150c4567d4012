"""Copying a stream into a directory, laid out as the `nats` tool does it.

`stream.tar.s2` is the archive as the server sends it, in acknowledged chunks; `backup.json` has
configuration and state, and is written last: without it a backup is not whole.
"""

import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from jsctl.api.requests import StreamSnapshotRequest
from jsctl.client.failures import foreign_errors, translate
from jsctl.client.manager import Manager
from jsctl.errors import JsctlError, Unreachable, UsageError

if TYPE_CHECKING:
    from nats.aio.subscription import Subscription

ARCHIVE = "stream.tar.s2"
DESCRIPTION = "backup.json"
CHUNK_BYTES = 128 * 1024
WINDOW_BYTES = 8 * 1024 * 1024
SILENCE_S = 10.0
"""A server that sends nothing for so long is given up."""
END = "204"


@dataclass(frozen=True, slots=True)
class Backup:
    """What came: `bytes` of archive in `chunks`, of a stream that holds `stream_bytes`."""

    bytes: int
    chunks: int
    stream_bytes: int
    seconds: float


def refusal(directory: Path) -> str:
    """Why a backup cannot go there; empty if it can."""
    if directory.is_dir():
        return f"{directory} is not empty" if any(directory.iterdir()) else ""
    return f"{directory} is a file" if directory.exists() else ""


async def backup_stream(
    manager: Manager,
    name: str,
    directory: Path,
    *,
    consumers: bool = True,
    check: bool = False,
    chunk_bytes: int = CHUNK_BYTES,
    window_bytes: int = WINDOW_BYTES,
    progress: Callable[[int], None] = lambda _received: None,
) -> Backup:
    """Into a directory that is new or empty; `check` has the server check the messages first.

    `progress` gets the bytes received so far. Raises UsageError for the directory, ApiError if
    the server refuses, JsctlError or Unreachable if it breaks off; then no archive is left.
    """
    problem = refusal(directory)
    if problem:
        raise UsageError(problem, hints=("name a new directory",))
    started = perf_counter()
    inbox = manager.client.new_inbox()
    request = StreamSnapshotRequest(
        deliver_subject=inbox,
        no_consumers=not consumers,
        chunk_size=chunk_bytes,
        window_size=window_bytes,
        jsck=check,
    )
    chunks = await manager.client.subscribe(inbox)
    archive = directory / ARCHIVE
    try:
        told = await manager.requests.ask("stream_snapshot", name, body=request)
        directory.mkdir(parents=True, exist_ok=True)
        received = count = 0
        with archive.open("wb") as file:
            async for chunk in _chunks(chunks, manager):
                received, count = received + file.write(chunk), count + 1
                progress(received)
        kept = {key: told[key] for key in ("config", "state") if key in told}
        (directory / DESCRIPTION).write_text(json.dumps(kept, indent=2) + "\n", encoding="utf-8")
    except BaseException:
        archive.unlink(missing_ok=True)
        raise
    finally:
        await chunks.unsubscribe()
    state = told.get("state")
    held = state.get("bytes", 0) if isinstance(state, dict) else 0
    return Backup(received, count, int(held), perf_counter() - started)


async def _chunks(subscription: "Subscription", manager: Manager) -> AsyncIterator[bytes]:
    """The parts of an archive, each acknowledged, so that the server sends on."""
    while True:
        try:
            message = await subscription.next_msg(timeout=SILENCE_S)
        except foreign_errors() as error:
            found = translate(error)
            if isinstance(found, Unreachable):
                found = Unreachable(f"the server sent nothing more for {SILENCE_S:g} s")
            raise found from None
        headers = message.headers or {}
        status = headers.get("Status", "")
        if status and status != END:
            said = headers.get("Description", "")
            raise JsctlError(f"the server broke the backup off: {status} {said}".rstrip())
        if not message.data:
            return
        yield message.data
        if message.reply:
            await manager.client.publish(message.reply)
