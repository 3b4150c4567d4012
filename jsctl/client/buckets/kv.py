"""Buckets of keys and values: a stream with a subject per key, as the NATS libraries lay it out.

Source: NATS ADR 8 (key-value store), ADR 43 (time to live), ADR 48 (limit markers).
"""

import re
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from enum import Enum
from typing import TYPE_CHECKING

from jsctl.api.consumer import ConsumerConfig
from jsctl.api.errors import ApiError
from jsctl.api.stream import RawStreamMsg, StreamConfig, StreamInfo
from jsctl.api.times import MINUTE_NS, SECOND_NS, format_duration, parse_time
from jsctl.api.words import DeliverPolicy, Discard
from jsctl.client.buckets.streams import (
    NO_MESSAGE,
    bucket_stream,
    delete_bucket_stream,
)
from jsctl.client.ordered import Delivered, Feed, ordered
from jsctl.client.stored import header_of
from jsctl.client.worded import library_words, not_found, refused, worded
from jsctl.dataclass import dataclass
from jsctl.errors import Conflict, Unreachable, UsageError

if TYPE_CHECKING:
    from jsctl.client.manager import Manager

PREFIX = "KV_"
WRONG_LAST = (10071, 10164)
"""The subject has another last sequence; the second one while a message is in flight."""
MARKERS_KEPT_NS = 30 * MINUTE_NS
"""A compaction leaves marks of younger deletes, so that those who watch see them."""
_BUCKET = re.compile(r"[a-zA-Z0-9_-]+")
_KEY = re.compile(r"[-/_=.a-zA-Z0-9]+")
_PATTERN = re.compile(r"[-/_=.a-zA-Z0-9*]*>?")


DUPLICATES_NS = 120 * SECOND_NS
"""The window of message ids; shorter where values live shorter."""


class Operation(Enum):
    """What happened to a key."""

    PUT = "PUT"
    DELETE = "DELETE"
    PURGE = "PURGE"


_MARKS = {"DEL": Operation.DELETE, "PURGE": Operation.PURGE}
_REASONS = {
    "MaxAge": Operation.PURGE,
    "Purge": Operation.PURGE,
    "Remove": Operation.DELETE,
}


@dataclass(frozen=True, slots=True)
class Entry:
    """A revision of a key; `pending` is how many revisions come behind it."""

    key: str
    value: bytes
    revision: int
    created_ns: int
    operation: Operation
    pending: int = 0


@dataclass(frozen=True, slots=True)
class Watched:
    """Which revisions of keys are wanted."""

    pattern: str = ">"
    history: bool = False
    deletes: bool = True
    only_new: bool = False
    from_revision: int = 0
    headers_only: bool = False


def valid_bucket(name: str) -> bool:
    """Whether a bucket can have that name."""
    return _BUCKET.fullmatch(name) is not None


def valid_key(name: str) -> bool:
    """Whether a value can be kept under that name."""
    return _KEY.fullmatch(name) is not None and name.strip(".") == name


def check_bucket(name: str) -> str:
    """The name if a bucket can have it; raises UsageError."""
    if not valid_bucket(name):
        raise UsageError("nats: invalid bucket name")
    return name


def fresh_bucket(name: str, **settings: object) -> StreamConfig:
    """The stream of a bucket of which no more is asked than the settings say."""
    config = StreamConfig(
        name=PREFIX + name,
        subjects=(f"$KV.{name}.>",),
        max_msgs_per_subject=1,
        max_msgs=-1,
        max_bytes=-1,
        max_msg_size=-1,
        max_consumers=-1,
        num_replicas=1,
        discard=Discard.NEW,
        duplicate_window=DUPLICATES_NS,
        allow_rollup_hdrs=True,
        deny_delete=True,
        allow_direct=True,
    )
    return replace(config, **settings)  # type: ignore[arg-type] # named by those who call


def _checked(key: str, form: re.Pattern[str], text: str) -> str:
    if not key or key[0] == "." or key[-1] == "." or ".." in key or not form.fullmatch(key):
        raise UsageError(text)
    return key


async def open_bucket(manager: "Manager", name: str) -> "Bucket":
    """A bucket that is there. Raises NotFound."""
    check_bucket(name)
    info = await bucket_stream(manager, PREFIX + name)
    if info.config.max_msgs_per_subject < 1:
        raise refused("bucket not valid key-value store")
    return Bucket(manager, name, info)


async def delete_bucket(manager: "Manager", name: str) -> None:
    """Removes a bucket with all its keys. Raises NotFound."""
    check_bucket(name)
    await delete_bucket_stream(manager, PREFIX + name, name)


class Bucket:
    """One bucket; `info` is its stream's when it was opened."""

    def __init__(self, manager: "Manager", name: str, info: StreamInfo) -> None:
        self.name = name
        self.info = info
        self._manager = manager
        mirror = info.config.mirror
        origin = mirror.name.removeprefix(PREFIX) if mirror else name
        external = mirror.external.api if mirror and mirror.external else ""
        self._read = f"$KV.{origin}."
        self._write = f"{external}.$KV.{origin}." if external else f"$KV.{origin}."
        own = manager.requests.prefix.decode()
        if not external and own != "$JS.API.":
            self._write = own + self._write

    async def status(self) -> StreamInfo:
        """The stream as it is now."""
        with library_words():
            return await self._manager.stream_info(self.info.config.name)

    async def get(self, key: str, revision: int = 0) -> Entry:
        """The last value of a key, or that of a revision. Raises NotFound without one."""
        found = await self._last(key, revision)
        if found is None or found.operation is not Operation.PUT:
            raise not_found("key not found")
        return found

    async def _last(self, key: str, revision: int = 0) -> Entry | None:
        """The last entry of a key, whatever it did; None when there is none."""
        subject = self._read + _checked(key, _KEY, "nats: invalid key")
        stream = self.info.config.name
        get = self._manager.direct_message if self.info.config.allow_direct else None
        ask = get or self._manager.message
        try:
            message = await (
                ask(stream, seq=revision) if revision else ask(stream, last_for=subject)
            )
        except ApiError as error:
            if error.err_code == NO_MESSAGE:
                return None
            raise worded(error) from None
        return _entry(key, message) if message.subject == subject else None

    async def put(self, key: str, value: bytes) -> int:
        """Sets a value; its revision is returned."""
        return await self._store(key, value, {})

    async def update(self, key: str, value: bytes, revision: int, *, ttl_ns: int = 0) -> int:
        """Sets a value if the key's last revision is that one. Raises Conflict."""
        try:
            return await self._at(key, value, revision, ttl_ns)
        except ApiError as error:
            if error.err_code not in WRONG_LAST:
                raise worded(error, "nats") from None
            raise Conflict(f"nats: {worded(error)}: nats: key revision mismatch") from None

    async def create(self, key: str, value: bytes, *, ttl_ns: int = 0) -> int:
        """Sets the value of a key that is not there, or no longer. Raises Conflict."""
        try:
            return await self._at(key, value, 0, ttl_ns)
        except ApiError as error:
            last = await self._last(key)
            if last is not None and last.operation is not Operation.PUT:
                return await self.update(key, value, last.revision, ttl_ns=ttl_ns)
            if error.err_code not in WRONG_LAST:
                raise worded(error, "nats") from None
            raise Conflict(f"nats: {worded(error)}: key exists") from None

    async def _at(self, key: str, value: bytes, revision: int, ttl_ns: int) -> int:
        headers = {"Nats-Expected-Last-Subject-Sequence": str(revision), **_ttl(ttl_ns)}
        subject = self._write + _checked(key, _KEY, "nats: invalid key")
        return (await self._manager.store(subject, value, headers)).seq

    async def delete(self, key: str) -> None:
        """Marks a key as deleted; its history stays."""
        await self._store(key, b"", {"KV-Operation": "DEL"})

    async def purge(self, key: str, *, ttl_ns: int = 0) -> None:
        """Removes a key with its history; a mark stays, at most that long."""
        marks = {"KV-Operation": "PURGE", "Nats-Rollup": "sub", **_ttl(ttl_ns)}
        await self._store(key, b"", marks)

    async def _store(self, key: str, value: bytes, headers: dict[str, str]) -> int:
        subject = self._write + _checked(key, _KEY, "nats: invalid key")
        try:
            return (await self._manager.store(subject, value, headers or None)).seq
        except ApiError as error:
            raise worded(error, "nats") from None
        except Unreachable as error:
            if "no responders" not in str(error):
                raise
            raise Unreachable("nats: no response from stream", hints=error.hints) from None

    @asynccontextmanager
    async def watch(self, wanted: Watched) -> AsyncIterator["Watch"]:
        """Revisions as they come, those that are there already first."""
        text = "nats: invalid key: key cannot be empty and must be a valid NATS subject"
        pattern = _checked(wanted.pattern, _PATTERN, text)
        policy = DeliverPolicy.ALL if wanted.history else DeliverPolicy.LAST_PER_SUBJECT
        config = ConsumerConfig(
            deliver_policy=DeliverPolicy.NEW if wanted.only_new else policy,
            filter_subject=self._read + pattern,
            headers_only=wanted.headers_only,
        )
        if wanted.from_revision:
            start = DeliverPolicy.BY_START_SEQUENCE
            config = replace(config, deliver_policy=start, opt_start_seq=wanted.from_revision)
        with library_words():
            async with ordered(self._manager, self.info.config.name, config) as feed:
                yield Watch(feed, self._read, deletes=wanted.deletes)

    async def entries(self, wanted: Watched) -> list[Entry]:
        """What a watch would show first: all that is there now."""
        async with self.watch(wanted) as watch:
            return [entry async for entry in watch.present()]

    async def history(self, key: str) -> list[Entry]:
        """All revisions of a key that are kept. Raises NotFound."""
        found = await self.entries(Watched(pattern=key, history=True))
        if not found:
            raise not_found("key not found")
        return found

    async def keys(self, pattern: str = ">") -> list[str]:
        """All keys that have a value, in the order of their last revisions."""
        wanted = Watched(pattern=pattern, deletes=False, headers_only=True)
        return [entry.key for entry in await self.entries(wanted)]

    async def values(self, pattern: str = ">") -> list[Entry]:
        """The last revisions of all keys that have a value, in their order, each as by itself."""
        found = await self.entries(Watched(pattern=pattern, deletes=False))
        return [replace(entry, pending=0) for entry in found]

    async def compact(self) -> None:
        """Removes what deleted keys still hold, and their marks unless they are young."""
        marks = [entry for entry in await self.entries(Watched()) if entry.operation in _REMOVED]
        young_ns = time.time_ns() - MARKERS_KEPT_NS
        for entry in marks:
            # Up to the mark, and not all: somebody may have given the key a value meanwhile.
            young = entry.created_ns > young_ns
            places = {"keep": 1} if young else {"seq": entry.revision + 1}
            subject = self._read + entry.key
            with library_words():
                await self._manager.purge(self.info.config.name, subject=subject, **places)


_REMOVED = frozenset({Operation.DELETE, Operation.PURGE})


class Watch:
    """A feed of revisions; without `deletes` those that set a value."""

    def __init__(self, feed: Feed, prefix: str, *, deletes: bool) -> None:
        self._feed = feed
        self._prefix = prefix
        self._deletes = deletes

    async def present(self) -> AsyncIterator[Entry]:
        """What was there when the watch began."""
        async for delivered in self._feed.present():
            entry = self._entry(delivered)
            if self._wants(entry):
                yield entry

    async def all(self) -> AsyncIterator[Entry]:
        """For ever."""
        while True:
            entry = self._entry(await self._feed.next())
            if self._wants(entry):
                yield entry

    def _wants(self, entry: Entry) -> bool:
        return self._deletes or entry.operation is Operation.PUT

    def _entry(self, delivered: Delivered) -> Entry:
        message, stored = delivered
        headers = message.headers or {}
        return Entry(
            message.subject.removeprefix(self._prefix),
            bytes(message.data),
            stored.stream_seq,
            stored.time_ns,
            _operation(headers.get("KV-Operation", ""), headers.get("Nats-Marker-Reason", "")),
            stored.pending,
        )


def _operation(mark: str, reason: str) -> Operation:
    return _MARKS.get(mark) or _REASONS.get(reason) or Operation.PUT


def _entry(key: str, message: RawStreamMsg) -> Entry:
    operation = _operation(
        header_of(message, "KV-Operation"), header_of(message, "Nats-Marker-Reason")
    )
    created = parse_time(message.time)
    return Entry(key, message.data, message.seq, created, operation)


def _ttl(ttl_ns: int) -> dict[str, str]:
    return {"Nats-TTL": format_duration(ttl_ns)} if ttl_ns else {}


def buckets_of(infos: Sequence[StreamInfo], prefix: str = PREFIX) -> list[StreamInfo]:
    """Streams that are buckets."""
    return [info for info in infos if info.config.name.startswith(prefix)]
