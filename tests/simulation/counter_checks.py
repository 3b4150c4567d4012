"""What must be true of the counters of a stream: each total follows from one before it."""

import json
from collections.abc import Collection

from jsctl.broker.jetstream.streams.publish_headers import INCREMENT, nats_fields
from jsctl.broker.store.record import Record
from tests.simulation.violation import Violation

Totals = dict[bytes, list[tuple[int, int]]]
"""Subject -> (sequence, total) of all messages that it ever had."""


def check_total(stream: str, record: Record, there: Collection[int], totals: Totals) -> None:
    """A message holds the total of the one before it on its subject, and what it adds.

    What is `there` no more may be counted on or not: it may have gone while this one was on its
    way.
    """
    fields = nats_fields(record.headers)
    total, increment = int(json.loads(record.payload)["val"]), int(fields[INCREMENT])
    before = totals.setdefault(record.subject, [])
    for seq, one in reversed(before):
        if one + increment == total:
            break
        if seq in there:
            raise Violation(f"{stream}: {record.seq} is {total}, {one} and {increment}")
    else:
        if increment != total:
            raise Violation(f"{stream}: {record.seq} is {total}, the first of {increment}")
    before.append((record.seq, total))
