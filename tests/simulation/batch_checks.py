"""What must be true of the atomic batches that a stream stores; see `batchers`."""

from collections.abc import Collection, Sequence
from typing import Any

from jsctl.broker.jetstream.streams.publish_headers import BATCH_COMMIT, BATCH_ID, nats_fields
from jsctl.broker.store.record import Record
from tests.simulation.violation import Violation


def check_batches(
    stream: str, records: Sequence[Record], skipped: Collection[int], seen: dict[bytes, int]
) -> None:
    """Of each batch in an entry all is there, in order and in one piece, and its end is marked.

    Messages that nobody was interested in are `skipped`. `seen` are the batches that were stored
    before, with the sequence of their ends.
    """
    found: dict[bytes, list[Record]] = {}
    for record in records:
        name = nats_fields(record.headers).get(BATCH_ID) if record.headers else None
        if name is not None:
            found.setdefault(name, []).append(record)
    there = {record.seq for record in records}
    for name, members in found.items():
        first = {one.seq - _place(one)[0] + 1 for one in members}
        sizes = {_place(one)[1] for one in members}
        if len(first) != 1 or len(sizes) != 1 or name in seen:
            raise Violation(f"{stream} stores batch {name!r} in disorder, or again")
        (start,), (size,) = first, sizes
        end = seen[name] = start + size - 1
        expected = set(range(start, end + 1))
        if expected - {one.seq for one in members} - set(skipped) or not expected <= there:
            raise Violation(f"{stream} stores a part of batch {name!r}")
        ends = [one.seq for one in members if nats_fields(one.headers).get(BATCH_COMMIT) == b"1"]
        if ends != [seq for seq in (end,) if seq not in skipped]:
            raise Violation(f"{stream} stores batch {name!r} with ends at {ends}")


Fast = dict[str, list[tuple[int, int]]]
"""Fast batch -> (place, sequence) of its messages, in the stream's order."""


def note_fast(stream: str, record: Record, batches: Fast) -> None:
    """Messages of a fast batch are stored in order; one that allows no gaps has none."""
    if not record.payload.startswith(b"F"):
        return
    name, place = record.payload[1:].decode().split("-")
    there = batches.setdefault(name, [])
    last = there[-1][0] if there else 0
    if int(place) <= last or (name.startswith("fail") and int(place) != last + 1):
        raise Violation(f"{stream} stores {place} of fast batch {name} behind {last}")
    there.append((int(place), record.seq))


def check_fast(
    stream: str, name: str, told: dict[str, Any], gaps: str, batches: Fast
) -> list[tuple[int, bytes]]:
    """What a publisher is told of a fast batch is so. What it promises: (sequence, payload)."""
    there = batches.get(name, [])
    places = [place for place, _ in there]
    done = told.get("type") != "ack"
    upto = told["count"] if done else told["seq"]
    if gaps == "fail" and len([place for place in places if place <= upto]) != upto:
        raise Violation(f"{stream} tells of {upto} of fast batch {name}, and has {places}")
    if done and told["seq"] != (there[-1][1] if there else 0):
        raise Violation(f"{stream} tells that {name} ends with {told['seq']}, and has {there[-1:]}")
    safe = [one for one in there if one[0] <= upto][-1:]
    return [(seq, f"F{name}-{place}".encode()) for place, seq in safe]


def _place(record: Record) -> tuple[int, int]:
    """(place in the batch, its size) as the publisher told."""
    _, place, size = record.payload.split(b"-")
    return int(place), int(size)
