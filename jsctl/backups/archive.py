"""The archive of a stream: its state, its consumers, its messages, an end; one entry each.

    NATSARC1, then for each entry
    length of the name, time (zigzag), sequence, bytes of headers, bytes of payload: varints
    the name, the headers, the payload

The state is the entry `state.json`; it says how many entries `consumers/NAME` follow. Messages have
their subject as name and ascending sequences; an entry of zeros is the end, and without it an
archive is not whole.
"""

import json
from collections.abc import Iterator
from typing import BinaryIO

from jsctl.api import jsontext
from jsctl.api.codec import DecodeError
from jsctl.backups.documents import check_consumer, check_stream_state
from jsctl.backups.entries import (
    INVALID,
    ReadMessages,
    Row,
    entry_bytes,
    message_at,
    signed,
    varint_at,
)
from jsctl.backups.gathered import Gathered
from jsctl.backups.s2 import BrokenStream, blocks
from jsctl.dataclass import dataclass

MAGIC = b"NATSARC1"
STATE = "state.json"
CONSUMERS = "consumers/"
NAME_BYTES_MAX = 1 << 20
ENTRY_BYTES_MAX = 256 * 1024 * 1024
"""Four times the largest payload that a server can be told to take."""
DOCUMENT_BYTES_MAX = 64 * 1024 * 1024
"""Of the state, or of a consumer."""
DOCUMENT_PARTS_MAX = 1024 * 1024
"""Objects and lists in one: a consumer has one for each message that waits for its acknowledgement.
Nothing else of the process runs while it is read."""
HEAD_PAD = 320
"""Room for the state in an archive's head, so that it can be written again."""
NOT_A_BACKUP = f"not a NATS Server 2.15 stream backup: {INVALID}"


class NotABackup(BrokenStream):
    """What there is, is no archive of this kind."""


@dataclass(frozen=True, slots=True)
class StateEntry:
    """What the stream was; `time_ns` is when."""

    time_ns: int
    state: dict[str, object]


@dataclass(frozen=True, slots=True)
class ConsumerEntry:
    """A consumer: configuration and state as one document."""

    name: str
    time_ns: int
    data: bytes


@dataclass(frozen=True, slots=True)
class MessageEntry:
    """A message as it was stored; `headers` begin with `NATS/1.0` where there are some."""

    subject: str
    sequence: int
    time_ns: int
    headers: bytes
    payload: bytes

    def stored_bytes(self, *, memory: bool) -> int:
        """What it takes in a server's store, by its own counting."""
        subject, body = len(self.subject.encode()), len(self.headers) + len(self.payload)
        if memory:
            return subject + body + 16
        return 22 + subject + body + 8 + (4 if self.headers else 0)


Entry = StateEntry | ConsumerEntry | MessageEntry


@dataclass(frozen=True, slots=True)
class _Head:
    """What comes before the name and the body of an entry."""

    name_bytes: int
    time_ns: int
    sequence: int
    headers: int
    payload: int

    @property
    def bytes(self) -> int:
        """Of name and body."""
        return self.name_bytes + self.headers + self.payload


class EntryParser:
    """Bytes of an archive in, entries out, checked as they come. `last` names the last good one.

    `body_bytes_max`: what a message's headers and payload may have together. `errors`: what
    becomes of names that are no UTF-8.
    """

    def __init__(self, body_bytes_max: int = ENTRY_BYTES_MAX, *, errors: str = "replace") -> None:
        self.count = 0
        self._what: tuple[str, int] | None = None
        """Name and sequence of the last good one; 0 for what is no message."""
        self.ended = False
        """The archive's own end was met: nothing behind it counts."""
        self._body_bytes_max = body_bytes_max
        self._errors = errors
        self._bytes = Gathered()
        self._begun = False
        self._state: StateEntry | None = None
        self._consumers_left = 0
        self._sequence = 0
        self._head: _Head | None = None

    @property
    def last(self) -> str:
        """The last good entry, in words."""
        if self._what is None:
            return "no entries"
        name, sequence = self._what
        return f"entry #{self.count} " + (f"message {name} seq {sequence}" if sequence else name)

    def feed(self, data: bytes) -> None:
        """Take the bytes that follow."""
        self._bytes.feed(data)

    def next(self) -> Entry | None:
        """The next entry: the state, then consumers, then messages. None: it is not all there, or
        the archive has ended. Raises BrokenStream."""
        if self.ended or not self._begin():
            return None
        if self._head is None:
            self._bytes.join()
            if self._state is not None and not self._consumers_left:
                message = self._whole_message()
                if message is not None:
                    return message
            self._head = self._next_head()
        head = self._head
        if head is None or self._bytes.ahead < head.bytes:
            return None
        self._head = None
        name = self._bytes.take(head.name_bytes).decode("utf-8", self._errors)
        return self._entry(head, name, self._bytes.take(head.headers + head.payload))

    def finish(self) -> None:
        """Nothing follows. Raises BrokenStream if the archive is not whole."""
        if self.ended:
            return
        if not self._begun:
            raise NotABackup(NOT_A_BACKUP)
        if self._head is not None:
            raise BrokenStream(f"the archive is cut off within an entry after {self.last}")
        if self._bytes.ahead:
            raise BrokenStream(INVALID)
        raise BrokenStream(f"backup ends before the end-of-backup sentinel after {self.last}: EOF")

    def _begin(self) -> bool:
        if not self._begun and self._bytes.ahead >= len(MAGIC):
            if self._bytes.take(len(MAGIC)) != MAGIC:
                raise NotABackup(NOT_A_BACKUP)
            self._begun = True
        return self._begun

    def _whole_message(self) -> MessageEntry | None:
        """The next message if it is all there, and of the form that nearly all have; whatever it
        is else, or is wrong with it, is found step by step."""
        begin, last = self._bytes.at, max(self._sequence, 0)
        found = message_at(self._bytes.data, begin, last, self._body_bytes_max)
        if found is None:
            return None
        (sequence, time_ns, subject, headers, payload), end = found
        self._bytes.skip_to(end)
        self._sequence = sequence
        name = subject.decode("utf-8", self._errors)
        self._good(name, sequence)
        return MessageEntry(name, sequence, time_ns, headers, payload)

    def rows(self, read: ReadMessages, count: int) -> list[Row]:
        """So many of the next messages at the most, read together by `read`; none where something
        else comes, or is wrong: `next` says what."""
        if self._state is None or self._consumers_left or self._head is not None or self.ended:
            return []
        self._bytes.join()
        last = max(self._sequence, 0)
        found, end = read(self._bytes.data, self._bytes.at, last, self._body_bytes_max, count)
        if found:
            self._bytes.skip_to(end)
            self._sequence = found[-1][0]
            self.count += len(found)
            self._what = found[-1][2].decode("utf-8", self._errors), self._sequence
        return found

    def _next_head(self) -> _Head | None:
        """The head that begins here; None if it is not all there. Its lengths are in bounds."""
        numbers, at = [], self._bytes.at
        for _ in range(5):
            found = varint_at(self._bytes.data, at)
            if found is None:
                return None
            numbers.append(found[0])
            at = found[1]
        name_bytes, zigzag, sequence, headers, payload = numbers
        is_message = self._state is not None and not self._consumers_left
        body_max = self._body_bytes_max if is_message else DOCUMENT_BYTES_MAX
        if name_bytes > NAME_BYTES_MAX or headers + payload > body_max:
            raise BrokenStream(f"an entry of the archive is too large after {self.last}")
        self._bytes.take(at - self._bytes.at)
        return _Head(name_bytes, signed(zigzag), sequence, headers, payload)

    def _entry(self, head: _Head, name: str, body: bytes) -> Entry | None:
        if self._state is None:
            self._state = self._state_of(head, name, body)
            self._consumers_left = _number(self._state.state, "consumer_count")
            self._sequence = _number(self._state.state, "first_seq") - 1
            return self._state
        if self._consumers_left > 0:
            made = self._consumer(head, name, body)
            self._consumers_left -= 1
            return made
        return self._message(head, name, body)

    def _good(self, name: str, sequence: int = 0) -> None:
        self.count += 1
        self._what = name, sequence

    def _state_of(self, head: _Head, name: str, body: bytes) -> StateEntry:
        if name != STATE:
            raise BrokenStream(f'expected {STATE} first, found "{name}"')
        state = document_of(body, f"error in {STATE}")
        try:
            check_stream_state(state)
        except DecodeError as error:
            raise BrokenStream(f"error in {STATE}: {error}") from None
        if _number(state, "consumer_count") < 0:
            raise BrokenStream(f"error in {STATE}: negative consumer_count")
        self._good(f"state {STATE}")
        return StateEntry(head.time_ns, state)

    def _consumer(self, head: _Head, name: str, body: bytes) -> ConsumerEntry:
        if not name.startswith(CONSUMERS):
            left = self._consumers_left
            raise BrokenStream(f'expected consumer entry ({left} remaining), found "{name}"')
        short = name.removeprefix(CONSUMERS)
        problem = f'failed to decode consumer "{short}" state'
        document = document_of(body, problem)
        config, state = document.get("config"), document.get("state")
        for part, found in (("config", config), ("state", state)):
            if not isinstance(found, dict):
                raise BrokenStream(f'consumer "{short}" is missing {part}')
        assert isinstance(config, dict) and isinstance(state, dict)
        try:
            check_consumer(config, state)
        except DecodeError as error:
            raise BrokenStream(f"{problem}: {error}") from None
        self._good(f"consumer {short}")
        return ConsumerEntry(short, head.time_ns, body)

    def _message(self, head: _Head, name: str, body: bytes) -> MessageEntry | None:
        sequence = head.sequence
        if not sequence:
            if head.time_ns or body:
                raise BrokenStream(
                    f'expected message sequence, found entry "{name}" with sequence 0 '
                    f"after {self.last}"
                )
            self._good("end")
            self.ended = True
            return None
        if sequence <= self._sequence:
            raise BrokenStream(f"message sequence {sequence} out of order after {self.last}")
        self._sequence = sequence
        self._good(name, sequence)
        headers, payload = body[: head.headers], body[head.headers :]
        return MessageEntry(name, sequence, head.time_ns, headers, payload)


class ArchiveReader:
    """The entries of an archive in a file. `last` names the last good one."""

    def __init__(self, file: BinaryIO) -> None:
        self._blocks = blocks(file)
        self._parser = EntryParser()

    @property
    def last(self) -> str:
        """The last good entry, in words."""
        return self._parser.last

    @property
    def count(self) -> int:
        """How many good ones there were."""
        return self._parser.count

    def __iter__(self) -> Iterator[Entry]:
        """State, consumers, messages; ends at the archive's own end. Raises BrokenStream."""
        parser = self._parser
        for block in self._blocks:
            parser.feed(block)
            while (entry := parser.next()) is not None:
                yield entry
            if parser.ended:
                return
        parser.finish()


def document_of(body: bytes, problem: str) -> dict[str, object]:
    """A document of an archive. Raises BrokenStream."""
    if body.count(b"{") + body.count(b"[") > DOCUMENT_PARTS_MAX:
        raise BrokenStream(f"{problem}: it has too many parts")
    try:
        return jsontext.parse_object(body)
    except DecodeError as error:
        raise BrokenStream(f"{problem}: {error}") from None


def _number(document: dict[str, object], key: str) -> int:
    value = document.get(key, 0)
    return value if isinstance(value, int) else 0


def end_bytes() -> bytes:
    """The entry that ends an archive."""
    return entry_bytes("", 0, 0, b"", b"")


def begin_bytes(time_ns: int, state: object) -> bytes:
    """How an archive begins that is written once."""
    text = json.dumps(state, separators=(",", ":")).encode()
    return MAGIC + entry_bytes(STATE, time_ns, 0, b"", text)


def state_bytes(time_ns: int, state: dict[str, object], *, pad: int) -> bytes:
    """How an archive begins: as long for each state, so that it can be written again."""
    text = json.dumps(state, separators=(",", ":")).encode()
    assert len(text) <= pad, state
    return MAGIC + entry_bytes(STATE, time_ns, 0, b"", text.ljust(pad))
