"""What a replica has between two sequences, read from its disk: a digest, and what does not fit.

Digests are of all bytes of the messages that can be read, so two replicas with the same digest have
the same messages there, whatever their checksums say.
"""

from collections.abc import Sequence
from hashlib import blake2b

from jsctl.broker.assets.repair.records import records_of
from jsctl.broker.errors import Damaged
from jsctl.broker.jetstream.streams.stream import Stream
from jsctl.broker.store.record import FRAME_HEADER_BYTES, peek
from jsctl.broker.store.seqset import SeqSet
from jsctl.dataclass import dataclass, replace

DIGEST_BYTES = 32
BREAKS_MAX = 8
"""Of a portion."""


@dataclass(frozen=True, slots=True)
class ReadPortion:
    """Of one replica; `up_to`: nothing is said of what lies behind it."""

    up_to: int
    count: int
    digest: bytes
    damaged: SeqSet
    link: bytes = b""
    """The chain's hash behind `up_to`; empty where it has no leaves any more of what was read."""
    breaks: Sequence[tuple[int, str]] = ()
    """What does not fit into the chain."""


def read_portion(
    stream: Stream, first: int, last: int, bytes_max: int, *, chained: bool = False
) -> ReadPortion:
    """As far as `bytes_max` goes, but at least one message if there is one. `chained`: what is read
    is compared with the chain, too."""
    chain = stream.chained.settled(stream.applied) if chained else None
    if chain is not None:
        last = chain.reach(first, last)
    found = stream.store.excerpt(first, last, bytes_max)
    # Behind the end there is nothing, and that is said, too.
    up_to = last if found.up_to >= min(last, stream.store.last_seq) else found.up_to
    digest = blake2b(digest_size=DIGEST_BYTES)
    for frame in found.frames:
        digest.update(memoryview(frame)[FRAME_HEADER_BYTES:])
    made = ReadPortion(up_to, sum(map(_count, found.frames)), digest.digest(), found.lost)
    if chain is None:
        return replace(made, breaks=[(first, "there is no chain")]) if chained else made
    leafless = up_to <= chain.anchor_seq and made.count > 0
    return replace(
        made,
        link=b"" if leafless else chain.link_behind(up_to),
        breaks=chain.breaks(first, up_to, _records(found.frames), BREAKS_MAX),
    )


def _count(frame: bytes) -> int:
    return peek(frame)[0]


def _records(frames: Sequence[bytes]) -> dict[int, bytes]:
    try:
        return records_of(frames)
    except Damaged:
        raise AssertionError("what was read a moment ago is sound") from None
