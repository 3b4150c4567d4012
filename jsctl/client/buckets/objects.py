"""Buckets of objects: chunks on a subject of their own, what they are on another.

Source: NATS ADR 20 (object store). Objects are written and read chunk by chunk: none is ever
whole in memory.
"""

import asyncio
import hashlib
import json
import time
from base64 import b64decode, urlsafe_b64encode
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

from jsctl.api import jsontext
from jsctl.api.consumer import ConsumerConfig
from jsctl.api.errors import ApiError
from jsctl.api.fields import ZERO_TIME
from jsctl.api.stream import StreamInfo
from jsctl.api.times import format_time
from jsctl.api.words import DeliverPolicy
from jsctl.client.buckets.kv import valid_bucket
from jsctl.client.buckets.streams import (
    NO_MESSAGE,
    bucket_stream,
    delete_bucket_stream,
)
from jsctl.client.ordered import Delivered, Feed, ordered
from jsctl.client.worded import library_words, not_found, refused, worded
from jsctl.dataclass import dataclass
from jsctl.errors import JsctlError, UsageError

if TYPE_CHECKING:
    from jsctl.client.manager import Manager

PREFIX = "OBJ_"
CHUNK_BYTES = 128 * 1024
IN_FLIGHT_BYTES_MAX = 8 * 1024 * 1024
"""What may be sent before its answers are there."""
LINKS_MAX = 8
"""Links that lead to links further than this lead in a circle."""
COUNT_MAX = (1 << 64) - 1
_DIGEST = "SHA-256="


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """What an object is; `options` may have a chunk size, or a link to another object."""

    name: str
    bucket: str
    nuid: str = ""
    description: str = ""
    headers: dict[str, list[str]] = field(default_factory=dict)
    metadata: dict[str, str] = field(default_factory=dict)
    options: dict[str, object] = field(default_factory=dict)
    size: int = 0
    chunks: int = 0
    digest: str = ""
    deleted: bool = False
    modified: str = ZERO_TIME

    @property
    def link(self) -> tuple[str, str] | None:
        """Bucket and name of the object that this one stands for; the name of a bucket is empty."""
        link = self.options.get("link")
        if not isinstance(link, dict):
            return None
        return str(link.get("bucket", "")), str(link.get("name", ""))

    @property
    def digest_hex(self) -> str:
        """The digest as it is shown, with its kind."""
        kind, _, text = self.digest.partition("=")
        try:
            return f"{kind} {b64decode(text, b'-_').hex()}"
        except ValueError:
            return kind + " "

    def document(self) -> dict[str, object]:
        """As it is stored, and told to programs."""
        found: dict[str, object] = {"name": self.name}
        optional = ("description", "headers", "metadata", "options")
        found.update({key: value for key in optional if (value := getattr(self, key))})
        found.update(bucket=self.bucket, nuid=self.nuid, size=self.size, mtime=self.modified)
        found["chunks"] = self.chunks
        found.update(
            {key: getattr(self, key) for key in ("digest", "deleted") if getattr(self, key)}
        )
        return found


def _count(value: object) -> int:
    """Raises TypeError for what is no number of 64 bits."""
    if not isinstance(value, int) or not 0 <= value <= COUNT_MAX:
        raise TypeError(value)
    return value


def _info(data: bytes, modified: str) -> ObjectInfo:
    """A stored document; raises JsctlError for what is none."""
    try:
        found: Mapping[str, Any] = jsontext.parse_object(data)
        return ObjectInfo(
            name=str(found.get("name", "")),
            bucket=str(found.get("bucket", "")),
            nuid=str(found.get("nuid", "")),
            description=str(found.get("description", "")),
            headers={
                key: list(map(str, value)) for key, value in (found.get("headers") or {}).items()
            },
            metadata={key: str(value) for key, value in (found.get("metadata") or {}).items()},
            options=dict(found.get("options") or {}),
            size=_count(found.get("size", 0)),
            chunks=_count(found.get("chunks", 0)),
            digest=str(found.get("digest", "")),
            deleted=found.get("deleted") is True,
            modified=modified,
        )
    except (ValueError, TypeError, AttributeError):
        raise refused("object-store meta information invalid") from None


def check_store(name: str) -> str:
    """The name if a bucket can have it; raises UsageError."""
    if not valid_bucket(name):
        raise UsageError("nats: invalid object-store name")
    return name


async def open_store(manager: "Manager", name: str) -> "Store":
    """A bucket that is there. Raises NotFound."""
    check_store(name)
    return Store(manager, name, await bucket_stream(manager, PREFIX + name))


async def delete_store(manager: "Manager", name: str) -> None:
    """Removes a bucket with all its objects. Raises NotFound."""
    check_store(name)
    await delete_bucket_stream(manager, PREFIX + name, name)


class Store:
    """One bucket; `stream` is its stream's info when it was opened."""

    def __init__(self, manager: "Manager", name: str, stream: StreamInfo) -> None:
        self.name = name
        self.stream = stream
        self._manager = manager

    async def status(self) -> StreamInfo:
        """The stream as it is now."""
        with library_words():
            return await self._manager.stream_info(PREFIX + self.name)

    async def info(self, name: str, *, deleted: bool = False) -> ObjectInfo:
        """What an object is. Raises NotFound, for a deleted one unless it is wanted."""
        if not name:
            raise UsageError("nats: name is required")
        found = await self.find(name)
        if found is None or (found.deleted and not deleted):
            raise not_found("object not found")
        return found

    async def find(self, name: str) -> ObjectInfo | None:
        """What an object is, also a deleted one; None when there never was one."""
        subject, stream = self._about(name), PREFIX + self.name
        direct = self.stream.config.allow_direct
        ask = self._manager.direct_message if direct else self._manager.message
        try:
            message = await ask(stream, last_for=subject)
        except ApiError as error:
            if error.err_code == NO_MESSAGE:
                return None
            raise worded(error) from None
        return _info(message.data, message.time)

    def _about(self, name: str) -> str:
        return f"$O.{self.name}.M.{urlsafe_b64encode(name.encode()).decode()}"

    def _chunks(self, nuid: str) -> str:
        return f"$O.{self.name}.C.{nuid}"

    async def put(
        self, meta: ObjectInfo, pieces: Iterable[bytes], tell: Callable[[int], None]
    ) -> ObjectInfo:
        """Stores an object; what a failed try has left is removed. `tell` hears of its bytes."""
        before = await self.find(meta.name)
        sender = _Sender(self._manager, self._chunks(meta.nuid), tell)
        with library_words():
            try:
                for piece in pieces:
                    await sender.send(piece)
                await sender.wait()
            except BaseException:
                await self._forget(meta)
                raise
            made = replace(meta, size=sender.bytes, chunks=sender.chunks, digest=sender.digest())
            try:
                await self._tell(made)
            except ApiError:
                await self._forget(meta)
                raise
            # Where nothing is answered it may be stored: its chunks stay, whatever becomes of it.
            if before is not None and not before.deleted:
                old = self._chunks(before.nuid)
                await self._manager.purge(PREFIX + self.name, subject=old)
        return replace(made, modified=format_time(time.time_ns()))

    async def _forget(self, meta: ObjectInfo) -> None:
        """Removes the chunks of an object that is not to be; why it is not counts for more than
        that they may stay."""
        with suppress(ApiError, JsctlError):
            await self._manager.purge(PREFIX + self.name, subject=self._chunks(meta.nuid))

    async def _tell(self, info: ObjectInfo) -> None:
        text = json.dumps(info.document(), ensure_ascii=False, separators=(",", ":"))
        await self._manager.store(self._about(info.name), text.encode(), {"Nats-Rollup": "sub"})

    async def read(self, info: ObjectInfo, write: Callable[[bytes], object]) -> None:
        """Hands an object's chunks over, in order. Raises JsctlError when they are not its own."""
        if not info.size:
            return
        config = ConsumerConfig(filter_subject=self._chunks(info.nuid))
        digest = hashlib.sha256()
        with library_words():
            async with ordered(self._manager, PREFIX + self.name, config) as feed:
                async for message, _ in feed.present():
                    digest.update(message.data)
                    write(bytes(message.data))
        if info.digest and info.digest != _digest_text(digest.digest()):
            raise refused("received a corrupt object, digests do not match")

    async def follow(self, name: str) -> tuple["Store", ObjectInfo]:
        """The object that a name stands for in the end, links followed. Raises NotFound."""
        store: Store = self
        for _ in range(LINKS_MAX):
            info = await store.info(name)
            if not info.nuid:
                raise refused("object-store meta information invalid")
            if info.link is None:
                return store, info
            bucket, name = info.link
            if not name:
                raise refused("invalid Get, object is a link to a bucket")
            if bucket != store.name:
                store = await open_store(self._manager, bucket)
        raise refused("object links lead in a circle")

    async def delete(self, name: str) -> None:
        """Removes an object; that it was there stays."""
        info = await self.info(name, deleted=True)
        if not info.nuid:
            raise refused("object-store meta information invalid")
        gone = replace(info, deleted=True, size=0, chunks=0, digest="", modified=ZERO_TIME)
        with library_words():
            await self._tell(gone)
            await self._manager.purge(PREFIX + self.name, subject=self._chunks(info.nuid))

    async def seal(self) -> None:
        """No more changes, for ever."""
        info = await self.status()
        with library_words():
            await self._manager.update_stream(replace(info.config, sealed=True))

    async def objects(self) -> list[ObjectInfo]:
        """All objects that are not deleted."""
        async with self._feed(DeliverPolicy.LAST_PER_SUBJECT) as feed:
            found = [_maybe_changed(delivered) async for delivered in feed.present()]
        return [info for info in found if info is not None and not info.deleted]

    async def changes(self) -> AsyncGenerator[ObjectInfo, None]:
        """All that is kept of all objects, then what changes, for ever."""
        async with self._feed(DeliverPolicy.ALL) as feed:
            while True:
                if (info := _maybe_changed(await feed.next())) is not None:
                    yield info

    @asynccontextmanager
    async def _feed(self, policy: DeliverPolicy) -> AsyncIterator[Feed]:
        config = ConsumerConfig(deliver_policy=policy, filter_subject=f"$O.{self.name}.M.>")
        with library_words():
            async with ordered(self._manager, PREFIX + self.name, config) as feed:
                yield feed


def _maybe_changed(delivered: Delivered) -> ObjectInfo | None:
    """An object of a list; None for what is none, which hides no other one."""
    message, stored = delivered
    try:
        return _info(message.data, format_time(stored.time_ns))
    except JsctlError:
        return None


class _Sender:
    """Publishes chunks, some ahead of their answers."""

    def __init__(self, manager: "Manager", subject: str, tell: Callable[[int], None]) -> None:
        self.bytes = self.chunks = 0
        self._manager = manager
        self._subject = subject
        self._tell = tell
        self._hash = hashlib.sha256()
        self._held: list[bytes] = []
        self._held_bytes = 0

    async def send(self, piece: bytes) -> None:
        """One chunk, perhaps with some before it."""
        self._hash.update(piece)
        self._held.append(piece)
        self._held_bytes += len(piece)
        self.bytes += len(piece)
        self.chunks += 1
        if self._held_bytes >= IN_FLIGHT_BYTES_MAX:
            await self.wait()

    async def wait(self) -> None:
        """Until everything is stored. Raises the first error."""
        held, self._held, self._held_bytes = self._held, [], 0
        try:
            async with asyncio.TaskGroup() as tasks:
                for piece in held:
                    tasks.create_task(self._store(piece))
        except* (ApiError, JsctlError) as group:
            raise group.exceptions[0] from None

    async def _store(self, piece: bytes) -> None:
        await self._manager.store(self._subject, piece)
        self._tell(len(piece))

    def digest(self) -> str:
        """Of everything that was sent."""
        return _digest_text(self._hash.digest())


def _digest_text(digest: bytes) -> str:
    return _DIGEST + urlsafe_b64encode(digest).decode()
