"""Where a consumer stands: what was delivered, what waits for an ack, what was redelivered.

Two copies of this exist at a consumer's leader. The committed one is part of `Consumer` and
changes by applied entries. The working one runs ahead of it: the leader does an operation here
and writes it down for the log in the same breath, so that both copies are equal once nothing
is in flight. Followers have only the committed copy.

Invariant: `pending` holds stream sequences in ascending order with the consumer sequences of
their first deliveries, ascending too. Deliveries only append, so dict order is sequence order.
"""

import struct
import zlib
from array import array
from collections.abc import Collection, Iterable, Sequence
from itertools import compress, repeat, takewhile
from operator import itemgetter, sub
from typing import NamedTuple

from jsctl.broker.jetstream.consumers.chosen import Chosen
from jsctl.broker.store.sequences.shared import SharedSeqs

Pending = tuple[int, int]
"""(consumer sequence of the first delivery, time in ns from which the ack wait runs)."""

_HEADER = struct.Struct("<BBQQQQqqQQIII")
_VERSION = 4
_LISTED = 3
"""The version of a consumer that has less than `STEPS_MIN` chosen sequences, one by one."""
_WITHOUT_DELAYS = 2
"""The version of a consumer without any: behind the columns are its dead messages only."""
_WITHOUT_DEAD = 1
"""The version before: it ends with the columns."""
STEPS_MIN = 512
"""Of so many sequences that a consumer begins with, logs and states have the steps between them,
which are one byte each as a rule, or none where all are one."""
_COUNT = struct.Struct("<I")
_STEPS = struct.Struct("<QB")
_DEATH = struct.Struct("<QqIBH")
DEATH_TEXT_BYTES_MAX = 256


class Death(NamedTuple):
    """Why a message is not delivered any more, and since when; it is to be stored elsewhere."""

    time_ns: int
    deliveries: int
    terminated: bool
    """By a client; else it was delivered as often as it may be."""
    reason: str = ""


class ConsumerState:
    """Positions and outstanding messages. Times in ns since the epoch, 0 for never."""

    __slots__ = (
        "acked",
        "acks_needed",
        "acks_watched",
        "coming",
        "dead",
        "delayed",
        "delivered_last_ns",
        "delivered_seq",
        "delivered_stream",
        "floor_last_ns",
        "floor_seq",
        "floor_stream",
        "last_seqs",
        "pending",
        "redelivered",
        "resume",
        "skipped",
        "started",
    )

    def __init__(self, *, acks_needed: bool, acks_watched: bool = False) -> None:
        self.acks_needed = acks_needed
        """False for ack policy none: what is delivered is done."""
        self.acks_watched = acks_watched
        self.acked: list[int] = []
        """Stream sequences done with since they were last taken, if `acks_watched`."""
        self.clear()

    @staticmethod
    def begun(
        delivered: tuple[int, int],
        floor: tuple[int, int],
        *,
        pending: dict[int, Pending],
        redelivered: dict[int, int],
        dead: dict[int, Death],
        delayed: dict[int, None],
        last_seqs: "Chosen",
        resume: int,
    ) -> "ConsumerState":
        """Of a consumer that has delivered elsewhere: positions are (of the consumer, of the
        stream)."""
        made = ConsumerState(acks_needed=True)
        made.started = True
        made.delivered_seq, made.delivered_stream = delivered
        made.floor_seq, made.floor_stream = floor
        made.pending, made.redelivered, made.dead = pending, redelivered, dead
        made.delayed, made.last_seqs, made.resume = delayed, last_seqs, resume
        return made

    def clear(self) -> None:
        """As before the first delivery, with no start position."""
        self.started = False
        self.delivered_seq = self.delivered_stream = 0
        self.floor_seq = self.floor_stream = 0
        self.delivered_last_ns = self.floor_last_ns = 0
        self.pending: dict[int, Pending] = {}
        self.redelivered: dict[int, int] = {}
        """Stream sequence -> deliveries beyond the first, of those that nobody is done with:
        besides pending ones those that were delivered as often as they may be."""
        self.dead: dict[int, Death] = {}
        """Given up, and not known to be stored as dead letters; in no order."""
        self.delayed: dict[int, None] = {}
        """Those among `pending` whose wait is a delay that a client asked for."""
        self.skipped = 0
        """Nothing at or below is to be delivered for the first time."""
        self.coming: Chosen | None = None
        """What the leader here has written as `last_seqs`: when it is applied, both are one."""
        self.last_seqs = Chosen()
        """Chosen sequences that come first (last per subject), ascending."""
        self.resume = 0
        """Where reading goes on once `last_seqs` are delivered."""

    @property
    def next_stream(self) -> int:
        """The first stream sequence that may be delivered next, outside of `last_seqs`."""
        return max(self.delivered_stream, self.skipped, self.resume) + 1

    def deliveries(self, seq: int) -> int:
        """How often a message was delivered that was delivered at least once."""
        return self.redelivered.get(seq, 0) + 1

    def is_unacked(self, seq: int) -> bool:
        """Whether a message waits for an ack, or would if it had not been delivered too often."""
        return seq in self.pending or seq in self.redelivered

    # Operations. Each is deterministic and ignores what does not apply any more.

    def start(self, first: int, resume: int, last_seqs: Sequence[int]) -> None:
        """Stand right before `first`; deliver `last_seqs` before anything above `resume`."""
        self.clear()
        self.started = True
        self.delivered_stream = self.floor_stream = first - 1
        self.resume = resume
        self.last_seqs = last_seqs if isinstance(last_seqs, Chosen) else Chosen(last_seqs)

    def reset(self, first: int) -> None:
        """Forget deliveries and stand right before `first`."""
        self.start(first, 0, ())

    def deliver(self, seqs: Sequence[int], first_seq: int, time_ns: int) -> None:
        """First deliveries, ascending, with consumer sequences from `first_seq` on."""
        if not seqs:
            return
        count, last = len(seqs), seqs[-1]
        self.delivered_seq = first_seq + count - 1
        self.delivered_stream = max(self.delivered_stream, last)
        self.delivered_last_ns = time_ns
        if self.last_seqs:
            self.last_seqs.drop(last)
        if self.acks_needed:
            self.pending.update(
                zip(seqs, zip(range(first_seq, first_seq + count), repeat(time_ns)), strict=False)
            )
            return
        self.floor_seq, self.floor_stream = self.delivered_seq, self.delivered_stream
        if self.acks_watched:
            self.acked.extend(seqs)

    def redeliver(self, seqs: Sequence[int], first_seq: int, time_ns: int) -> None:
        """Deliveries of messages that are pending; each takes a new consumer sequence."""
        pending, redelivered = self.pending, self.redelivered
        for seq in seqs:
            held = pending.get(seq)
            if held is not None:
                pending[seq] = (held[0], time_ns)
                self.delayed.pop(seq, None)
                redelivered[seq] = redelivered.get(seq, 0) + 1
        self.delivered_seq = first_seq + len(seqs) - 1
        self.delivered_last_ns = time_ns

    def touch(self, times: Iterable[tuple[int, int]]) -> None:
        """The ack wait of (sequence, time) runs from that time on."""
        for seq, time_ns in times:
            held = self.pending.get(seq)
            if held is not None:
                self.pending[seq] = (held[0], time_ns)
                self.delayed.pop(seq, None)

    def delay(self, times: Sequence[tuple[int, int]]) -> None:
        """The same, so that they are delivered again after as long as a client asked for."""
        self.touch(times)
        self.delayed.update((seq, None) for seq, _ in times if seq in self.pending)

    def ack(self, seqs: Collection[int], time_ns: int) -> None:
        """These are done with, by an ack or because nobody can have them any more."""
        late, pending = self.redelivered, self.pending
        if self.acks_watched and late:
            self.acked += [seq for seq in seqs if seq in late and seq not in pending]
        self._take(seqs, self.acked if self.acks_watched else None)
        self.floor_last_ns = time_ns

    def exhaust(self, seqs: Collection[int]) -> None:
        """These were delivered as often as they may be; they stay in the stream, unacked."""
        kept = {seq: self.redelivered.get(seq, 0) for seq in seqs}
        self._take(kept, None)
        self.redelivered.update(kept)

    def bury(self, seq: int, death: Death) -> None:
        """This one is given up; the stream keeps it until it is stored elsewhere."""
        self._take((seq,), None)
        self.dead[seq] = death

    def settle(self, seqs: Collection[int]) -> None:
        """These are stored elsewhere, or are gone: they count as acknowledged."""
        for seq in seqs:
            if self.dead.pop(seq, None) is not None and self.acks_watched:
                self.acked.append(seq)

    def _take(self, seqs: Collection[int], acked: list[int] | None) -> None:
        pending, forget = self.pending, self.redelivered
        oldest = next(iter(pending), 0)
        # What is pending is a pair, which counts as true.
        found = list(compress(seqs, map(pending.pop, seqs, repeat(None))))
        if forget:
            for seq in seqs:
                forget.pop(seq, None)
        if self.delayed:
            for seq in seqs:
                self.delayed.pop(seq, None)
        if acked is not None:
            acked.extend(found)
        if found:
            self._raise_floor(oldest)

    def _raise_floor(self, oldest: int) -> None:
        """After removals: the floor moves only when what was pending longest is gone."""
        for seq, (cseq, _) in self.pending.items():
            if seq != oldest:
                self.floor_seq, self.floor_stream = cseq - 1, seq - 1
            return
        self.floor_seq, self.floor_stream = self.delivered_seq, self.delivered_stream

    def ack_all(self, seq: int, cseq: int, time_ns: int) -> None:
        """Everything up to a stream sequence, delivered as consumer sequence `cseq`, is done."""
        if seq <= self.floor_stream or cseq <= self.floor_seq:
            return
        done = list(takewhile(seq.__ge__, self.pending))
        self._take(done, self.acked if self.acks_watched else None)
        if self.pending or not done:
            # What lies above may be waited for: the floor is what was acknowledged.
            self.floor_seq = min(cseq, self.delivered_seq)
            self.floor_stream = min(seq, self.delivered_stream)
        self.floor_last_ns = time_ns

    def skip(self, up_to: int) -> None:
        """Nothing at or below `up_to` is left to deliver for the first time."""
        self.skipped = max(self.skipped, up_to)
        if self.last_seqs:
            self.last_seqs.drop(up_to)

    def move(self, up_to: int, gone: Collection[int]) -> None:
        """A purge left nothing up to here for this consumer; `gone` are others that were removed.

        As in nats-server, the consumer's sequence of the floor is then the highest one of what went
        where that is not below the floor that is left.
        """
        self.delivered_stream = max(self.delivered_stream, up_to)
        if self.floor_stream <= up_to:
            taken = [seq for seq in self.pending if seq <= up_to or seq in gone]
            highest = max((self.pending[seq][0] for seq in taken), default=0)
            floor_seq = max(self.floor_seq, highest)
            self._take(taken, None)
            if self.floor_stream <= up_to:
                self.floor_seq, self.floor_stream = floor_seq, up_to
        if not self.pending:
            self.floor_seq, self.floor_stream = self.delivered_seq, self.delivered_stream

    # Copies and bytes.

    def copy(self) -> "ConsumerState":
        """An equal state of its own, with nothing in `acked`."""
        made = ConsumerState(acks_needed=self.acks_needed)
        made.started = self.started
        made.delivered_seq, made.delivered_stream = self.delivered_seq, self.delivered_stream
        made.floor_seq, made.floor_stream = self.floor_seq, self.floor_stream
        made.delivered_last_ns, made.floor_last_ns = self.delivered_last_ns, self.floor_last_ns
        made.pending = self.pending.copy()
        made.redelivered = self.redelivered.copy()
        made.dead = self.dead.copy()
        made.delayed = self.delayed.copy()
        made.skipped, made.resume = self.skipped, self.resume
        if self.last_seqs:
            made.last_seqs = self.last_seqs.copy()
        return made

    def facts(self) -> tuple[object, ...]:
        """Everything that is replicated, for comparing two states."""
        return (
            self.started,
            self.delivered_seq,
            self.delivered_stream,
            self.delivered_last_ns,
            self.floor_seq,
            self.floor_stream,
            self.floor_last_ns,
            self.skipped,
            self.resume,
            tuple(self.last_seqs),
            tuple(self.pending.items()),
            tuple(sorted(self.redelivered.items())),
            tuple(sorted(self.dead.items())),
            tuple(sorted(self.delayed)),
        )

    def encode(self) -> bytes:
        """Inverse of `decode`. Columns of differences compress to little."""
        pending, last_seqs = self.pending, self.last_seqs
        by_steps = len(last_seqs) >= STEPS_MIN
        times = list(map(itemgetter(1), pending.values()))
        cseqs = list(map(itemgetter(0), pending.values()))
        forget = sorted(self.redelivered.items())
        columns: tuple[bytes, ...] = (
            _deltas(list(pending)),
            _deltas(cseqs),
            _deltas(times),
            _written_steps(last_seqs) if by_steps else _deltas(list(last_seqs)),
            _deltas([seq for seq, _ in forget]),
            array("q", [count for _, count in forget]).tobytes(),
        )
        header = _HEADER.pack(
            _VERSION if by_steps else _LISTED if self.delayed else _WITHOUT_DELAYS,
            self.started,
            self.delivered_seq,
            self.delivered_stream,
            self.floor_seq,
            self.floor_stream,
            self.delivered_last_ns,
            self.floor_last_ns,
            self.skipped,
            self.resume,
            len(pending),
            len(self.last_seqs),
            len(forget),
        )
        if self.delayed or by_steps:
            columns = *columns, _COUNT.pack(len(self.delayed)), _deltas(sorted(self.delayed))
        columns = (*columns, b"".join(map(encode_death, self.dead.items())))
        return header + zlib.compress(b"".join(columns), 1)

    def decode(self, data: bytes) -> None:
        """Become the state that `encode` wrote."""
        version, started, *rest = _HEADER.unpack_from(data)
        assert _WITHOUT_DEAD <= version <= _VERSION, version
        self.clear()
        self.started = bool(started)
        (
            self.delivered_seq,
            self.delivered_stream,
            self.floor_seq,
            self.floor_stream,
            self.delivered_last_ns,
            self.floor_last_ns,
            self.skipped,
            self.resume,
            held,
            lasts,
            forgets,
        ) = rest
        columns = zlib.decompress(data[_HEADER.size :])
        parts, at = [], 0
        for size in (held, held, held):
            parts.append(array("q", columns[at : at + 8 * size]).tolist())
            at += 8 * size
        if version == _VERSION:
            self.last_seqs, at = _read_steps(columns, at, lasts)
        else:
            lasts_end = at + 8 * lasts
            self.last_seqs = Chosen(_sums(array("q", columns[at:lasts_end]).tolist()))
            at = lasts_end
        for size in (forgets, forgets):
            parts.append(array("q", columns[at : at + 8 * size]).tolist())
            at += 8 * size
        seqs, cseqs, times, again, counts = parts
        pairs = zip(_sums(cseqs), _sums(times), strict=True)
        self.pending = dict(zip(_sums(seqs), pairs, strict=True))
        self.redelivered = dict(zip(_sums(again), counts, strict=True))
        if version >= _LISTED:
            (count,) = _COUNT.unpack_from(columns, at)
            at += _COUNT.size
            self.delayed = dict.fromkeys(_sums(array("q", columns[at : at + 8 * count]).tolist()))
            at += 8 * count
        while at < len(columns):
            seq, death, at = decode_death(columns, at)
            self.dead[seq] = death


def _written_steps(seqs: Chosen) -> bytes:
    width, steps = seqs.steps()
    return _STEPS.pack(seqs[0], width) + steps


def _read_steps(columns: bytes, at: int, count: int) -> tuple[Chosen, int]:
    """Inverse of `_written_steps`, and where that ends."""
    first, width = _STEPS.unpack_from(columns, at)
    at += _STEPS.size
    end = at + width * (count - 1)
    return Chosen(SharedSeqs.of_steps(first, count, width, columns[at:end])), end


def encode_death(item: tuple[int, Death]) -> bytes:
    """Sequence u64, time i64, deliveries u32, terminated u8, text length u16, text."""
    seq, death = item
    text = death.reason.encode()[:DEATH_TEXT_BYTES_MAX]
    head = _DEATH.pack(seq, death.time_ns, death.deliveries, death.terminated, len(text))
    return head + text


def decode_death(data: bytes, at: int) -> tuple[int, Death, int]:
    """Inverse of `encode_death`, and where in the buffer it ends."""
    seq, time_ns, deliveries, terminated, size = _DEATH.unpack_from(data, at)
    at += _DEATH.size
    text = data[at : at + size].decode("utf-8", "ignore")
    return seq, Death(time_ns, deliveries, bool(terminated), text), at + size


def _deltas(values: list[int]) -> bytes:
    return array("q", map(sub, values, [0, *values])).tobytes()


def _sums(deltas: list[int]) -> list[int]:
    made, total = [], 0
    for delta in deltas:
        total += delta
        made.append(total)
    return made
