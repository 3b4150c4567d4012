"""What peers were given, counted with each change: the same as a count of all there is."""

import random

import pytest

from jsctl.api.consumer import ConsumerConfig
from jsctl.api.jsontext import parse_object
from jsctl.api.stream import StreamConfig
from jsctl.broker.jetstream.meta.assignments import (
    ConsumerAssignment,
    GroupAssignment,
    StreamAssignment,
)
from jsctl.broker.jetstream.meta.entries import (
    AssetEntry,
    assign_consumer,
    assign_stream,
    assignment_from,
    remove_consumer,
    remove_stream,
)
from jsctl.broker.jetstream.meta.loads import Loads, PeerLoad
from jsctl.broker.jetstream.meta.state import Meta
from jsctl.broker.jetstream.requests import ClientInfo

CLIENT = ClientInfo(account="A")
PEERS = ("a", "b", "c", "d")


def group(rng: random.Random) -> GroupAssignment:
    peers = tuple(rng.sample(PEERS, rng.choice((1, 3))))
    former = tuple(rng.sample(PEERS, rng.choice((0, 2))))
    return GroupAssignment("G", peers, rng.choice(("file", "memory")), former=former)


def some_entry(rng: random.Random, meta: Meta) -> bytes:
    """Handlers ask for no consumer of a stream that is not there."""
    stream, consumer = rng.choice("STU"), rng.choice("CD")
    what = rng.randrange(6) if meta.stream("A", stream) is not None else 2
    if what == 0:
        return remove_stream("A", stream)
    if what == 1:
        return remove_consumer("A", stream, consumer)
    if what < 4:
        config = StreamConfig(name=stream, max_bytes=rng.choice((-1, 10, 300)))
        made = StreamAssignment("A", stream, config, group(rng), 1, CLIENT, None)
        return assign_stream(made)
    options = ConsumerConfig(name=consumer)
    return assign_consumer(
        ConsumerAssignment("A", stream, consumer, options, group(rng), 1, CLIENT, None)
    )


def counted(meta: Meta, without: StreamAssignment | None) -> Loads:
    """By a look at everything."""
    loads = {peer: PeerLoad() for peer in PEERS}
    for made in meta.assets():
        for peer in made.group.members:
            load = loads[peer]
            load.replicated += len(made.group.peers) > 1
            if not isinstance(made, StreamAssignment):
                continue
            load.streams += 1
            if made.config.max_bytes > 0 and made != without:
                if made.group.storage == "memory":
                    load.memory_reserved += made.config.max_bytes
                else:
                    load.store_reserved += made.config.max_bytes
    return Loads(loads)


def check(meta: Meta, rng: random.Random) -> None:
    streams = meta.streams("A")
    without = streams.get(rng.choice("STU"))
    loads, naive = meta.loads(without), counted(meta, without)
    assert [loads.of(peer) for peer in PEERS] == [naive.of(peer) for peer in PEERS]
    assert meta.stream_count("A") == len(streams)
    for name in "STU":
        assert meta.consumer_count("A", name) == len(meta.consumers("A", name))
    assert meta.consumer_total("A") == sum(meta.consumer_count("A", name) for name in "STU")
    assert meta.consumer_total("B") == 0


@pytest.mark.parametrize("seed", range(30))
def test_loads_are_those_of_all_that_is_assigned(seed: int) -> None:
    rng, meta, waiting = random.Random(seed), Meta(), list[bytes]()
    for index in range(1, 150):
        entry = some_entry(rng, meta)
        if isinstance(entry, AssetEntry):
            assert assignment_from(parse_object(entry)) == entry.made, "others read it"
        meta.note_in_flight([entry])
        waiting.append(entry)
        check(meta, rng)
        if rng.random() < 0.5:
            for one in waiting:
                meta.apply(index, one)
            waiting.clear()
            check(meta, rng)
    again = Meta()
    for one in waiting:
        meta.apply(1000, one)
    again.restore(meta.snapshot())
    check(again, rng)
    assert [again.loads().of(peer) for peer in PEERS] == [meta.loads().of(peer) for peer in PEERS]
