"""Copies of stored messages under another subject, made by the stream's leader at apply."""

from collections.abc import Callable, Sequence

from jsctl.api.stream import Republish
from jsctl.api.times import format_time
from jsctl.broker.jetstream.streams.entries import Messages, StreamEntry
from jsctl.broker.store.record import Record
from jsctl.broker.subject.transforms import compile_transform

Copy = tuple[bytes, bytes, bytes]
"""(subject, headers, payload)."""
_START = b"NATS/1.0\r\n"
_END = b"\r\n"


def stored_records(entry: StreamEntry) -> list[Record]:
    """The messages that an entry of the stream's log stores; none for other entries."""
    if not isinstance(entry, Messages):
        return []
    skipped = set(entry.skipped)
    return [record for record in entry.frame.records if record.seq not in skipped]


class Republisher:
    """One stream's `republish`; make a new one when the config changes. Without a destination
    nothing is republished: messages would come back to their stream for ever."""

    __slots__ = ("_headers_only", "_stream", "_transform")

    def __init__(self, stream: str, republish: Republish) -> None:
        self._stream = stream.encode()
        self._headers_only = republish.headers_only
        source, destination = republish.src.encode(), republish.dest.encode()
        self._transform = compile_transform(source, destination) if destination else None

    def copies(
        self, records: Sequence[Record], last_for: Callable[[bytes], int | None]
    ) -> list[Copy]:
        """What to publish for messages that are about to be applied.

        `last_for` is asked for the last sequence of a subject before them.
        """
        made: list[Copy] = []
        if self._transform is None:
            return made
        last: dict[bytes, int] = {}
        for record in records:
            subject = record.subject
            before = last.get(subject)
            if before is None:
                before = last_for(subject) or 0
            last[subject] = record.seq
            target = self._transform.apply(subject)
            if target is not None:
                made.append(self._copy(target, record, before))
        return made

    def _copy(self, target: bytes, record: Record, before: int) -> Copy:
        head = record.headers[: -len(_END)] if record.headers else _START
        fields = (
            b"Nats-Stream: %b\r\nNats-Subject: %b\r\nNats-Sequence: %d\r\n"
            b"Nats-Time-Stamp: %b\r\nNats-Last-Sequence: %d\r\n"
        ) % (
            self._stream,
            record.subject,
            record.seq,
            format_time(record.time_ns).encode(),
            before,
        )
        payload = record.payload
        if self._headers_only:
            fields += b"Nats-Msg-Size: %d\r\n" % len(payload)
            payload = b""
        return target, head + fields + _END, payload
