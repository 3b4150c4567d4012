"""Reads a range by direct gets: nothing is kept at the server, any replica answers.

One request at a time, each from behind the last message seen: a batch counts messages, not
sequences, so requests sent ahead would overlap wherever there are holes. With several filters
the server cannot choose, so everything is fetched and chosen here.
"""

import re
from collections.abc import Callable

from jsctl.api.codec import dumps
from jsctl.api.requests import MsgGetRequest
from jsctl.api.subjects import api_subject
from jsctl.errors import JsctlError
from jsctl.spark.connection.jetstream import JetStream
from jsctl.spark.connection.wire import Message
from jsctl.spark.scan.range import Chunk, Interrupted, Range, Reader

BATCH = 1_000
BATCH_BYTES = 4 << 20
"""More makes the server lock out publishers, or close the connection as too slow."""
_ADDED = re.compile(
    rb"(.*)Nats-Stream: ([^\r\n]*)\r\nNats-Subject: ([^\r\n]*)\r\nNats-Sequence: (\d+)\r\n"
    rb"Nats-Time-Stamp: ([^\r\n]*)\r\n(?:Nats-Num-Pending: (\d+)\r\n)?"
    rb"(?:Nats-Last-Sequence: \d+\r\n)?(?:Nats-UpTo-Sequence: \d+\r\n)?(.*)",
    re.DOTALL,
)
"""What the server adds to the stored headers, in its order."""
_BARE = b"NATS/1.0\r\n"
_PLAIN = (
    rb"HMSG (\S+) %b (\d+) (\d+)\r\n"
    rb"(NATS/1\.0\r\nNats-Stream: ([^\r\n]*)\r\nNats-Subject: ([^\r\n]*)\r\n"
    rb"Nats-Sequence: (\d+)\r\nNats-Time-Stamp: ([^\r\n]*)\r\n(?:Nats-Num-Pending: \d+\r\n)?"
    rb"(?:Nats-Last-Sequence: \d+\r\n)?(?:Nats-UpTo-Sequence: \d+\r\n)?\r\n)"
)
"""A whole message without headers of its own: most are such, and one expression tells all."""


class DirectReader(Reader):
    """Batches of messages, one request at a time."""

    def __init__(self, js: JetStream, wanted: Range, first: int) -> None:
        super().__init__(js, wanted, first)
        self._wire = js.wire
        self._subject = api_subject("direct_get", wanted.stream, prefix=js.prefix)
        self._inbox = f"{self._wire.inbox}d"
        self._sid = self._wire.subscribe(f"{self._inbox}.*")
        self._plain = re.compile(_PLAIN % re.escape(self._sid)).match
        self._count = 0
        self._matches = subject_matcher(wanted.filters) if len(wanted.filters) > 1 else None

    def close(self) -> None:
        """Stop listening unless the connection is gone."""
        self.js.unsubscribe(self._wire, self._sid)

    def chunk(self) -> Chunk:
        """One batch. Empty when the server that answered knows of nothing more."""
        while True:
            chunk = Chunk()
            before = self.next
            ended = self._batch(chunk)
            if chunk.seqs or ended or self.next >= self.range.end or self.next == before:
                return chunk

    def _batch(self, chunk: Chunk) -> bool:
        """Ask for the next messages and take them; whether there were none at all."""
        self._count += 1
        inbox = f"{self._inbox}.{self._count}".encode()
        filters = self.range.filters
        request = MsgGetRequest(
            seq=max(self.next, 1),
            next_by_subj=filters[0] if len(filters) == 1 else "",
            batch=BATCH,
            max_bytes=BATCH_BYTES,
        )
        body = dumps(request)
        self._wire.send(b"PUB %s %s %d\r\n%s\r\n" % (self._subject, inbox, len(body), body))
        while True:
            self._take(chunk, inbox)
            message = self._wire.receive()
            if message.subject != inbox:
                continue
            status = message.status
            if status == 0:
                if self._add(chunk, message):
                    return False
            elif status == 204:
                return False
            elif status == 404:
                return True
            else:
                raise self._refused(message)

    def _take(self, chunk: Chunk, inbox: bytes) -> None:
        """All messages without headers that are here, up to the first other one."""
        wire, match = self._wire, self._plain
        data, at = wire.data, wire.at
        heads: list[tuple[bytes, ...]] = []
        payloads: list[bytes] = []
        while (found := match(data, at)) is not None:
            groups = found.groups()
            body = found.end()
            stop = body + int(groups[2]) - int(groups[1])
            if stop + 2 > len(data) or len(groups[3]) != int(groups[1]):
                break
            at = stop + 2
            if groups[0] == inbox:
                heads.append(groups)
                payloads.append(data[body:stop])
        wire.at = at
        if heads:
            self._add_all(chunk, heads, payloads)

    def _add_all(self, chunk: Chunk, heads: list[tuple[bytes, ...]], payloads: list[bytes]) -> None:
        _, _, _, _, streams, subjects, seqs, times = zip(*heads, strict=True)
        for stream in set(streams):
            self._check_stream(stream)
        self.next = int(seqs[-1]) + 1
        rows = list(zip(subjects, map(int, seqs), times, payloads, strict=True))
        if self._matches is not None:
            rows = [row for row in rows if self._matches(row[0])]
        chunk.subjects += [row[0] for row in rows]
        chunk.seqs += [row[1] for row in rows]
        chunk.times += [row[2] for row in rows]
        chunk.heads += [b""] * len(rows)
        chunk.payloads += [row[3] for row in rows]

    def _check_stream(self, stream: bytes) -> None:
        if stream != self.range.stream.encode():
            raise Interrupted(
                f"mirror {stream.decode()} answers direct gets of stream {self.range.stream}",
                hints=("a mirror may keep less: use readMode consumer",),
            )

    def _refused(self, message: Message) -> JsctlError:
        stream = self.range.stream
        if message.status == 503:
            return Interrupted(
                f"stream {stream}: nobody answers direct gets",
                hints=(f"`jsctl stream edit {stream} --allow-direct`, or readMode consumer",),
            )
        return Interrupted(f"stream {stream}: {message.status} {message.description}")

    def _add(self, chunk: Chunk, message: Message) -> bool:
        """One message; whether the batch ends with it (old servers send no end of batch)."""
        found = _ADDED.fullmatch(message.headers)
        if found is None:
            raise JsctlError(
                f"stream {self.range.stream}: an answer to a direct get without its headers"
            )
        before, stream, subject, seq, time_text, _, behind = found.groups()
        self._check_stream(stream)
        self.next = int(seq) + 1
        if self._matches is not None and not self._matches(subject):
            return False
        stored = before + behind
        chunk.subjects.append(subject)
        chunk.seqs.append(int(seq))
        chunk.times.append(time_text)
        chunk.heads.append(b"" if stored == _BARE + b"\r\n" else stored)
        chunk.payloads.append(message.payload)
        return False


def subject_matcher(filters: tuple[str, ...]) -> Callable[[bytes], object]:
    """Tells whether a subject matches any of some filters."""
    words = {"*": r"[^.]+", ">": r".+"}
    patterns = (
        r"\.".join(words.get(token) or re.escape(token) for token in one.split("."))
        for one in filters
    )
    return re.compile("|".join(patterns).encode()).fullmatch
