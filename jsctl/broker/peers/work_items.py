"""What the leader of a work queue asks its other replicas, and what they answer; with its bytes."""

from jsctl.broker.peers.frame_codec import FrameReader, FrameWriter, read_ranges, write_ranges
from jsctl.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class WorkQuestion:
    """What is finished that the receiver knows of, with all applied that the meta group had decided
    up to `seen`? `key` is that of the queue's group."""

    key: bytes
    token: int
    seen: int


@dataclass(frozen=True, slots=True)
class FinishedSeqs:
    """The messages that consumers were done with and that the sender still has. `token` is that of
    the question; `ranges` ascend."""

    token: int
    ranges: list[tuple[int, int]]


def write_question(out: FrameWriter, item: WorkQuestion) -> None:
    """A question."""
    out.small(item.key)
    out.u64(item.token)
    out.u64(item.seen)


def read_question(data: FrameReader) -> WorkQuestion:
    """Inverse."""
    return WorkQuestion(data.small(), data.u64(), data.u64())


def write_finished(out: FrameWriter, item: FinishedSeqs) -> None:
    """Its answer."""
    out.u64(item.token)
    write_ranges(out, item.ranges)


def read_finished(data: FrameReader) -> FinishedSeqs:
    """Inverse."""
    return FinishedSeqs(data.u64(), read_ranges(data))
