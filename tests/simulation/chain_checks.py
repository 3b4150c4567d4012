"""Chains of hashes: all replicas have the same one, and it proves what they hold."""

from jsctl.broker.assets.repair.portions import read_portion
from jsctl.broker.jetstream.streams.stream import Stream
from tests.simulation.violation import Violation

ALL_BYTES = 1 << 40


def check_chain(server: str, mine: Stream, theirs: Stream) -> None:
    """Of a replica, `theirs`, that stands where the model does."""
    own = mine.chained.settled(mine.applied)
    other = theirs.chained.settled(theirs.applied)
    if own is None and other is None:
        return
    if own is None or other is None:
        raise Violation(f"{server}: whether {theirs.name} has a chain is not the same")
    for what in ("since", "seq", "link", "anchor_seq", "anchor", "count"):
        known, told = getattr(own, what), getattr(other, what)
        if known != told:
            raise Violation(f"{server}: {what} of the chain of {theirs.name} is another: {told!r}")
    found = read_portion(theirs, own.since + 1, theirs.store.last_seq, ALL_BYTES, chained=True)
    if found.breaks:
        raise Violation(f"{server}: {theirs.name} breaks its chain: {found.breaks[:3]}")
