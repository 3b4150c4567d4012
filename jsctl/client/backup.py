"""A stream into a directory and back, laid out as the `nats` tool does it.

The archive is kept as the server sends it, in acknowledged chunks: `stream.arc.s2` from 2.15 on,
`stream.tar.s2` before. `backup.json` has configuration and state, and is written last: without it a
backup is not whole.
"""

import asyncio
import json
import os
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from itertools import count
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from jsctl.api import jsontext
from jsctl.api.codec import DecodeError, decode
from jsctl.api.errors import ApiError
from jsctl.api.requests import StreamSnapshotRequest
from jsctl.api.responses import StreamSnapshotResponse
from jsctl.api.stream import StreamInfo, StreamState
from jsctl.api.times import parse_time
from jsctl.backups.directory import ARCHIVE, DESCRIPTION, OLD_ARCHIVE, archive_of
from jsctl.client.failures import foreign_errors, translate
from jsctl.client.headers import status_of
from jsctl.client.manager import Manager
from jsctl.client.reading import heed_interrupt
from jsctl.client.requests import STREAM_NOT_FOUND, Refused
from jsctl.dataclass import dataclass
from jsctl.errors import JsctlError, Unreachable, UsageError, sentence_of
from jsctl.files import make_folder, write_whole

if TYPE_CHECKING:
    from nats.aio.subscription import Subscription

NEW_ARCHIVES = (2, 15)
"""The server's version from which on archives have their new form."""
CHUNK_BYTES = 128 * 1024
WINDOW_BYTES = 8 * 1024 * 1024
RESTORE_CHUNK_BYTES = 64 * 1024
RESTORE_S = 3600.0
"""The server writes the stream anew before it answers: that takes as long as it takes."""
ALIVE_S = 5.0
"""How often meanwhile is looked whether it is still there."""
SILENCE_S = 10.0
"""A server that sends nothing for so long is given up."""
END, NO_RESPONDERS = "204", "503"
WHOLE = "jsctl_whole"
"""In the answer of a server that keeps nothing of an archive that is not whole."""
NAME_TAKEN = 10130
LOST = "a part of the archive got lost on its way: there is no backup, try again"
LEAVE_S = 5.0
"""Whoever breaks a restore off waits so long for the server to be done with it: what had come is
made into a stream first."""


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


def check_target(directory: Path) -> None:
    """Raises UsageError where a backup cannot go."""
    problem = refusal(directory)
    if problem:
        raise UsageError(problem, hints=("name a new directory",))


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
    the server refuses, DecodeError for an answer that is none, JsctlError or Unreachable if it
    breaks off or there is no room; then no archive is left, and no directory that was not there.
    """
    check_target(directory)
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
    archive = directory / _archive_name(manager)
    is_new, is_begun = not directory.exists(), False
    try:
        told = await manager.requests.ask("stream_snapshot", name, body=request)
        state = decode(StreamSnapshotResponse, told).state or StreamState()
        make_folder(directory)
        received = chunk_count = 0
        with open(archive, "xb", opener=_secret) as file:
            is_begun = True
            async for chunk in _chunks(chunks, manager):
                received, chunk_count = received + file.write(chunk), chunk_count + 1
                progress(received)
            file.flush()
            os.fsync(file.fileno())
        _check_end(archive)
        kept = {key: told[key] for key in ("config", "state") if key in told}
        write_whole(directory / DESCRIPTION, json.dumps(kept, indent=2) + "\n")
    except BaseException as error:
        if is_begun:
            archive.unlink(missing_ok=True)
        if is_new:
            with suppress(OSError):  # of one that somebody else writes into
                directory.rmdir()
        if isinstance(error, OSError):
            raise JsctlError(sentence_of(error, archive)) from None
        raise
    finally:
        await chunks.unsubscribe()
    return Backup(received, chunk_count, state.bytes, perf_counter() - started)


def _archive_name(manager: Manager) -> str:
    version = manager.client.connected_server_version
    return ARCHIVE if (version.major, version.minor) >= NEW_ARCHIVES else OLD_ARCHIVE


def _check_end(archive: Path) -> None:
    """Raises JsctlError for an archive that lacks its end: that is not numbered."""
    from jsctl.backups.archive import ArchiveReader, end_bytes
    from jsctl.backups.s2 import BrokenStream, last_block

    wanted = end_bytes()
    try:
        with archive.open("rb") as file:
            end = last_block(file)
            if archive.name == ARCHIVE and not wanted.endswith(end[-len(wanted) :]):
                # Something else may follow, which readers pass over.
                file.seek(0)
                deque(ArchiveReader(file), 0)
    except BrokenStream:
        raise JsctlError(LOST) from None


def _secret(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


@dataclass(frozen=True, slots=True)
class _Target:
    """Where an archive is sent. `whole`: the server makes a stream of a whole one alone."""

    name: str
    subject: str
    whole: bool


@dataclass(frozen=True, slots=True)
class Restored:
    """What was sent."""

    bytes: int
    chunks: int
    seconds: float


async def restore_stream(
    manager: Manager,
    directory: Path,
    config: Mapping[str, object],
    state: Mapping[str, object],
    *,
    progress: Callable[[int], None] = lambda _sent: None,
    part_left: Callable[[], None] = lambda: None,
) -> Restored:
    """A stream of that configuration from a directory. Raises ApiError if the server refuses.

    One that is broken off before all is sent, or fails there, leaves no stream; if the server does
    not say so, `part_left` is called.
    """
    started, sent, chunk_count = perf_counter(), 0, 0
    name = str(config["name"])
    body = {"config": config, "state": state}
    try:
        told = await manager.requests.ask("stream_restore", name, body=body)
    except asyncio.CancelledError:
        part_left()  # It is not known whether the server has begun.
        raise
    target = _Target(name, str(told.get("deliver_subject", "")), told.get(WHOLE) is True)
    try:
        with archive_of(directory).open("rb") as file:
            while chunk := file.read(min(RESTORE_CHUNK_BYTES, manager.client.max_payload)):
                answer = await manager.requests.exchange(target.subject, chunk)
                heed_interrupt()
                if answer:
                    _check(answer, name)
                sent, chunk_count = sent + len(chunk), chunk_count + 1
                progress(sent)
    except (asyncio.CancelledError, JsctlError, OSError) as error:
        if not _is_taken(error):
            await _give_up(manager, target, part_left)
        raise
    try:
        answer = await _made(manager, target.subject)
    except Unreachable:
        part_left()
        raise
    _check(answer, name)
    return Restored(sent, chunk_count, perf_counter() - started)


async def _made(manager: Manager, target: str) -> bytes:
    """Ends an archive, and waits for what the server says of the stream that it makes. Raises
    Unreachable when it is gone: while it is at work it listens, and passes over what comes."""
    inbox, until_s = manager.client.new_inbox(), perf_counter() + RESTORE_S
    try:
        answers = await manager.client.subscribe(inbox)
        try:
            while perf_counter() < until_s:
                await manager.client.publish(target, b"", reply=inbox)
                with suppress(TimeoutError):
                    answer = await answers.next_msg(timeout=ALIVE_S)
                    if status_of(answer.headers) != NO_RESPONDERS:
                        return bytes(answer.data)
                    raise Unreachable("the server that has the archive is gone")
        finally:
            await answers.unsubscribe()
    except foreign_errors() as error:
        raise translate(error) from None
    raise Unreachable("the server has the archive, and does not say what it made of it")


def _is_taken(error: BaseException) -> bool:
    """Whether a server refuses an archive as somebody else has a stream of that name by now."""
    return isinstance(error, ApiError) and error.err_code == NAME_TAKEN


async def _give_up(manager: Manager, target: _Target, part_left: Callable[[], None]) -> None:
    """Takes back what had come; whatever breaks that off, too, leaves a part."""
    task = asyncio.current_task()
    assert task is not None
    for _ in range(task.cancelling()):
        task.uncancel()  # Or it is told again while the server is still busy with the end.
    gone = False
    try:
        gone = await _taken_back(manager, target)
    finally:
        if not gone:
            part_left()


async def _taken_back(manager: Manager, target: _Target) -> bool:
    """Whether there is nothing of a restore that is given up: a server may keep what had come, or
    have all of it. A stream that somebody else has made by now stays."""
    from nats.errors import NoRespondersError

    name, answer = target.name, b""
    try:
        async with asyncio.timeout(LEAVE_S):
            with suppress(NoRespondersError):  # from one that has given it up by itself
                said = await manager.client.request(target.subject, b"", timeout=LEAVE_S)
                answer = bytes(said.data)
            created = _created(answer, name)
            if target.whole and not created:
                return True
            info = await manager.stream_info(name)
            if _is_part(info, created):
                await manager.delete_stream(name)
    except ApiError as error:
        return _is_taken(error) or error.err_code == STREAM_NOT_FOUND
    except JsctlError:
        return False
    except foreign_errors():
        return False
    return True


def _created(answer: bytes, name: str) -> str:
    """When the stream was made that a server says it has made of what had come; empty if it says
    that it has none. Raises ApiError where somebody else has one."""
    try:
        return str(_check(answer, name).get("created", "")) if answer else ""
    except ApiError as error:
        if _is_taken(error):
            raise
        return ""


def _is_part(info: StreamInfo, created: str) -> bool:
    """Whether a stream is what a server has made of what had come. One that does not say so keeps
    messages that are older than the stream, or none."""
    if created:
        return parse_time(info.created) == parse_time(created)
    first = parse_time(info.state.first_ts) if info.state.messages else 0
    return first < parse_time(info.created)


def _check(answer: bytes, name: str) -> Mapping[str, object]:
    """The document. Raises ApiError for an answer that is one."""
    try:
        document = jsontext.parse_object(answer)
    except DecodeError:
        raise JsctlError(f"restore failed: {answer[:200]!r}") from None
    problem = document.get("error")
    if isinstance(problem, dict):
        code, err_code = int(problem.get("code", 0)), int(problem.get("err_code", 0))
        raise Refused(code, err_code, str(problem.get("description", "")), f'stream "{name}"')
    return document


async def _chunks(subscription: "Subscription", manager: Manager) -> AsyncIterator[bytes]:
    """The parts of an archive, each acknowledged, so that the server sends on.

    The server numbers them where they are to be acknowledged; it never sends one again, and goes on
    without acknowledgements of some. Raises JsctlError for one that is missing.
    """
    for number in count(1):
        try:
            message = await subscription.next_msg(timeout=SILENCE_S)
        except foreign_errors() as error:
            found = translate(error)
            if isinstance(found, Unreachable):
                found = Unreachable(f"the server sent nothing more for {SILENCE_S:g} s")
            raise found from None
        heed_interrupt()
        headers = message.headers or {}
        status = status_of(message.headers)
        if status and status != END:
            said = headers.get("Description", "")
            raise JsctlError(f"the server broke the backup off: {status} {said}".rstrip())
        if not message.data:
            return
        if message.reply and message.reply.rpartition(".")[2] != str(number):
            raise JsctlError(LOST)
        yield message.data
        if message.reply:
            await manager.client.publish(message.reply)
