"""Compression of leaf nodes: what the two sides agree on, what they show of it, that messages of
all shapes pass, and what broken bytes cost."""

import json
import socket
from collections.abc import Iterator
from contextlib import AsyncExitStack

import pytest

from jsctl.backups.s2 import compressed, plain_chunk
from jsctl.testing import HOST, Broker
from tests.contract.conftest import KINDS
from tests.support.compression import AGREED, carried
from tests.support.leafs import IDS, PAIRS, hub_block, leaf_port, leafz, linked, pair, remote
from tests.support.listeners import connected
from tests.support.reloading import Reloading
from tests.support.waiting import wait_for
from tests.support.wire_client import WireClient


@pytest.mark.parametrize("kinds", PAIRS, ids=IDS)
@pytest.mark.parametrize(("hub", "leaf", "hub_shows", "leaf_shows"), AGREED)
async def test_what_is_agreed_is_shown_and_carries_messages(
    kinds: tuple[str, str], hub: str, leaf: str, hub_shows: str, leaf_shows: str
) -> None:
    listens, remote_more = f"compression: {hub}", f"compression: {leaf}"
    with pair(kinds, listen=listens, remote_more=remote_more) as (one, other):
        assert leafz(one)[0]["compression"] == hub_shows
        assert leafz(other)[0]["compression"] == leaf_shows
        async with AsyncExitStack() as stack:
            near, far = await connected(stack, one), await connected(stack, other)
            await carried(near, far)
            await carried(far, near)


@pytest.fixture(scope="module", params=list(KINDS))
def hub(request: pytest.FixtureRequest) -> Iterator[Broker]:
    """One that compresses."""
    with KINDS[str(request.param)](config=hub_block("compression: s2_fast"), name="hub") as one:
        yield one


def switched(stranger: socket.socket) -> None:
    """Say that all that follows is compressed."""
    told = json.dumps({"server_id": "N" * 56, "server_name": "x", "compression": "s2_fast"})
    stranger.sendall(f"INFO {told}\r\n".encode())
    answer = b""
    while b"\xff\x06\x00\x00" not in answer:
        part = stranger.recv(1 << 16)
        assert part, answer
        answer += part


CONNECT = b'CONNECT {"name":"x","cluster":"x","server_id":"%s","headers":true}\r\n' % (b"N" * 56)
WRONG_SUM = bytearray(plain_chunk(b"PING\r\n"))
WRONG_SUM[15] ^= 1
ZEROS = b"\x80\x80\x80\x02" + b"\x00a" + b"\x01\x01" + b"\x1d\x00\xf8\xff\x3f"
BROKEN = {
    "no stream": CONNECT,
    "another sum": compressed(CONNECT) + WRONG_SUM,
    "a block of 15 MiB": compressed(CONNECT) + b"\x00\xff\xff\xff" + bytes(1000),
    "a block that says it holds 4 GiB": compressed(CONNECT)
    + b"\x00\x09\x00\x00sums\xff\xff\xff\xff\x0f",
    "an unknown kind": compressed(CONNECT) + b"\x02\x01\x00\x00x",
    "bombs": compressed(CONNECT)
    + (b"\x00" + (4 + len(ZEROS)).to_bytes(3, "little") + b"sums" + ZEROS) * 100_000,
    "an endless line": compressed(CONNECT) + compressed(b"LS+ " + b"x" * (1 << 20)) * 50,
}


@pytest.mark.parametrize("said", BROKEN.values(), ids=BROKEN.keys())
def test_broken_bytes_end_their_connection_and_no_other(hub: Broker, said: bytes) -> None:
    with socket.create_connection((HOST, leaf_port(hub)), 30) as stranger:
        switched(stranger)
        try:
            stranger.sendall(said)
            while stranger.recv(1 << 16):
                pass
        except ConnectionError:
            pass
    client = WireClient(hub.url)
    client.flush()
    client.close()
    assert hub.running
    wait_for(lambda: not leafz(hub), "nobody is linked")


def test_a_cut_frame_waits_for_its_rest(hub: Broker) -> None:
    with socket.create_connection((HOST, leaf_port(hub)), 30) as stranger:
        switched(stranger)
        whole = compressed(CONNECT)
        for at in range(len(whole)):
            stranger.sendall(whole[at : at + 1])
        wait_for(lambda: len(leafz(hub)) == 1, "it is linked")
    wait_for(lambda: not leafz(hub), "nobody is linked")


def follows(near: Broker, far: Broker, shown: str, *, stays: int = 0, goes: int = 0) -> None:
    """Wait until the connection is as it has to be: the one that stays, or another than the one
    that goes."""

    def fact() -> bool:
        rows, own = leafz(far), leafz(near)
        if [row["compression"] for row in own] != [shown] or len(rows) != 1:
            return False
        number = int(rows[0]["id"])
        return number == stays if stays else number != goes

    wait_for(fact, f"the connection shows {shown}")


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_reload_changes_the_level_of_a_connection_or_makes_it_anew(kind: str) -> None:
    with KINDS[kind](config=hub_block("compression: s2_fast"), name="far") as far:

        def config(mode: str) -> str:
            more = remote(leaf_port(far), f"compression: {mode}")
            return f"server_name: near\nleafnodes {{ reconnect: 100ms, remotes: [ {more} ] }}\n"

        with Reloading(kind, config("s2_fast")) as near:
            first = linked(far)[0]["id"]
            told = near.must_reload(config("s2_best"))
            assert any(line.endswith("Compression value is: {s2_best []}") for line in told)
            follows(near.broker, far, "s2_best", stays=first)
            told = near.must_reload(config("off"))
            assert any(line.endswith("Compression value is: {off []}") for line in told)
            follows(near.broker, far, "off", goes=first)
            second = linked(far)[0]["id"]
            told = near.must_reload(config("{ mode: s2_auto, rtt_thresholds: [ 10s ] }"))
            assert any(line.endswith("Compression value is: {s2_auto [10s]}") for line in told)
            follows(near.broker, far, "s2_uncompressed", goes=second)
