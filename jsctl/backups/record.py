"""A backup of what a subscription delivers, message by message as it comes.

Messages of a stream keep their sequences, and what comes again is passed over; others are numbered
from 1. How many there are is written at the end, into the room that the head has for it.
"""

from collections.abc import Mapping
from typing import BinaryIO

from jsctl.api.times import format_time
from jsctl.backups.archive import HEAD_PAD, MessageEntry, end_bytes, state_bytes
from jsctl.backups.directory import Description
from jsctl.backups.entries import entry_bytes
from jsctl.backups.s2 import Packed, plain_chunk
from jsctl.dataclass import dataclass
from jsctl.errors import JsctlError

NEVER = "0001-01-01T00:00:00Z"


@dataclass(frozen=True, slots=True)
class Origin:
    """What was subscribed to; `stream` is empty where there was none."""

    subjects: tuple[str, ...]
    stream: str
    started_ns: int


class Recorder:
    """Writes into an archive's file; `finish` tells what `backup.json` is to say."""

    def __init__(self, out: BinaryIO, config: Mapping[str, object], origin: Origin) -> None:
        self.messages = self.bytes = 0
        self._first = self._last = 0
        self._origin = origin
        self._description = Description(config)
        self._out = out
        self._head()
        self._packed = Packed(out)

    def _head(self) -> None:
        state = {**self._state(), "first_seq": max(self._first, 1)}
        self._out.write(plain_chunk(state_bytes(self._origin.started_ns, state, pad=HEAD_PAD)))

    def _state(self) -> dict[str, object]:
        return {
            "messages": self.messages,
            "bytes": self.bytes,
            "first_seq": max(self._first, 1),
            "first_ts": NEVER,
            "last_seq": self._last,
            "last_ts": NEVER,
            "consumer_count": 0,
        }

    def add(
        self, subject: str, sequence: int, time_ns: int, headers: bytes, payload: bytes
    ) -> None:
        """A message. Raises JsctlError for one of a stream that does not say its sequence."""
        if not self._origin.stream:
            sequence = self._last + 1
        elif not sequence:
            raise JsctlError(f"message on {subject} carries no stream sequence")
        elif sequence <= self._last:
            return
        self._packed.write(entry_bytes(subject, time_ns, sequence, headers, payload))
        entry = MessageEntry(subject, sequence, time_ns, headers, payload)
        self.bytes += entry.stored_bytes(memory=self._description.in_memory)
        self.messages += 1
        self._first, self._last = self._first or sequence, sequence

    def finish(self, ended_ns: int, dropped: int) -> Description:
        """Ends the archive; `dropped` messages were lost on their way."""
        self._packed.write(end_bytes())
        self._packed.end()
        self._out.seek(0)
        self._head()
        origin = self._origin
        source: dict[str, object] = {"subjects": list(origin.subjects)}
        source |= {"stream": origin.stream} if origin.stream else {}
        source["started"], source["ended"] = format_time(origin.started_ns), format_time(ended_ns)
        source |= {"dropped": dropped} if dropped else {}
        return Description(self._description.config, self._state(), None, source)
