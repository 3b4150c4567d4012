"""What a replica has between two sequences, read from its disk: a digest, and what does not fit.

Digests are of all bytes of the messages that can be read, so two replicas with the same digest have
the same messages there, whatever their checksums say.
"""

from hashlib import blake2b

from jsctl.broker.assets.repair.records import records_of
from jsctl.broker.errors import Damaged
from jsctl.broker.jetstream.streams.stream import Stream
from jsctl.broker.store.record import FRAME_HEADER_BYTES
from jsctl.broker.store.seqset import SeqSet
from jsctl.dataclass import dataclass

DIGEST_BYTES = 32


@dataclass(frozen=True, slots=True)
class Portion:
    """Of one replica; `up_to`: nothing is said of what lies behind it."""

    up_to: int
    count: int
    digest: bytes
    damaged: SeqSet


def read_portion(stream: Stream, first: int, last: int, bytes_max: int) -> Portion:
    """As far as `bytes_max` goes, but at least one message if there is one."""
    found = stream.store.excerpt(first, last, bytes_max)
    # Behind the end there is nothing, and that is said, too.
    up_to = last if found.up_to >= min(last, stream.store.last_seq) else found.up_to
    digest, count = blake2b(digest_size=DIGEST_BYTES), 0
    for frame in found.frames:
        digest.update(memoryview(frame)[FRAME_HEADER_BYTES:])
        count += len(_records(frame))
    return Portion(up_to, count, digest.digest(), found.lost)


def _records(frame: bytes) -> dict[int, bytes]:
    try:
        return records_of((frame,))
    except Damaged:
        raise AssertionError("what was read a moment ago is sound") from None
