"""`object put`, `get` and `del`: files in and out."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter_ns
from typing import BinaryIO

from jsctl.api.times import SECOND_NS
from jsctl.client.buckets.objects import CHUNK_BYTES, ObjectInfo, delete_store
from jsctl.commands.object.open import opened
from jsctl.commands.object.show import show_object, show_store
from jsctl.commands.toolkit.content.bodies import any_header_pairs
from jsctl.commands.toolkit.content.templates import unique_id
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.commands.toolkit.invocation.progress import bar_of
from jsctl.commands.toolkit.invocation.reading import interruptible
from jsctl.errors import JsctlError, UsageError, sentence_of
from jsctl.files import drafted
from jsctl.render.humanize import duration, size

BAR_FROM_BYTES = 20_480
"""Smaller files are there before a bar would be."""
CHUNK_BYTES_MAX = 2**32 - 1
READ_BYTES_MAX = 64 * 1024 * 1024
"""More fits into no message."""
RATE_FROM_NS = 2 * SECOND_NS


async def put(call: Call) -> None:
    """Stores a file, or what comes in."""
    path, name = call.text("file"), call.text("name") or call.text("file")
    if path and not Path(path).exists():
        raise UsageError(f"path '{path}' does not exist", show_help=True)
    async with opened(call) as (_, store):
        if not name:
            raise JsctlError("--name is required when reading from stdin")
        name = os.path.normpath(name)
        if not call.flag("force"):
            known = await store.find(name)
            if known and not known.deleted and not _replace(call, store.name, known):
                return
        meta = ObjectInfo(
            name=name,
            bucket=store.name,
            nuid=unique_id(),
            description=call.text("description"),
            headers=_headers(call),
            options={"max_chunk_size": _chunk_bytes(call)},
        )
        with (
            _source(path) as (stream, total),
            bar_of(call, total if total > BAR_FROM_BYTES else 0) as done,
        ):
            made = await store.put(meta, _pieces(stream, _chunk_bytes(call)), done)
    call.output.print()
    show_object(call, made)


def _replace(call: Call, bucket: str, known: ObjectInfo) -> bool:
    show_object(call, known)
    call.output.print()
    if not call.confirm(f"Replace existing file {bucket} > {known.name}"):
        return False
    call.output.print()
    return True


def _headers(call: Call) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, value in any_header_pairs(call):
        found.setdefault(name, []).append(value)
    return found


def _chunk_bytes(call: Call) -> int:
    """Raises UsageError for a size that no chunk has."""
    wanted = call.integer("chunk-size") or CHUNK_BYTES
    if wanted > CHUNK_BYTES_MAX:
        raise UsageError(f"--chunk-size: a chunk has {CHUNK_BYTES_MAX} bytes at most")
    return wanted


@contextmanager
def _source(path: str) -> Iterator[tuple[BinaryIO, int]]:
    """Where bytes come from, and how many there are when that is known."""
    if not path:
        yield sys.stdin.buffer, 0
        return
    try:
        with open(path, "rb") as stream:
            yield stream, os.fstat(stream.fileno()).st_size
    except OSError as error:
        raise JsctlError(f"open {path}: {(error.strerror or '').lower()}") from None


def _pieces(stream: BinaryIO, piece_bytes: int) -> Iterator[bytes]:
    piece_bytes = min(piece_bytes, READ_BYTES_MAX)  # room is made for all of it
    while piece := interruptible(lambda: stream.read(piece_bytes)):
        yield piece


async def get(call: Call) -> None:
    """Writes an object to a file; what is there stays until the whole object is."""
    async with opened(call) as (_, store):
        store, found = await store.follow(call.text("file"))
        target = Path(call.text("output") or Path(found.name).name).absolute()
        if target.exists() and not call.confirm(f"Replace existing target file {target}"):
            return
        started_ns = perf_counter_ns()
        written = 0
        shown = found.size if found.size > BAR_FROM_BYTES else 0
        with bar_of(call, shown) as done, _target(target) as stream:

            def write(piece: bytes) -> None:
                nonlocal written
                written += stream.write(piece)
                done(len(piece))

            await store.read(found, write)
            if written != found.size:
                raise JsctlError(f"wrote {size(written)}, expected {size(found.size)}")
    took_ns = perf_counter_ns() - started_ns
    text = f"Wrote: {size(found.size)} to {target} in {duration(took_ns)}"
    if took_ns > RATE_FROM_NS:
        text += f" average {size(found.size * SECOND_NS // took_ns)}/s"
    document = {**found.document(), "file": str(target), "nanoseconds": took_ns}
    call.output.tell(text, document)


@contextmanager
def _target(path: Path) -> Iterator[BinaryIO]:
    try:
        with drafted(path) as stream:
            yield stream
    except OSError as error:
        raise JsctlError(sentence_of(error, path)) from None


async def delete(call: Call) -> None:
    """Removes an object, or a bucket when no object is named."""
    bucket, name = call.text("bucket"), call.text("file")
    async with opened(call) as (manager, store):
        if not name:
            if call.confirm(f"Delete bucket {bucket} and all its files?", prefix=""):
                await delete_store(manager, bucket)
            else:
                call.output.print("Skipping delete")
            return
        if not call.flag("force"):
            found = await store.info(name)
            question = f"Delete {size(found.size)} byte file {bucket} > {name}?"
            if not call.confirm(question, prefix=""):
                call.output.print("Skipping delete")
                return
        await store.delete(name)
        state = await store.status()
    if not call.as_json:
        call.output.say(f"Removed {bucket} > {name}")
    show_store(call, state)
