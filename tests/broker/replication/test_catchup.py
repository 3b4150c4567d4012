"""Both ends of a state transfer, without a network."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import cast

import pytest

from jsctl.broker.errors import ProtocolError
from jsctl.broker.peers.items import ChunkKind, StateAck, StateChunk
from jsctl.broker.raft.core import Raft
from jsctl.broker.raft.types import Members
from jsctl.broker.replication.catchup import WINDOW_BYTES, Receiver, Sender
from jsctl.broker.replication.group import GroupKind, RaftGroup, Replica, SyncJob


@dataclass(frozen=True)
class Job:
    """Does nothing."""

    index: int

    def run(self) -> None:
        """Nothing."""


@dataclass
class Importer:
    """Gathers; refuses `bad`."""

    got: list[bytes] = field(default_factory=list)

    def feed(self, chunk: bytes) -> None:
        if chunk == b"bad":
            raise ProtocolError("bad")
        self.got.append(chunk)

    def finish(self, index: int, term: int, members: bytes) -> SyncJob:
        assert (term, members) == (5, b"members")
        return Job(index)

    def switch(self) -> None:
        """Not used."""

    def abandon(self) -> None:
        self.got.clear()


def sender(chunks: Iterator[bytes]) -> Sender:
    """A leader's side; what it tells of the group does not matter here."""
    raft = Raft("a", members=Members(("a",)), jitter=lambda n: 0)
    group = RaftGroup("S", b"S", GroupKind.STREAM, raft, cast(Replica, None), {})
    return Sender(group, "b", 1, 70, 5, b"members", chunks, 0)


def ack(offset: int) -> StateAck:
    """The follower has so much."""
    return StateAck(b"S", 1, offset, done=False)


def test_a_window_at_a_time() -> None:
    big = bytes(WINDOW_BYTES // 2)
    one = sender(iter([big] * 5))
    first = one.pump()
    assert [chunk.kind for chunk in first] == [ChunkKind.FIRST, ChunkKind.MORE]
    assert [chunk.offset for chunk in first] == [0, len(big)]
    assert one.pump() == []
    one.ack(ack(len(big)), 5)
    assert len(one.pump()) == 1 and one.heard_ns == 5
    one.ack(ack(1), 6)
    assert one.pump() == [], "an older acknowledgement opens nothing"
    one.ack(ack(99 * len(big)), 7)
    rest = one.pump()
    assert rest[-1].kind is ChunkKind.MORE and one.acked == 3 * len(big)
    one.ack(ack(5 * len(big)), 8)
    assert [chunk.kind for chunk in one.pump()] == [ChunkKind.LAST] and one.pump() == []


def test_an_empty_state_is_first_and_last() -> None:
    chunks = sender(iter([])).pump()
    assert [chunk.kind for chunk in chunks] == [ChunkKind.FIRST, ChunkKind.LAST]
    assert {(one.index, one.term, one.members) for one in chunks} == {(70, 5, b"members")}


def test_what_is_sent_arrives() -> None:
    one, importer = sender(iter([b"ab", b"c", b"def"])), Importer()
    other = Receiver(1, cast(Replica, None), importer)
    answers = [other.take(chunk) for chunk in one.pump()]
    assert answers[-1] is None and importer.got == [b"ab", b"c", b"def"]
    assert [answer.offset for answer in answers if answer is not None] == [2, 3, 6]
    assert other.job == Job(70) and other.chunk is not None


def test_a_piece_out_of_order_is_not_taken() -> None:
    importer = Importer()
    other = Receiver(1, cast(Replica, None), importer)
    for offset in (3, 0, 0):
        chunk = StateChunk(b"S", 1, ChunkKind.MORE, offset, 1, 1, b"", b"abc")
        answer = other.take(chunk)
        assert answer is not None and answer.offset == (0 if offset else 3)
    assert importer.got == [b"abc"]
    other.take(StateChunk(b"S", 1, ChunkKind.LAST, 3, 1, 5, b"members", b""))
    late = other.take(StateChunk(b"S", 1, ChunkKind.LAST, 3, 1, 5, b"members", b""))
    assert late is not None and not late.done, "its job runs: nothing more is taken"


def test_what_does_not_fit_is_raised() -> None:
    with pytest.raises(ProtocolError):
        Receiver(1, cast(Replica, None), Importer()).take(
            StateChunk(b"S", 1, ChunkKind.FIRST, 0, 1, 1, b"", b"bad")
        )
