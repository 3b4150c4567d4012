"""A replica with a damaged segment removes what its peers remove, whoever leads, even where none
of them can be asked for what is damaged: brokers of an earlier version do not know the question."""

import random
from collections.abc import Callable
from typing import Any

import pytest

from jsctl.broker.assets.repair.repairs import Repairs
from jsctl.broker.store.stream_store import StreamStore
from tests.support.cluster_play import ClusterPlay, ServerPlay
from tests.support.sim_disk import SimDisk
from tests.support.stream_requests import stream

SUBJECTS = 10
TOGETHER_MAX = 7
LIMITS: dict[str, dict[str, Any]] = {
    "messages": {"max_msgs": 150},
    "bytes": {"max_bytes": 20_000},
    "messages of a subject": {"max_msgs_per_subject": 15},
    "all at once": {"max_msgs": 140, "max_bytes": 19_000, "max_msgs_per_subject": 16},
}


def fill(cluster: ClusterPlay, server: ServerPlay, first: int, count: int) -> None:
    """Publish messages of different sizes to some subjects: one at a time, or a few."""
    client = server.connect("a")
    client.subscribe("ack")
    rng = random.Random(first)
    number = first
    while number < first + count:
        together = b""
        for each in range(number, min(number + rng.randint(1, TOGETHER_MAX), first + count)):
            payload = b"%d " % each + bytes(rng.randrange(150))
            head = b"PUB s.%d ack %d\r\n" % (rng.randrange(SUBJECTS), len(payload))
            together += head + payload + b"\r\n"
            number += 1
        client.send(together)
    cluster.run(0.5)
    acks = client.heard("ack")
    assert len(acks) == count
    assert all("seq" in ack for ack in acks)


def store_of(server: ServerPlay) -> StreamStore:
    """Its messages of S."""
    return server.engine.assets.streams[("A", "S")].store


def keep(cluster: ClusterPlay) -> None:
    """Have all that was applied made durable in the segments: the log lets go of it."""
    group = cluster.group_of("S")
    for server in cluster:
        groups = server.engine.groups
        if group in groups.by_name:
            groups.checkpoints.soon(groups.by_name[group])
    cluster.run(1)


def retained(server: ServerPlay) -> tuple[object, ...]:
    """What follows from the log, on this replica."""
    store = store_of(server)
    per_subject = [store.retained_for(b"s.%d" % number) for number in range(SUBJECTS)]
    bounds = store.first_seq, store.last_seq, store.deleted()
    return (*bounds, store.retained_messages, store.retained_bytes, per_subject)


def zero_page(disk: SimDisk, path: str) -> None:
    image = bytearray(disk.content(path))
    start = len(image) // 2
    image[start : start + 4096] = bytes(len(image[start : start + 4096]))
    disk.overwrite(path, bytes(image))


def flip_bits(disk: SimDisk, path: str) -> None:
    size = len(disk.content(path))
    for at in range(10):
        disk.flip_bit(path, 8 * (size // 3 + at * size // 20))


def remove(disk: SimDisk, path: str) -> None:
    disk.remove(path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("limits", "damage", "of_leader"),
    [
        ("messages", zero_page, False),
        ("bytes", flip_bits, True),
        ("messages of a subject", zero_page, False),
        ("all at once", remove, True),
        ("all at once", flip_bits, False),
    ],
)
def test_all_replicas_remove_the_same(
    limits: str,
    damage: Callable[[SimDisk, str], None],
    of_leader: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Repairs, "asked", lambda self, peer, request: None)
    cluster = ClusterPlay()
    config = stream(**LIMITS[limits])
    (answer,) = cluster["n1"].request_all("$JS.API.STREAM.CREATE.S", 1, **config)
    assert "error" not in answer
    leader = cluster.leader(cluster.group_of("S"))
    fill(cluster, leader, 0, 200)
    keep(cluster)
    victim = leader if of_leader else next(one for one in cluster if one is not leader)
    victim.halt()
    (path, *_) = [one for one in victim.disk.paths() if one.endswith(".seg")]
    damage(victim.disk, path)
    victim.begin()
    cluster.run(3)
    assert store_of(victim).state().lost, "the damage is in messages that are there"
    for first in (200, 240, 280, 330):
        fill(cluster, cluster.leader(cluster.group_of("S")), first, 40)
        assert len({str(retained(one)) for one in cluster}) == 1, first
    victim.request_all("$JS.API.STREAM.MSG.DELETE.S", 1, seq=store_of(victim).first_seq)
    victim.request_all("$JS.API.STREAM.PURGE.S", 1, filter="s.3", keep=2)
    cluster.run(0.5)
    assert len({str(retained(one)) for one in cluster}) == 1, "after a delete and a purge"
    for one in cluster:
        store_of(one).check_totals()
    fill(cluster, cluster.leader(cluster.group_of("S")), 400, 200)
    states = [store_of(one).state() for one in cluster]
    assert states[0] == states[1] == states[2], "the damage has left with what it damaged"
