"""What the twins of the column loops make of the same input, side by side."""

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any, cast

from jsctl.backups import entries
from jsctl.broker.accel.choice import Twin, compiled, interpreted
from jsctl.broker.accel.columns import FRAME_HEADER_BYTES, Publish
from jsctl.broker.accel.contract import ArchiveLoops, ColumnLoops

Work = Callable[[ColumnLoops], Any]


def same(work: Work) -> Any:
    """What both make of it, lists for columns; ValueError where both refuse it."""
    twins = (interpreted(), compiled())
    found = [_outcome(work, twin.columns) for twin in twins if twin is not None]
    assert all(one == found[0] for one in found), found
    return found[0]


def same_of_archives(work: Callable[[ArchiveLoops], Any]) -> Any:
    """The same of what is done with archives."""
    twin = compiled()
    twins: list[ArchiveLoops] = [entries, *([_columns_of(twin)] if twin is not None else [])]
    found = [_outcome(work, one) for one in twins]
    assert all(one == found[0] for one in found), found
    return found[0]


def _columns_of(twin: Twin) -> ArchiveLoops:
    return cast(ArchiveLoops, twin.columns)  # One module has all that is compiled of both.


def _outcome(work: Callable[[Any], Any], loops: object) -> Any:
    try:
        made = work(loops)
    except ValueError:
        return ValueError
    if isinstance(made, tuple):
        return [one if isinstance(one, int | bytes) else [*one] for one in made]
    return made


def written_and_read(
    batch: list[Publish], head: bytes, first_seq: int, time_ns: int
) -> tuple[bytes, int]:
    """Encode a batch, and read it again; the bytes, and where its records begin."""
    made = same(lambda loops: loops.encode_publishes(head, batch, first_seq, time_ns))
    buffer, offsets, crcs, sizes, subjects = made
    begin = len(head) + FRAME_HEADER_BYTES
    seqs = [*range(first_seq, first_seq + len(batch))]
    read = same(lambda loops: loops.read_columns(buffer, begin, len(buffer)))
    assert read == [offsets, crcs, sizes, seqs, [time_ns] * len(batch), subjects]
    alike = same(lambda loops: loops.read_publishes(batch))
    ids = same(lambda loops: loops.read_ids(buffer, begin, len(buffer)))
    if alike is not None:
        assert ids == alike[0] or not alike[0]
    if ids:
        same(lambda loops: loops.pack_ids(ids, first_seq, time_ns))
    whole = [(seq, time_ns, *_stored(one)) for seq, one in zip(seqs, batch, strict=True)]
    assert same(lambda loops: _flat(loops.encode_rows(head, whole))) == [buffer, *read]
    lengths = [end - at for at, end in pairwise([*offsets, len(buffer)])]
    rows = same(lambda loops: loops.read_rows(buffer, 0, seqs, offsets, lengths, len(buffer)))
    assert rows == whole
    return buffer, begin


def _stored(publish: Publish) -> tuple[bytes, bytes, bytes]:
    return publish[0], publish[2], publish[3]


def _flat(made: tuple[bytes, tuple[Any, ...]]) -> tuple[Any, ...]:
    return made[0], *made[1]


def read_anything(data: bytes, start: int, end: int) -> None:
    """Both refuse it, or find the same in it."""
    same(lambda loops: loops.read_columns(data, start, end))
    same(lambda loops: loops.read_ids(data, start, end))
    for last in (0, *data[:2]):
        same_of_archives(partial(_messages, data, start, last, end))
    places = [start, end, 0, start + end, *data[:4]]
    numbers = [abs(place) for place in places]
    lengths = [_number(data, place, 4, 4) for place in numbers]
    for seqs in (numbers, [_number(data, place) for place in numbers]):
        for sizes, left in ((lengths, end), (numbers[1:], 1 << 60)):
            same(partial(_rows, data, seqs, numbers, sizes, left))


def _messages(data: bytes, begin: int, last_seq: int, body_max: int, loops: ArchiveLoops) -> Any:
    return loops.read_messages(data, begin, last_seq, body_max, 4)


def _rows(
    data: bytes,
    seqs: list[int],
    starts: list[int],
    lengths: list[int],
    left: int,
    loops: ColumnLoops,
) -> Any:
    return loops.read_rows(data, 3, seqs, starts, lengths, left)


def _number(data: bytes, start: int, at: int = 8, size: int = 8) -> int:
    """Of a record that begins there, its sequence, or what is in another place of it."""
    return int.from_bytes(data[start + at : start + at + size], "little")
