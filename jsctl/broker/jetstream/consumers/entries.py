"""What a consumer's log holds, and its bytes.

    PROGRESS  epoch u32, operations ...       one a turn: everything that happened in it
    CONFIG    consumer config as JSON
    RESET     first sequence u64

Operations of PROGRESS are those of `ConsumerState`, each a code and its arguments; runs of
sequences are kept as first and count, others as a list, or, where a consumer begins with very many,
as the first one and the steps between them. Integers are little endian. The epoch
counts resets: progress that a leader made before it saw a reset is dropped by all replicas.
"""

import struct
from array import array
from collections.abc import Callable, Sequence
from enum import IntEnum

from jsctl.broker.jetstream.consumers.chosen import Chosen
from jsctl.broker.jetstream.consumers.state import (
    STEPS_MIN,
    ConsumerState,
    Death,
    decode_death,
    encode_death,
)
from jsctl.broker.store.sequences.shared import SharedSeqs


class ConsumerEntryKind(IntEnum):
    """The first byte of an entry."""

    PROGRESS = 1
    CONFIG = 2
    RESET = 3


class Op(IntEnum):
    """Operations inside a PROGRESS entry."""

    START = 1
    DELIVER_RUN = 2
    DELIVER_LIST = 3
    REDELIVER = 4
    TOUCH = 5
    ACK_RUN = 6
    ACK_LIST = 7
    ACK_ALL = 8
    EXHAUST = 9
    SKIP = 10
    BURY = 11
    SETTLE = 12
    MOVE = 13
    DELAY = 14
    START_STEPS = 15


_PROGRESS = struct.Struct("<BI")
_RESET = struct.Struct("<BQ")
_START = struct.Struct("<BQQI")
_START_STEPS = struct.Struct("<BQQIQB")
_DELIVER_RUN = struct.Struct("<BQIQq")
_DELIVER_LIST = struct.Struct("<BIQq")
_ACK_RUN = struct.Struct("<BQIq")
_ACK_LIST = struct.Struct("<BIq")
_ACK_ALL = struct.Struct("<BQQq")
_COUNT = struct.Struct("<BI")
_SEQ = struct.Struct("<BQ")
_MOVE = struct.Struct("<BQI")


def encode_config(config: bytes) -> bytes:
    """A CONFIG entry from the config's JSON."""
    return bytes((ConsumerEntryKind.CONFIG,)) + config


def encode_reset(first: int) -> bytes:
    """A RESET entry: deliver again from `first` on."""
    return _RESET.pack(ConsumerEntryKind.RESET, first)


def decode_reset(entry: bytes) -> int:
    """The first sequence of a RESET entry."""
    first: int = _RESET.unpack(entry)[1]
    return first


def _list(seqs: Sequence[int]) -> bytes:
    if isinstance(seqs, array):
        return seqs.tobytes()
    return struct.pack(f"<{len(seqs)}Q", *seqs)


def _is_run(seqs: Sequence[int]) -> bool:
    return isinstance(seqs, range) or seqs[-1] - seqs[0] + 1 == len(seqs)


class ConsumerProgress:
    """Does operations on a working state and writes them down for the log."""

    __slots__ = ("_parts", "state")

    def __init__(self, state: ConsumerState) -> None:
        self.state = state
        self._parts: list[bytes] = []

    def take(self, epoch: int) -> bytes | None:
        """The entry with everything since the last call; None when nothing happened."""
        if not self._parts:
            return None
        parts, self._parts = self._parts, []
        return _PROGRESS.pack(ConsumerEntryKind.PROGRESS, epoch) + b"".join(parts)

    @property
    def empty(self) -> bool:
        """Whether nothing is written down."""
        return not self._parts

    def start(self, first: int, resume: int, last_seqs: Sequence[int]) -> None:
        """See `ConsumerState.start`."""
        self.state.start(first, resume, last_seqs)
        if len(last_seqs) < STEPS_MIN:
            head = _START.pack(Op.START, first, resume, len(last_seqs))
            self._parts.append(head + _list(last_seqs))
            return
        width, steps = self.state.last_seqs.steps()
        begin, count = last_seqs[0], len(last_seqs)
        head = _START_STEPS.pack(Op.START_STEPS, first, resume, count, begin, width)
        self._parts.append(head + steps)

    def deliver(self, seqs: Sequence[int], time_ns: int) -> None:
        """First deliveries of ascending sequences."""
        first = self.state.delivered_seq + 1
        self.state.deliver(seqs, first, time_ns)
        if _is_run(seqs):
            part = _DELIVER_RUN.pack(Op.DELIVER_RUN, seqs[0], len(seqs), first, time_ns)
        else:
            part = _DELIVER_LIST.pack(Op.DELIVER_LIST, len(seqs), first, time_ns) + _list(seqs)
        self._parts.append(part)

    def redeliver(self, seqs: Sequence[int], time_ns: int) -> None:
        """Deliveries of pending messages."""
        first = self.state.delivered_seq + 1
        self.state.redeliver(seqs, first, time_ns)
        self._parts.append(
            _DELIVER_LIST.pack(Op.REDELIVER, len(seqs), first, time_ns) + _list(seqs)
        )

    def touch(self, times: Sequence[tuple[int, int]]) -> None:
        """Other times for the ack wait of (sequence, time)."""
        self.state.touch(times)
        self._parts.append(_COUNT.pack(Op.TOUCH, len(times)) + _pairs(times))

    def delay(self, times: Sequence[tuple[int, int]]) -> None:
        """The same, as a client asked for it."""
        self.state.delay(times)
        self._parts.append(_COUNT.pack(Op.DELAY, len(times)) + _pairs(times))

    def ack(self, seqs: Sequence[int], time_ns: int) -> None:
        """Done with these; any order, no duplicates."""
        seqs = seqs if isinstance(seqs, range) else sorted(seqs)
        self.state.ack(seqs, time_ns)
        if _is_run(seqs):
            self._parts.append(_ACK_RUN.pack(Op.ACK_RUN, seqs[0], len(seqs), time_ns))
        else:
            self._parts.append(_ACK_LIST.pack(Op.ACK_LIST, len(seqs), time_ns) + _list(seqs))

    def ack_all(self, seq: int, cseq: int, time_ns: int) -> None:
        """Done with everything up to here."""
        self.state.ack_all(seq, cseq, time_ns)
        self._parts.append(_ACK_ALL.pack(Op.ACK_ALL, seq, cseq, time_ns))

    def exhaust(self, seqs: Sequence[int]) -> None:
        """Delivered as often as allowed."""
        self.state.exhaust(seqs)
        self._parts.append(_COUNT.pack(Op.EXHAUST, len(seqs)) + _list(seqs))

    def bury(self, seq: int, death: Death) -> None:
        """Given up, and to be stored elsewhere. What is told of it is what the log has room for."""
        part = encode_death((seq, death))
        self.state.bury(seq, decode_death(part, 0)[1])
        self._parts.append(bytes((Op.BURY,)) + part)

    def settle(self, seqs: Sequence[int]) -> None:
        """Stored elsewhere, or gone."""
        self.state.settle(seqs)
        self._parts.append(_COUNT.pack(Op.SETTLE, len(seqs)) + _list(seqs))

    def skip(self, up_to: int) -> None:
        """Nothing up to here is left to deliver."""
        self.state.skip(up_to)
        self._parts.append(_SEQ.pack(Op.SKIP, up_to))

    def move(self, up_to: int, gone: Sequence[int]) -> None:
        """A purge left nothing up to here, nor `gone`."""
        self.state.move(up_to, gone)
        self._parts.append(_MOVE.pack(Op.MOVE, up_to, len(gone)) + _list(gone))


def _pairs(times: Sequence[tuple[int, int]]) -> bytes:
    flat = [number for pair in times for number in pair]
    return struct.pack(f"<{len(flat)}q", *flat)


def progress_epoch(entry: bytes) -> int:
    """The epoch of a PROGRESS entry."""
    epoch: int = _PROGRESS.unpack_from(entry)[1]
    return epoch


def apply_progress(state: ConsumerState, entry: bytes) -> None:
    """Do all operations of a PROGRESS entry."""
    at = _PROGRESS.size
    while at < len(entry):
        at = _APPLIERS[entry[at]](state, entry, at)
    assert at == len(entry)


def _seqs(entry: bytes, at: int, count: int) -> tuple[int, ...]:
    return struct.unpack_from(f"<{count}Q", entry, at)


def _apply_start(state: ConsumerState, entry: bytes, at: int) -> int:
    _, first, resume, count = _START.unpack_from(entry, at)
    begin = at + _START.size
    end: int = begin + 8 * count
    state.start(first, resume, array("Q", entry[begin:end]))
    return end


def _apply_start_steps(state: ConsumerState, entry: bytes, at: int) -> int:
    _, first, resume, count, begin, width = _START_STEPS.unpack_from(entry, at)
    steps_at = at + _START_STEPS.size
    end: int = steps_at + width * (count - 1)
    steps = entry[steps_at:end]
    known = state.coming
    if known is None or not known.are(begin, count, (width, steps)):
        known = Chosen(SharedSeqs.of_steps(begin, count, width, steps))
    state.start(first, resume, known)
    return end


def _apply_deliver_run(state: ConsumerState, entry: bytes, at: int) -> int:
    _, seq, count, first, time_ns = _DELIVER_RUN.unpack_from(entry, at)
    state.deliver(range(seq, seq + count), first, time_ns)
    return at + _DELIVER_RUN.size


def _apply_deliver_list(state: ConsumerState, entry: bytes, at: int) -> int:
    _, count, first, time_ns = _DELIVER_LIST.unpack_from(entry, at)
    at += _DELIVER_LIST.size
    state.deliver(_seqs(entry, at, count), first, time_ns)
    return int(at + 8 * count)


def _apply_redeliver(state: ConsumerState, entry: bytes, at: int) -> int:
    _, count, first, time_ns = _DELIVER_LIST.unpack_from(entry, at)
    at += _DELIVER_LIST.size
    state.redeliver(_seqs(entry, at, count), first, time_ns)
    return int(at + 8 * count)


def _apply_times(state: ConsumerState, entry: bytes, at: int) -> int:
    start = at
    _, count = _COUNT.unpack_from(entry, at)
    at += _COUNT.size
    flat = struct.unpack_from(f"<{2 * count}q", entry, at)
    times = list(zip(flat[::2], flat[1::2], strict=True))
    if entry[start] == Op.DELAY:
        state.delay(times)
    else:
        state.touch(times)
    return int(at + 16 * count)


def _apply_ack_run(state: ConsumerState, entry: bytes, at: int) -> int:
    _, seq, count, time_ns = _ACK_RUN.unpack_from(entry, at)
    state.ack(range(seq, seq + count), time_ns)
    return at + _ACK_RUN.size


def _apply_ack_list(state: ConsumerState, entry: bytes, at: int) -> int:
    _, count, time_ns = _ACK_LIST.unpack_from(entry, at)
    at += _ACK_LIST.size
    state.ack(_seqs(entry, at, count), time_ns)
    return int(at + 8 * count)


def _apply_ack_all(state: ConsumerState, entry: bytes, at: int) -> int:
    _, seq, cseq, time_ns = _ACK_ALL.unpack_from(entry, at)
    state.ack_all(seq, cseq, time_ns)
    return at + _ACK_ALL.size


def _apply_exhaust(state: ConsumerState, entry: bytes, at: int) -> int:
    _, count = _COUNT.unpack_from(entry, at)
    at += _COUNT.size
    state.exhaust(_seqs(entry, at, count))
    return int(at + 8 * count)


def _apply_bury(state: ConsumerState, entry: bytes, at: int) -> int:
    seq, death, at = decode_death(entry, at + 1)
    state.bury(seq, death)
    return at


def _apply_settle(state: ConsumerState, entry: bytes, at: int) -> int:
    _, count = _COUNT.unpack_from(entry, at)
    at += _COUNT.size
    state.settle(_seqs(entry, at, count))
    return int(at + 8 * count)


def _apply_skip(state: ConsumerState, entry: bytes, at: int) -> int:
    _, up_to = _SEQ.unpack_from(entry, at)
    state.skip(up_to)
    return at + _SEQ.size


def _apply_move(state: ConsumerState, entry: bytes, at: int) -> int:
    _, up_to, count = _MOVE.unpack_from(entry, at)
    at += _MOVE.size
    state.move(up_to, _seqs(entry, at, count))
    return int(at + 8 * count)


_APPLIERS: dict[int, Callable[[ConsumerState, bytes, int], int]] = {
    Op.START: _apply_start,
    Op.START_STEPS: _apply_start_steps,
    Op.DELIVER_RUN: _apply_deliver_run,
    Op.DELIVER_LIST: _apply_deliver_list,
    Op.REDELIVER: _apply_redeliver,
    Op.TOUCH: _apply_times,
    Op.DELAY: _apply_times,
    Op.ACK_RUN: _apply_ack_run,
    Op.ACK_LIST: _apply_ack_list,
    Op.ACK_ALL: _apply_ack_all,
    Op.EXHAUST: _apply_exhaust,
    Op.SKIP: _apply_skip,
    Op.BURY: _apply_bury,
    Op.SETTLE: _apply_settle,
    Op.MOVE: _apply_move,
}
