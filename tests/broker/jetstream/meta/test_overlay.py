"""What streams listen on, with what is in flight: as a look at all streams tells it."""

import random
from collections import deque

import pytest

from jsctl.api.stream import StreamConfig
from jsctl.broker.jetstream.meta.assignments import GroupAssignment, StreamAssignment
from jsctl.broker.jetstream.meta.entries import assign_stream, remove_stream
from jsctl.broker.jetstream.meta.state import Meta
from jsctl.broker.jetstream.requests import ClientInfo
from jsctl.broker.subject.patterns import PatternSet

CLIENT = ClientInfo(account="A")
PATTERNS = (b"a", b"a.b", b"a.*", b"*.b", b"a.>", b"c", b"c.d.e")


def some_entry(rng: random.Random) -> bytes:
    name, account = rng.choice("STU"), rng.choice("AB")
    if rng.random() < 0.3:
        return remove_stream(account, name)
    subjects = tuple(one.decode() for one in rng.sample(PATTERNS, rng.choice((1, 2))))
    config = StreamConfig(name=name, subjects=subjects)
    group = GroupAssignment("G", ("p",), "file")
    return assign_stream(StreamAssignment(account, name, config, group, 1, CLIENT, None))


def listening(meta: Meta, account: str, pattern: bytes) -> set[str]:
    """Found by asking each."""
    return {
        name
        for name, made in meta.streams(account).items()
        if PatternSet(one.encode() for one in made.config.subjects).owners_meeting(pattern)
    }


def check(meta: Meta) -> None:
    for account in "AB":
        for pattern in PATTERNS:
            wanted = listening(meta, account, pattern)
            assert meta.listening(account, pattern) == wanted
            for name in "STUV":
                taken = meta.is_taken(account, PatternSet([pattern]), name)
                assert taken == bool(wanted - {name})


@pytest.mark.parametrize("seed", range(20))
def test_subjects_are_those_of_all_streams_as_they_will_be(seed: int) -> None:
    rng, meta, waiting, index = random.Random(seed), Meta(), deque[bytes](), 0
    for _ in range(60):
        action = rng.random()
        if action < 0.6:
            entries = [some_entry(rng) for _ in range(rng.choice((1, 2)))]
            meta.note_in_flight(entries)
            waiting.extend(entries)
        elif action < 0.97 and waiting:
            index += 1
            meta.apply(index, waiting.popleft())
        elif waiting:
            meta.drop_in_flight()
            waiting.clear()
        check(meta)
