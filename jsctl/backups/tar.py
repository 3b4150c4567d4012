"""The archive of servers before 2.15: a tar of the files that such a server has of a stream.

    meta.inf          the configuration
    msgs/N.blk        records, ascending; `record` below
    msgs/index.db     first and last sequence, among others
    obs/NAME/meta.inf, o.dat     a consumer's configuration and position

    record  length u32 (top bit: headers), sequence u64, time i64, subject length u16, subject,
            [headers length u32, headers,] payload, hash 8 B

A sequence with its highest bit is of a message that was erased, one with the next bit says that the
message was removed. Removals by limits are not told of: who restores applies the limits again. The
hashes (HighwayHash) are not looked at: the blocks of the S2 stream have checksums of their own.
"""

import json
import struct
from collections.abc import Iterator

from jsctl.backups.archive import (
    DOCUMENT_BYTES_MAX,
    ENTRY_BYTES_MAX,
    ConsumerEntry,
    MessageEntry,
    document_of,
)
from jsctl.backups.entries import signed, varint_at
from jsctl.backups.gathered import Gathered
from jsctl.backups.s2 import BrokenStream
from jsctl.dataclass import dataclass

BLOCK = 512
PAX_BYTES_MAX = 64 * 1024
PAX_RECORDS_MAX = 64
POSITIONS_MAX = 1024 * 1024
"""Messages that a consumer waits for, or has delivered again: a few bytes name one, and what is
made of them takes hundreds."""
_RECORD = struct.Struct("<IQqH")
_HASH_BYTES = 8
_HEADERS_BIT, _ERASED_BIT, _REMOVED_BIT = 1 << 31, 1 << 63, 1 << 62
_BITS = _ERASED_BIT | _REMOVED_BIT
_STATE_MAGIC, _CONSUMER_MAGIC = 11, 22
_CUT = "the archive is cut off"
_BROKEN = "a file of the archive is broken: {}"
_SECOND_NS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """What the stream was."""

    config: dict[str, object]


@dataclass(frozen=True, slots=True)
class BoundsEntry:
    """First and last sequence, and the time of the last message."""

    first_seq: int
    last_seq: int
    last_time_ns: int


@dataclass(frozen=True, slots=True)
class RemovedEntry:
    """A message that is removed, wherever it is."""

    sequence: int


@dataclass(frozen=True, slots=True)
class OtherEntry:
    """A file that tells nothing by itself."""


OldEntry = ConfigEntry | BoundsEntry | RemovedEntry | MessageEntry | ConsumerEntry | OtherEntry


class TarParser:
    """Bytes of such an archive in, entries out, checked as they come."""

    def __init__(self, body_bytes_max: int = ENTRY_BYTES_MAX, *, errors: str = "replace") -> None:
        self.ended = False
        """The archive's own end was met."""
        self._bytes = Gathered()
        self._errors = errors
        self._body_bytes_max = body_bytes_max
        self._name = ""
        self._left = 0
        """Of the file's content, which has `_size` bytes."""
        self._size = 0
        self._padding = 0
        self._pax: dict[str, str] = {}
        self._sequence = 0
        self._configs: dict[str, dict[str, object]] = {}
        """Of consumers."""
        self._configs_bytes = 0

    def feed(self, data: bytes) -> None:
        """Take the bytes that follow."""
        self._bytes.feed(data)

    def next(self) -> OldEntry | None:
        """The next entry. None: it is not all there, or the archive has ended. Raises
        BrokenStream."""
        while not self.ended:
            if self._padding:
                if self._bytes.ahead < self._padding:
                    return None
                self._bytes.take(self._padding)
                self._padding = 0
            progress = self._in_file() if self._name else self._head()
            if progress is None or not isinstance(progress, bool):
                return progress
        return None

    def finish(self) -> None:
        """Nothing follows. Raises BrokenStream if the archive is not whole."""
        if not self.ended:
            raise BrokenStream(_CUT)

    # Files

    def _head(self) -> bool | None:
        """The head of the next file; None if it is not there."""
        if self._bytes.ahead < BLOCK:
            return None
        head = self._bytes.take(BLOCK)
        if not any(head):
            self.ended = True
            return True
        total = sum(head) - sum(head[148:156]) + 8 * 32
        if head[257:262] != b"ustar" or _octal(head[148:156]) != total:
            raise BrokenStream("archive: invalid tar header")
        size, kind = _octal(head[124:136]), head[156:157]
        name = head[:100].rstrip(b"\0").decode("utf-8", "replace")
        if kind not in (b"0", b"\0", b"x"):
            raise BrokenStream("unexpected content")
        if kind == b"x":
            if size > PAX_BYTES_MAX:
                raise BrokenStream(_BROKEN.format("a head is too large"))
            self._begin("pax", size)
            return True
        name, pax = self._pax.get("path", name), self._pax
        self._pax = {}
        if "size" in pax:
            size = int(pax["size"]) if pax["size"].isdecimal() and len(pax["size"]) < 19 else -1
        if size < 0 or (not _is_block(name) and size > DOCUMENT_BYTES_MAX):
            raise BrokenStream(_BROKEN.format(f"{name[:100]!r} is too large"))
        self._begin("file " + name, size)
        return True

    def _begin(self, name: str, size: int) -> None:
        self._name, self._left, self._size = name, size, size

    def _end_file(self, size: int) -> None:
        self._name, self._padding = "", -size % BLOCK

    def _in_file(self) -> "OldEntry | bool | None":
        """More of a file: an entry, True for some progress, None for none."""
        name = self._name.removeprefix("file ")
        if self._name != "pax" and _is_block(name):
            return self._record()
        if self._bytes.ahead < self._left:
            return None
        size = self._left
        content = self._bytes.take(size)
        pax = self._name == "pax"
        self._end_file(size)
        if pax:
            self._pax = _pax_of(content)
            return OtherEntry()
        return self._file(name, content) or OtherEntry()

    def _file(self, name: str, content: bytes) -> OldEntry | None:
        match name.split("/"):
            case ["meta.inf"]:
                return ConfigEntry(_document(name, content))
            case ["msgs", "index.db"]:
                return _bounds(content)
            case ["obs", consumer, "meta.inf"]:
                self._configs_bytes += len(content)
                if self._configs_bytes > DOCUMENT_BYTES_MAX:
                    raise BrokenStream("the consumers of the archive are too large")
                self._configs[consumer] = _document(name, content)
            case ["obs", consumer, "o.dat"]:
                config = self._configs.pop(consumer, None)
                if config is None:
                    raise BrokenStream(f'consumer "{consumer}" is missing config')
                return _consumer(consumer, config, content)
            case ["errors.txt"]:
                raise BrokenStream(content[:200].decode("utf-8", "replace"))
            case _:
                pass
        return None

    # Records

    def _record(self) -> "OldEntry | bool | None":
        if not self._left:
            # Files of blocks are read record by record: the padding follows from their size.
            self._end_file(self._size)
            return OtherEntry()
        if self._bytes.ahead < _RECORD.size:
            return None
        self._bytes.join()
        length, seq, time_ns, subject = _RECORD.unpack_from(self._bytes.data, self._bytes.at)
        headers = length & _HEADERS_BIT
        length &= ~_HEADERS_BIT
        least = _RECORD.size + subject + (4 if headers else 0) + _HASH_BYTES
        if not least <= length <= self._left or length > least + self._body_bytes_max:
            raise BrokenStream(_BROKEN.format("a record has a wrong length"))
        if self._bytes.ahead < length:
            return None
        self._left -= length
        return self._message(seq, time_ns, subject, bool(headers), self._bytes.take(length))

    def _message(
        self, seq: int, time_ns: int, subject_bytes: int, has_headers: bool, raw: bytes
    ) -> "OldEntry | bool":
        if seq & _BITS or not seq:
            return RemovedEntry(seq & ~_BITS) if seq & ~_BITS else True
        if seq <= self._sequence:
            return True  # As the server itself takes it.
        at = _RECORD.size + subject_bytes
        subject, body = raw[_RECORD.size : at], raw[at:-_HASH_BYTES]
        headers = 0
        if has_headers:
            headers, body = int.from_bytes(body[:4], "little"), body[4:]
            if headers > len(body):
                raise BrokenStream(_BROKEN.format("headers have a wrong length"))
        self._sequence = seq
        name = subject.decode("utf-8", self._errors)
        return MessageEntry(name, seq, time_ns, body[:headers], body[headers:])


def _is_block(name: str) -> bool:
    return name.startswith("msgs/") and name.endswith(".blk")


def _octal(field: bytes) -> int:
    text = field.strip(b" \0")
    if not text.isdigit() or set(text) & set(b"89"):
        return -1
    return int(text, 8)


def _pax_of(content: bytes) -> dict[str, str]:
    found: dict[str, str] = {}
    for _ in range(PAX_RECORDS_MAX):
        if not content:
            return found
        length, _, _ = content.partition(b" ")
        size = int(length) if length.isdigit() and len(length) < 7 else 0
        record = content[len(length) + 1 : size]
        if not record.endswith(b"\n"):
            raise BrokenStream("archive: invalid tar header")
        key, _, value = record[:-1].partition(b"=")
        found[key.decode("utf-8", "replace")] = value.decode("utf-8", "replace")
        content = content[size:]
    raise BrokenStream(_BROKEN.format("a head says too much"))


def _document(name: str, content: bytes) -> dict[str, object]:
    return document_of(content, _BROKEN.format(repr(name[:100])))


def _numbers(data: bytes, at: int) -> Iterator[int]:
    """The varints from a place on. Raises BrokenStream at the end."""
    while True:
        found = varint_at(data, at)
        if found is None:
            raise BrokenStream(_BROKEN.format("a state ends too early"))
        yield found[0]
        at = found[1]


def _bounds(content: bytes) -> BoundsEntry | None:
    """The begin of what a server writes of a stream's state; None for a form that is not known."""
    if len(content) < 2 or content[0] != _STATE_MAGIC:
        return None
    numbers = _numbers(content, 2)
    _, _, first, _, last, last_time = (next(numbers) for _ in range(6))
    return BoundsEntry(first, last, signed(last_time))


def _check_count(name: str, count: int) -> None:
    if count > POSITIONS_MAX:
        raise BrokenStream(f'consumer "{name}" names too many messages')


def _consumer(name: str, config: dict[str, object], content: bytes) -> ConsumerEntry:
    """The consumer as newer archives have it."""
    if len(content) < 2 or content[0] != _CONSUMER_MAGIC or content[1] != 2:
        raise BrokenStream(f'consumer "{name}": the form of its state is not known')
    numbers = _numbers(content, 2)
    floor, floor_stream, delivered, delivered_stream, count = (next(numbers) for _ in range(5))
    pending: dict[str, object] = {}
    _check_count(name, count)
    if count:
        newest = signed(next(numbers))
        for _ in range(count):
            seq, number, since = next(numbers), next(numbers), signed(next(numbers))
            pending[str(seq + floor_stream)] = {
                "Sequence": number + floor,
                "Timestamp": (newest - since) * _SECOND_NS,
            }
    count = next(numbers)
    _check_count(name, count)
    again = {str(next(numbers) + floor_stream): next(numbers) for _ in range(count)}
    state = {
        "delivered": {"consumer_seq": delivered, "stream_seq": delivered_stream},
        "ack_floor": {"consumer_seq": floor, "stream_seq": floor_stream},
        "pending": pending,
        "redelivered": again,
    }
    known = {key: value for key, value in config.items() if key not in ("Created", "Name")}
    data = json.dumps({"config": known, "state": state}).encode()
    return ConsumerEntry(name, 0, data)
