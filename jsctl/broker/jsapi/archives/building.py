"""A stream built from an archive as its bytes come, off the loop and away from every group.

Nothing that an archive says is believed: lengths, names, numbers and checksums are looked at
before they are used, and what they lead to is bounded. What is built belongs to the caller alone
until it is whole; then it is an ordinary stream, with its limits applied.
"""

from dataclasses import field

from jsctl.api.codec import dumps
from jsctl.api.consumer import ConsumerConfig
from jsctl.api.times import parse_time
from jsctl.api.words import Retention
from jsctl.backups.archive import MAGIC, ConsumerEntry, Entry, EntryParser, MessageEntry, StateEntry
from jsctl.backups.s2 import BlockDecoder, BrokenStream
from jsctl.backups.tar import (
    BoundsEntry,
    ConfigEntry,
    OldEntry,
    OtherEntry,
    RemovedEntry,
    TarParser,
)
from jsctl.broker.accel.choice import archive_loops
from jsctl.broker.errors import BrokerError, SyncFailed
from jsctl.broker.jetstream.chains.chain_key import CHAIN_KEY
from jsctl.broker.jetstream.consumers.state import ConsumerState
from jsctl.broker.jetstream.streams.checks import HEADER_BYTES_MAX
from jsctl.broker.jetstream.streams.entries import Config
from jsctl.broker.jetstream.streams.publish_headers import MSG_ID, TTL, nats_fields, parse_ttl
from jsctl.broker.jetstream.streams.stream import Stream
from jsctl.broker.jetstream.streams.ttl import NEVER
from jsctl.broker.jsapi.archives.archived_chain import STATE_KEY, ChainBuild
from jsctl.broker.jsapi.archives.consumer_documents import SEQUENCE_MAX, parsed
from jsctl.broker.store.frame import frame_of
from jsctl.broker.store.record import Row
from jsctl.broker.store.seqset import SeqSet
from jsctl.broker.store.transfer import TransferBounds
from jsctl.broker.subject.validity import SUBJECT_BYTES_MAX, is_valid_literal
from jsctl.dataclass import dataclass

CONTENT_INDEX, CONFIG_INDEX = 1, 2
"""Where in the group's log the messages stand, and the configuration behind them."""
ROWS_MAX = 1024
ROW_BYTES_AIMED = 256 * 1024
ENTRIES_PER_STEP = 512
STEPS_PER_TURN = 8
"""Of one restore on the disk thread at a time: what others have there waits no longer."""
CONSUMER_BYTES_MAX = 64 * 1024 * 1024
"""Of all consumers of an archive together."""
REMOVED_MAX = 16 * 1024 * 1024
"""Removals that an older archive names one by one."""
TIME_MAX_NS = (1 << 63) - 1
_HEADERS_BEGIN, _HEADERS_END = b"NATS/1.0", b"\r\n\r\n"


@dataclass(slots=True)
class ArchivedConsumer:
    """A consumer of an archive."""

    name: str
    config: ConsumerConfig
    state: ConsumerState


@dataclass(slots=True)
class RestoreBuild:
    """See the module. `stream` is empty; `now_ns`: what has expired by then is left out."""

    stream: Stream
    now_ns: int
    payload_bytes_max: int
    consumers_max: int
    consumers: list[ArchivedConsumer] = field(default_factory=list)
    problem: str = ""
    """Why this archive is no stream. Nothing more is done then."""
    more: bool = False
    """There is work left for the bytes that were fed."""
    size_bytes: int = 0
    """What is stored so far."""
    _decoder: BlockDecoder = field(default_factory=BlockDecoder)
    _begin: bytes = b""
    """What came before it was known of which form the archive is."""
    _parser: EntryParser | TarParser | None = None
    _removed: SeqSet = field(default_factory=SeqSet)
    _removed_count: int = 0
    _chain: ChainBuild | None = None
    """In a stream that is to have one."""
    _rows: list[Row] = field(default_factory=list)
    _row_bytes: int = 0
    _names: set[str] = field(default_factory=set)
    """Of `consumers`."""
    _consumer_bytes: int = 0
    _first_seq: int = 1
    _last_seq: int = 0
    _last_time_ns: int = 0
    _newest_ns: int = 0

    def __post_init__(self) -> None:
        if CHAIN_KEY in self.stream.config.metadata:
            self._chain = ChainBuild()
        empty = TransferBounds(0, 1, 0, 0, 0, 0, SeqSet())
        self.stream.store.import_start(empty)

    def feed(self, chunk: bytes) -> None:
        """More of the archive; `work` then, until there is no `more`."""
        assert not self.more, "bytes are worked off before others come"
        if not self._is_over:
            self._decoder.feed(chunk)
            self.more = True

    @property
    def _is_over(self) -> bool:
        """Whether the archive's own end was met: what follows counts for nothing."""
        return self._parser is not None and self._parser.ended

    def work(self) -> None:
        """A bounded amount of work. Raises SyncFailed alone; what else goes wrong is the
        `problem`."""
        try:
            for _ in range(STEPS_PER_TURN):
                if not self.more:
                    return
                self._step()
        except SyncFailed:
            raise
        except (BrokenStream, BrokerError) as error:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        self.problem, self.more = str(error), False

    def _step(self) -> None:
        for _ in range(ENTRIES_PER_STEP):
            if self._take_together():
                return
            entry = None if self._parser is None else self._parser.next()
            if entry is None:
                break
            self._take(entry)
        else:
            return
        block = None if self._is_over else self._decoder.step()
        if block is None:
            self.more = False
        elif self._parser is not None:
            self._parser.feed(block)
        else:
            self._choose(block)

    def _choose(self, block: bytes) -> None:
        """The first bytes say of which form an archive is."""
        self._begin += block
        if len(self._begin) < len(MAGIC):
            return
        kind = EntryParser if self._begin.startswith(MAGIC) else TarParser
        self._parser = kind(self.payload_bytes_max, errors="surrogateescape")
        self._parser.feed(self._begin)
        self._begin = b""

    def _take_together(self) -> bool:
        """Take messages that are there as a whole; whether there were some. The first one of a
        block is mostly not: it began with the block before."""
        if not isinstance(self._parser, EntryParser):
            return False
        rows = self._parser.rows(archive_loops().read_messages, ENTRIES_PER_STEP)
        if rows:
            self._messages(rows)
        return bool(rows)

    def _take(self, entry: Entry | OldEntry) -> None:
        match entry:
            case MessageEntry(subject, seq, time_ns, headers, payload):
                name = subject.encode("utf-8", "surrogateescape")
                self._message((seq, time_ns, name, headers, payload))
            case ConsumerEntry():
                self._consumer(entry)
            case StateEntry():
                self._state(entry)
            case RemovedEntry():
                self._remove(entry.sequence)
            case ConfigEntry():
                if entry.config.get("name") != self.stream.name:
                    raise BrokenStream("stream names do not match")
            case BoundsEntry():
                self._bound(entry.first_seq, entry.last_seq)
                self._last_time_ns = max(entry.last_time_ns, 0)
            case OtherEntry():
                pass

    def _remove(self, seq: int) -> None:
        """A message is removed, perhaps one that comes later."""
        self._removed_count += 1
        if seq > SEQUENCE_MAX or self._removed_count > REMOVED_MAX:
            raise BrokenStream("sequences of removed messages are out of range")
        self._removed.add(seq)
        self._last_seq = max(self._last_seq, seq)

    def _bound(self, first: int, last: int) -> None:
        if not (0 <= first <= SEQUENCE_MAX and 0 <= last <= SEQUENCE_MAX):
            raise BrokenStream("sequences of the state are out of range")
        self._first_seq, self._last_seq = max(first, 1), max(self._last_seq, last)

    def _state(self, entry: StateEntry) -> None:
        numbers = [entry.state.get(key, 0) for key in ("first_seq", "last_seq", "consumer_count")]
        first, last, consumers = (one if isinstance(one, int) else -1 for one in numbers)
        self._bound(first, last)
        if self._chain is not None:
            self._chain.told(entry.state.get(STATE_KEY))
        if not 0 <= consumers <= self.consumers_max:
            raise BrokenStream(f"the archive names {consumers} consumers")
        try:
            told_ns = parse_time(str(entry.state.get("last_ts", "")))
            self._last_time_ns = min(max(told_ns, 0), TIME_MAX_NS)
        except ValueError:
            self._last_time_ns = 0

    def _consumer(self, entry: ConsumerEntry) -> None:
        self._consumer_bytes += len(entry.data)
        if self._consumer_bytes > CONSUMER_BYTES_MAX:
            raise BrokenStream("the consumers of the archive are too large")
        if len(self.consumers) >= self.consumers_max:
            raise BrokenStream("the archive has too many consumers")
        if entry.name in self._names:
            raise BrokenStream(f'consumer "{entry.name}" is there twice')
        self._names.add(entry.name)
        config, state = parsed(entry.name, entry.data)
        self.consumers.append(ArchivedConsumer(entry.name, config, state))

    def _messages(self, rows: list[Row]) -> None:
        """Messages in a row: without headers there is little to be looked at in each."""
        seqs, times, subjects, headers, payloads = zip(*rows, strict=True)
        sizes = list(map(len, payloads))
        sound = (
            self._chain is None
            and not any(headers)
            and seqs[-1] <= SEQUENCE_MAX
            and 0 < min(times) <= max(times) <= TIME_MAX_NS
            and not 0 <= self.stream.config.max_msg_size < max(sizes)
            and all(map(_is_subject, {*subjects}))
        )
        if not sound:
            for row in rows:
                self._message(row)
            return
        self._newest_ns = max(self._newest_ns, *times)
        self._last_seq = max(self._last_seq, seqs[-1])
        self.stream.last_msg_id = b""
        self._keep(rows, sum(sizes) + sum(map(len, subjects)))

    def _message(self, row: Row) -> None:
        seq, time_ns, subject, headers, payload = row
        if seq > SEQUENCE_MAX or not 0 < time_ns <= TIME_MAX_NS:
            raise BrokenStream(f"sequence or time of message sequence {seq} is out of range")
        if not _is_subject(subject):
            raise BrokenStream(f"message sequence {seq} has an invalid subject")
        size_max = self.stream.config.max_msg_size
        if headers and not (headers.startswith(_HEADERS_BEGIN) and headers.endswith(_HEADERS_END)):
            raise BrokenStream(f"message sequence {seq} has invalid headers")
        if len(headers) > HEADER_BYTES_MAX:
            raise BrokenStream(f"message sequence {seq} has too large headers")
        if 0 <= size_max < len(headers) + len(payload):
            raise BrokenStream(f"message sequence {seq} exceeds maximum message size")
        self._newest_ns = max(self._newest_ns, time_ns)
        if self._chain is not None:
            self._chain.add(row)
        self._last_seq = max(self._last_seq, seq)
        if self._is_kept(seq, time_ns, headers):
            self._keep([row], len(subject) + len(headers) + len(payload))

    def _keep(self, rows: list[Row], size: int) -> None:
        self._rows += rows
        self._row_bytes += size
        if len(self._rows) >= ROWS_MAX or self._row_bytes >= ROW_BYTES_AIMED:
            self._flush()

    def _is_kept(self, seq: int, time_ns: int, headers: bytes) -> bool:
        """Whether its time is not over; what its headers say is remembered then."""
        stream = self.stream
        fields = nats_fields(headers) if headers else {}
        stream.last_msg_id = fields.get(MSG_ID, b"")
        # One that cannot be read, the empty one among them, is none: publishes could say so.
        ttl_ns = parse_ttl(fields.get(TTL, b""))
        if ttl_ns == NEVER or (ttl_ns is not None and stream.config.allow_msg_ttl):
            if ttl_ns != NEVER and time_ns + ttl_ns <= self.now_ns:
                return False
            stream.ttls.add(seq, time_ns, ttl_ns)
        if stream.last_msg_id and self._newest_ns > self.now_ns - stream.dedupe.window_ns:
            stream.dedupe.add(stream.last_msg_id, seq, self._newest_ns)
        return True

    def _flush(self) -> None:
        if not self._rows:
            return
        store = self.stream.store
        store.import_frame(frame_of(self._rows).buffer)
        self._rows, self._row_bytes = [], 0
        self.size_bytes = store.size_bytes
        if not store.find_room():
            raise BrokenStream("insufficient storage resources available")

    def finish(self) -> None:
        """The archive is over: the stream is as it is to be, or there is a `problem`."""
        try:
            self._finish_parsing()
            self._flush()
            self._check_interest()
            last = max(self._last_seq, self._first_seq - 1)
            if self._chain is not None:
                chain = self._chain.finish()
                self.stream.chained.adopt(chain)
                if chain.seq > last:
                    raise BrokenStream("the archive's chain goes on behind its last message")
        except SyncFailed:
            raise
        except (BrokenStream, BrokerError) as error:
            self._fail(error)
            return
        store, stream = self.stream.store, self.stream
        time_ns = store.last_time_ns
        if last > store.last_seq:
            # What came last is removed: only the state knows when it came.
            time_ns = max(time_ns, self._last_time_ns)
        first = max(store.first_seq, self._first_seq)
        bounds = TransferBounds(0, first, last, time_ns, CONTENT_INDEX, 0, self._removed)
        store.import_end(bounds)
        stream.chained.last_seq = last
        stream.apply(CONFIG_INDEX, Config(1, dumps(stream.config)))
        if stream.schedules is not None:
            stream.schedules.scan = 1
        self.size_bytes = store.size_bytes

    def _check_interest(self) -> None:
        """Whether somebody wants the messages of a stream that lets go of all others."""
        stream = self.stream
        by_interest = stream.config.retention is Retention.INTEREST
        if by_interest and not self.consumers and stream.store.messages:
            raise BrokenStream(
                "its retention is interest, and the archive has no consumers: nobody would want"
                " its messages; restore it with retention limits"
            )

    def _finish_parsing(self) -> None:
        if not self._is_over:
            self._decoder.finish()
        if self._parser is None:
            raise BrokenStream("the archive is cut off")
        self._parser.finish()


def _is_subject(name: bytes) -> bool:
    return len(name) <= SUBJECT_BYTES_MAX and is_valid_literal(name)
