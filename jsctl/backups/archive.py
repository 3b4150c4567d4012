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
from dataclasses import dataclass
from typing import BinaryIO

from jsctl.api import jsontext
from jsctl.api.codec import DecodeError
from jsctl.backups.s2 import BrokenStream, blocks

MAGIC = b"NATSARC1"
STATE = "state.json"
CONSUMERS = "consumers/"
NAME_BYTES_MAX = 1 << 20
ENTRY_BYTES_MAX = 256 * 1024 * 1024
"""Four times the largest payload that a server can be told to take."""
VARINT_BYTES_MAX = 10
HEAD_PAD = 320
"""Room for the state in an archive's head, so that it can be written again."""


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


class _Window:
    """The bytes of a stream of blocks, as many at a time as are asked for."""

    def __init__(self, file: BinaryIO) -> None:
        self._blocks = blocks(file)
        self._held = b""
        self._at = 0

    def take(self, count: int) -> bytes:
        """So many bytes, fewer at the end."""
        if len(self._held) - self._at < count:
            parts, have = [self._held[self._at :]], len(self._held) - self._at
            for block in self._blocks:
                parts.append(block)
                have += len(block)
                if have >= count:
                    break
            self._held, self._at = b"".join(parts), 0
        found = self._held[self._at : self._at + count]
        self._at += len(found)
        return found

    def varint(self) -> int | None:
        """The next number; None at the end. Raises BrokenStream."""
        value = 0
        for at in range(VARINT_BYTES_MAX):
            byte = self.take(1)
            if not byte:
                if at:
                    raise BrokenStream("archive: invalid archive stream")
                return None
            value |= (byte[0] & 0x7F) << 7 * at
            if byte[0] < 0x80:
                return value
        raise BrokenStream("archive: invalid archive stream")


class ArchiveReader:
    """The entries of an archive, checked as they come. `last` names the last good one."""

    def __init__(self, file: BinaryIO) -> None:
        self._window = _Window(file)
        self.last = "no entries"
        self.count = 0

    def __iter__(self) -> Iterator[Entry]:
        """State, consumers, messages; ends at the archive's own end. Raises BrokenStream."""
        if self._window.take(len(MAGIC)) != MAGIC:
            raise NotABackup(
                "not a NATS Server 2.15 stream backup: archive: invalid archive stream"
            )
        state = self._state()
        yield state
        for left in range(_number(state.state, "consumer_count"), 0, -1):
            yield self._consumer(left)
        last = _number(state.state, "first_seq") - 1
        while (message := self._message(last)) is not None:
            last = message.sequence
            yield message

    def _entry(self) -> tuple[str, int, int, int, bytes]:
        """Name, time, sequence, how much of the body is headers, body."""
        numbers = [self._window.varint() for _ in range(5)]
        if None in numbers:
            if numbers[0] is None:
                raise BrokenStream(
                    f"backup ends before the end-of-backup sentinel after {self.last}: EOF"
                )
            raise BrokenStream("archive: invalid archive stream")
        name_bytes, zigzag, sequence, headers, payload = (number or 0 for number in numbers)
        if name_bytes > NAME_BYTES_MAX or headers + payload > ENTRY_BYTES_MAX:
            raise BrokenStream(f"an entry of the archive is too large after {self.last}")
        name, body = self._window.take(name_bytes), self._window.take(headers + payload)
        if len(name) < name_bytes or len(body) < headers + payload:
            raise BrokenStream(f"the archive is cut off within an entry after {self.last}")
        return name.decode("utf-8", "replace"), _signed(zigzag), sequence, headers, body

    def _good(self, what: str) -> None:
        self.count += 1
        self.last = f"entry #{self.count} {what}"

    def _state(self) -> StateEntry:
        name, time_ns, _, _, body = self._entry()
        if name != STATE:
            raise BrokenStream(f'expected {STATE} first, found "{name}"')
        state = _document(body, f"error in {STATE}")
        if _number(state, "consumer_count") < 0:
            raise BrokenStream(f"error in {STATE}: negative consumer_count")
        self._good(f"state {STATE}")
        return StateEntry(time_ns, state)

    def _consumer(self, left: int) -> ConsumerEntry:
        name, time_ns, _, _, body = self._entry()
        if not name.startswith(CONSUMERS):
            raise BrokenStream(f'expected consumer entry ({left} remaining), found "{name}"')
        short = name.removeprefix(CONSUMERS)
        document = _document(body, f'failed to decode consumer "{short}" state')
        for part in ("config", "state"):
            if not isinstance(document.get(part), dict):
                raise BrokenStream(f'consumer "{short}" is missing {part}')
        self._good(f"consumer {short}")
        return ConsumerEntry(short, time_ns, body)

    def _message(self, last: int) -> MessageEntry | None:
        name, time_ns, sequence, headers, body = self._entry()
        if not sequence:
            if time_ns or body:
                raise BrokenStream(
                    f'expected message sequence, found entry "{name}" with sequence 0 '
                    f"after {self.last}"
                )
            self._good("end")
            return None
        if sequence <= last:
            raise BrokenStream(f"message sequence {sequence} out of order after {self.last}")
        self._good(f"message {name} seq {sequence}")
        return MessageEntry(name, sequence, time_ns, body[:headers], body[headers:])


def _document(body: bytes, problem: str) -> dict[str, object]:
    try:
        return jsontext.parse_object(body)
    except DecodeError as error:
        raise BrokenStream(f"{problem}: {error}") from None


def _number(document: dict[str, object], key: str) -> int:
    value = document.get(key, 0)
    return value if isinstance(value, int) else 0


def _signed(zigzag: int) -> int:
    return zigzag >> 1 ^ -(zigzag & 1)


def entry_bytes(name: str, time_ns: int, sequence: int, headers: bytes, payload: bytes) -> bytes:
    """An entry as it is written."""
    encoded = name.encode()
    numbers = (len(encoded), time_ns << 1 ^ time_ns >> 63, sequence, len(headers), len(payload))
    return b"".join((*map(_varint, numbers), encoded, headers, payload))


def end_bytes() -> bytes:
    """The entry that ends an archive."""
    return entry_bytes("", 0, 0, b"", b"")


def state_bytes(time_ns: int, state: dict[str, object], *, pad: int) -> bytes:
    """How an archive begins: as long for each state, so that it can be written again."""
    text = json.dumps(state, separators=(",", ":")).encode()
    assert len(text) <= pad, state
    return MAGIC + entry_bytes(STATE, time_ns, 0, b"", text.ljust(pad))


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
