"""Publishes an archive into a stream, in the archive's order, and goes on where it was stopped.

Theory of operation: one connection, many messages in flight, so the stream gets them in order.
Each carries its old sequence in a header and an id made of it; after an interruption the last
message of the stream says where to go on, and the ids keep stragglers from being stored twice.
A new stream of a gapless archive starts at the archive's first sequence, so that all sequences
stay. Times cannot be set; the old ones are in a header.
"""

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from jsctl.api.codec import decode
from jsctl.api.errors import ApiError
from jsctl.api.stream import RawStreamMsg, StreamConfig, StreamInfo
from jsctl.api.times import format_time
from jsctl.client.manager import Manager, as_request
from jsctl.client.stored import stored_answer
from jsctl.errors import Conflict, JsctlError, RequestFailed, Unreachable, UsageError
from jsctl.settings import Settings
from jsctl.spark.connection.jetstream import TEMPORARY_ERRORS, JetStream
from jsctl.spark.connection.wire import Wire, open_wire
from jsctl.spark.options import ConnectionOptions
from jsctl.spark.pipeline.archives.archive import ACTING, PREFIX, SEQ, SUBJECT, TIME, open_archive
from jsctl.spark.pipeline.layout import BatchDirectory

IN_FLIGHT_MAX = 4000
ACK_S = 10.0
BUFFER_BYTES = 256 * 1024
NO_RESPONDERS = 503
OUTAGE_S = 60.0
"""Without an acknowledgement for so long a restore gives up."""
ROWS_PER_READ = 4096
NO_STREAM, OVERLAP = 10059, 10065
Told = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class RestorePlan:
    """What a restore does. Sequences are those of the archive.

    `kept` tells whether messages keep their sequences; `made` whether the stream is new.
    """

    path: str
    stream: str
    made: bool
    kept: bool
    rows: int
    first_seq: int
    last_seq: int
    resume_after: int
    stream_last_seq: int
    config: dict[str, Any]

    def document(self) -> dict[str, object]:
        """As JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Restored:
    """What was done."""

    stream: str
    rows: int
    seconds: float
    kept: bool

    def document(self) -> dict[str, object]:
        """As JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Rule:
    """Subjects that become others: tokens of wildcards are carried over in their order."""

    pattern: tuple[str, ...]
    target: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> "Rule":
        """From `orders.*.>=copy.*.>`. Raises UsageError."""
        left, equals, right = text.partition("=")
        pattern, target = tuple(left.split(".")), tuple(right.split("."))
        wild = [[token for token in side if token in "*>"] for side in (pattern, target)]
        if not equals or not all((*pattern, *target)) or wild[0] != wild[1]:
            raise UsageError(
                f"--subject-map: '{text}' is not FROM=TO with the same wildcards on both sides",
                hints=("as orders.>=copy.orders.>",),
            )
        return cls(pattern, target)

    def apply(self, subject: str) -> str | None:
        """The new subject, None when the pattern does not match."""
        tokens = subject.split(".")
        taken: deque[str] = deque()
        for at, token in enumerate(self.pattern):
            if token == ">" and len(tokens) > at:
                taken.append(".".join(tokens[at:]))
                tokens = tokens[:at]
                return ".".join(taken.popleft() if t in "*>" else t for t in self.target)
            if at >= len(tokens) or token not in ("*", tokens[at]):
                return None
            if token == "*":
                taken.append(tokens[at])
        if len(tokens) != len(self.pattern):
            return None
        return ".".join(taken.popleft() if t in "*>" else t for t in self.target)


def mapped(subject: str, rules: Sequence[Rule]) -> str:
    """A subject after the first rule that matches it."""
    for rule in rules:
        found = rule.apply(subject)
        if found is not None:
            return found
    return subject


async def plan_restore(
    manager: Manager,
    path: Path,
    stream: str,
    *,
    rules: Sequence[Rule] = (),
    from_seq: int = 0,
    replicas: int = 0,
) -> RestorePlan:
    """What a restore would do. Raises Conflict when the stream holds other messages."""
    manifest = open_archive(BatchDirectory(path))
    files = [one for batch in manifest["batches"] for one in batch["files"] if one["rows"]]
    first = max(from_seq, min((one["first_seq"] for one in files), default=1))
    last = max((one["last_seq"] for one in files), default=0)
    gapless = (
        int(manifest["rows"]) == last - min((one["first_seq"] for one in files), default=1) + 1
    )
    config = _config(manifest["about"]["config"], stream, rules, replicas)
    info = await _maybe_stream(manager, stream)
    if info is None:
        config["first_seq"] = first if gapless and first > 1 else 0
        return RestorePlan(
            str(path), stream, True, gapless, int(manifest["rows"]), first, last, 0, 0, config
        )
    resume = await _resume_after(manager, info, first)
    kept = gapless and info.state.last_seq == (resume or first - 1)
    return RestorePlan(
        str(path),
        stream,
        False,
        kept,
        int(manifest["rows"]),
        first,
        last,
        resume,
        info.state.last_seq,
        config,
    )


def restore(
    settings: Settings, plan: RestorePlan, rules: Sequence[Rule], *, rate: int = 0, told: Told
) -> Restored:
    """Publish; the stream must be there. A server that goes away is waited for.

    Raises Unreachable after too long, Conflict when somebody else publishes to the stream.
    Running it again goes on behind the stream's last message.
    """
    started = time.monotonic()
    sender = _Sender(settings, plan, rate)
    try:
        _publish_all(settings, plan, rules, sender, told)
    finally:
        sender.drop()
    return Restored(plan.stream, sender.confirmed, time.monotonic() - started, plan.kept)


def _publish_all(
    settings: Settings, plan: RestorePlan, rules: Sequence[Rule], sender: "_Sender", told: Told
) -> None:
    """All messages that are left; after an outage behind the last one that arrived."""
    connection = ConnectionOptions(settings, int(OUTAGE_S * 1e9))
    after, rows, heard = plan.resume_after, 0, time.monotonic()
    while True:
        try:
            for row in _rows(Path(plan.path), max(plan.first_seq, after + 1)):
                sender.send(*_message(row, rules))
                if sender.confirmed > rows:
                    rows, heard = sender.confirmed, time.monotonic()
                    told(rows, sender.last)
            sender.finish()
            told(sender.confirmed, plan.last_seq)
            return
        except (Unreachable, TimeoutError) as error:
            sender.drop()
            if time.monotonic() - heard > OUTAGE_S:
                raise Unreachable(
                    str(error) or "no acknowledgement in time", hints=_AGAIN
                ) from None
            with JetStream(connection) as js:
                reached, sender.floor = _reached(js, plan.stream)
                # A stream may have let go of what it stored: what it said of that counts, too.
                after = max(after, reached, sender.last)


_AGAIN = ("run the same command again, it goes on behind the stream's last message",)


def _reached(js: JetStream, stream: str) -> tuple[int, int]:
    """The archive's sequence of the stream's last message, and its own; 0 for an empty stream."""
    info = js.info(stream)
    if not info.state.messages:
        return 0, info.state.last_seq
    answer = js.ask("stream_msg_get", stream, body={"last_by_subj": ">"})
    message = decode(RawStreamMsg, answer["message"])
    return _original_seq(message.hdrs), info.state.last_seq


def _config(
    document: Mapping[str, Any], stream: str, rules: Sequence[Rule], replicas: int
) -> dict[str, Any]:
    """The configuration of the archived stream for a new one that takes publishes."""
    config = as_request(decode(StreamConfig, document))
    subjects = tuple(mapped(subject, rules) for subject in config.subjects) or (f"{stream}.>",)
    found = replace(config, name=stream, subjects=subjects)
    encoded = dict(document)
    for key in ("mirror", "sources", "sealed", "first_seq", "republish", "subject_transform"):
        encoded.pop(key, None)
    encoded.update(name=stream, subjects=list(found.subjects), metadata=dict(found.metadata))
    encoded["num_replicas"] = replicas or encoded.get("num_replicas", 1)
    return encoded


async def _maybe_stream(manager: Manager, stream: str) -> StreamInfo | None:
    try:
        return await manager.stream_info(stream)
    except ApiError as error:
        if error.err_code == NO_STREAM:
            return None
        raise


async def make_stream(manager: Manager, plan: RestorePlan) -> None:
    """Make the stream of a plan. Raises RequestFailed."""
    try:
        await manager.create_stream(decode(StreamConfig, plan.config))
    except ApiError as error:
        hints: tuple[str, ...] = ()
        if error.err_code == OVERLAP:
            hints = ("another stream takes these subjects: --subject-map 'orders.>=copy.orders.>'",)
        raise RequestFailed(error, prefix=f"could not make {plan.stream}", hints=hints) from None


async def _resume_after(manager: Manager, info: StreamInfo, first: int) -> int:
    """The archive's sequence of the stream's last message; 0 for an empty stream."""
    if not info.state.messages:
        return 0
    message = await manager.message(info.config.name, last_for=">")
    found = _original_seq(message.hdrs)
    if found:
        return found
    raise Conflict(
        f"stream {info.config.name} has messages that no restore has put there",
        hints=("choose a new stream name, or purge the stream",),
    )


def _original_seq(headers: bytes) -> int:
    """What the header of a restored message says, 0 without it."""
    for line in headers.decode("utf-8", "replace").split("\r\n"):
        name, _, value = line.partition(":")
        if name == SEQ and value.strip().isdigit():
            return int(value)
    return 0


def _rows(root: Path, first: int) -> Iterator[dict[str, Any]]:
    """The rows of an archive by sequence, a few thousand in memory at a time."""
    import pyarrow.parquet as parquet

    directory = BatchDirectory(root)
    files = [file for file in directory.files() if file.rows and file.last_seq >= first]
    files.sort(key=lambda file: file.first_seq)
    for before, after in pairwise(files):
        if after.first_seq <= before.last_seq:
            raise JsctlError(f"{after.path} overlaps {before.path}: the archive is damaged")
    for file in files:
        last = 0
        with parquet.ParquetFile(root / file.path) as opened:
            for batch in opened.iter_batches(ROWS_PER_READ):
                for row in batch.to_pylist():
                    if row["seq"] <= last:
                        raise JsctlError(f"{file.path} is not in order: the archive is damaged")
                    last = row["seq"]
                    if last >= first:
                        yield row


def _message(
    row: Mapping[str, Any], rules: Sequence[Rule]
) -> tuple[str, list[tuple[str, str]], bytes, int]:
    """Subject, header lines, payload and sequence of a row as it is published."""
    seq = int(row["seq"])
    headers = [(SEQ, str(seq)), (TIME, format_time(row["ts_ns"]))]
    subject = mapped(row["subject"], rules)
    if subject != row["subject"]:
        headers.append((SUBJECT, row["subject"]))
    for name, values in row["headers"] or ():
        kept = f"{PREFIX}{name}" if name.startswith((*ACTING, PREFIX)) else name
        headers += [(kept, value) for value in values]
    return subject, headers, row["data"] or b"", seq


class _Sender:
    """Publishes in order with many messages in flight, and checks every acknowledgement."""

    def __init__(self, settings: Settings, plan: RestorePlan, rate: int) -> None:
        self.settings = settings
        self.plan = plan
        self.rate = rate
        self.confirmed = 0
        self.last = 0
        self.floor = plan.stream_last_seq
        """The stream's last sequence before anything was sent on the present connection."""
        self._wire: Wire | None = None
        self._waiting: deque[tuple[bytes, int]] = deque()
        self._buffer: list[bytes] = []
        self._buffered = 0
        self._number = 0
        self._started = time.monotonic()

    def send(self, subject: str, headers: list[tuple[str, str]], data: bytes, seq: int) -> None:
        """Publish one message; waits for the rate, and when too many are in flight."""
        if self.rate:
            due = self._started + self._number / self.rate
            if due > time.monotonic():
                self._flush()
                self._wait(due)
        if self._wire is None:
            self._wire = open_wire(self.settings)
        self._number += 1
        reply = f"{self._wire.inbox}.r{self._number}".encode()
        block = _block([("Nats-Msg-Id", f"{self.plan.stream}-{seq}"), *headers])
        limit, size = self._wire.info.get("max_payload"), len(block) + len(data)
        if isinstance(limit, int) and size > limit:
            raise Conflict(
                f"message {seq} has {size} bytes with what it carries of its origin, "
                f"the server takes {limit}",
                hints=("raise max_payload at the server",),
            )
        line = b"HPUB %s %s %d %d\r\n" % (
            subject.encode(),
            reply,
            len(block),
            len(block) + len(data),
        )
        self._buffer += [line, block, data, b"\r\n"]
        self._buffered += len(line) + len(block) + len(data)
        self._waiting.append((reply, seq))
        if self._buffered >= BUFFER_BYTES or self.rate:
            self._flush()
        if len(self._waiting) >= IN_FLIGHT_MAX:
            self._confirm(IN_FLIGHT_MAX // 2)

    def finish(self) -> None:
        """Wait for all acknowledgements, then hang up."""
        self._confirm(0)
        self.drop()

    def drop(self) -> None:
        """Forget the connection and what was in flight on it."""
        if self._wire is not None:
            self._wire.close()
        self._wire = None
        self._waiting.clear()
        self._buffer.clear()
        self._buffered = 0

    def _flush(self) -> None:
        if self._buffer and self._wire is not None:
            self._wire.send(b"".join(self._buffer))
            self._buffer.clear()
            self._buffered = 0

    def _confirm(self, left: int) -> None:
        """Take acknowledgements in their order until only so many are missing."""
        self._flush()
        while len(self._waiting) > left and self._wire is not None:
            self._take(self._wire, time.monotonic() + ACK_S)

    def _wait(self, until: float) -> None:
        """Take acknowledgements until a time, and answer pings: a slow rate is no silence."""
        try:
            while self._wire is not None:
                self._take(self._wire, until)
        except TimeoutError:
            return
        time.sleep(max(0.0, until - time.monotonic()))

    def _take(self, wire: Wire, deadline: float) -> None:
        """One message of the server, most likely the next acknowledgement."""
        answer = wire.receive(deadline)
        if not self._waiting or answer.subject != self._waiting[0][0]:
            return
        if answer.status == NO_RESPONDERS:
            raise Unreachable(f"nobody stores messages for {self.plan.stream}")
        _, seq = self._waiting.popleft()
        self._check(answer.payload, seq)
        self.confirmed, self.last = self.confirmed + 1, seq

    def _check(self, payload: bytes, seq: int) -> None:
        try:
            answer = stored_answer(payload)
        except ApiError as error:
            if error.err_code in TEMPORARY_ERRORS:
                raise Unreachable(f"message {seq}: {error.description}") from None
            raise Conflict(f"message {seq} was refused: {error.description}") from None
        except JsctlError as error:
            raise Conflict(
                f"message {seq}: {error}", hints=("something else listens to its subject",)
            ) from None
        if answer.get("stream") != self.plan.stream:
            raise Conflict(f"message {seq} went to stream {answer.get('stream')}")
        stored = answer.get("seq")
        if answer.get("duplicate") and isinstance(stored, int) and stored <= self.floor:
            raise Conflict(
                f"message {seq} was stored before and is deleted; the stream still knows its id",
                hints=("wait until the stream's duplicate window is over",),
            )
        if self.plan.kept and stored != seq:
            raise Conflict(
                f"message {seq} was stored as {stored}",
                hints=("somebody else publishes to the stream",),
            )


def _block(headers: list[tuple[str, str]]) -> bytes:
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers)
    return f"NATS/1.0\r\n{lines}\r\n".encode()
