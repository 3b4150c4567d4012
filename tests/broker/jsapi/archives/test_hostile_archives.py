"""Archives with numbers that no server writes: they are refused, or taken, and stop nobody."""

import json
from typing import Any

import pytest

from jsctl.broker.jetstream.chains.chain import link_of
from tests.support.archives import consumer, message, packed, restore
from tests.support.node_play import NodePlay
from tests.support.stream_requests import stream

MOST = (1 << 63) - 1
NOTHING = bytes(32)
CHAINED = {"metadata": {"jsctl.chain": "sha256"}}


def restored(data: bytes, **more: Any) -> tuple[NodePlay, dict[str, Any]]:
    """A node that goes on with a stream of an archive: it stores a message, and all states are
    written; and the answer."""
    play = NodePlay()
    client = play.connect("a")
    answer = restore(client, stream(replicas=1, **more), data, lambda: play.run(0.1))
    client.request("s.x", b"one more")
    assert play.node.engine is not None
    groups = play.node.engine.groups
    for group in groups.by_name.values():
        groups.checkpoints.soon(group)
    play.run(1)
    assert play.exit is None
    return play, answer


def chain(seq: int, link: bytes, **more: object) -> dict[str, object]:
    told = {"since": 0, "anchor_seq": 0, "anchor": NOTHING.hex(), "seq": seq, "hash": link.hex()}
    return {**told, "removed": [], **more}


LONG = b"NATS/1.0\r\nNats-Msg-Id: %b\r\n\r\n" % bytes(70_000).replace(b"\0", b"x")
DELIVERED = {"consumer_seq": MOST, "stream_seq": MOST}
REFUSED = {
    "a chain that begins behind the end": (
        packed(message(1), last_seq=5, jsctl_chain=chain(9, NOTHING, since=9, anchor_seq=9)),
        CHAINED,
        "goes on behind",
    ),
    "a chain that ends behind the end": (
        packed(
            last_seq=5,
            jsctl_chain=chain(9, link_of(NOTHING, NOTHING), removed=[[9, NOTHING.hex()]]),
        ),
        CHAINED,
        "goes on behind",
    ),
    "headers": (packed(message(1, headers=LONG), last_seq=1), {}, "too large headers"),
    "the last sequence": (packed(message(1), message(MOST), last_seq=MOST), {}, "out of range"),
    "a consumer's last sequence": (
        packed(
            consumer(
                "C",
                {"name": "C", "durable_name": "C", "ack_policy": "explicit"},
                {"delivered": DELIVERED, "ack_floor": DELIVERED},
            ),
            consumer_count=1,
        ),
        {},
        "out of range",
    ),
}


@pytest.mark.parametrize(("data", "more", "why"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_is_refused(data: bytes, more: dict[str, Any], why: str) -> None:
    _, answer = restored(data, **more)
    assert why in json.dumps(answer), answer


@pytest.mark.parametrize(
    ("ttl", "time_ns"), [(b"9999999999999999999", 1_790_000_000 * 10**9), (b"1h", MOST)]
)
def test_a_time_to_live_that_ends_behind_all_time(ttl: bytes, time_ns: int) -> None:
    headers = b"NATS/1.0\r\nNats-TTL: %b\r\n\r\n" % ttl
    data = packed(message(1, headers=headers, time_ns=time_ns), last_seq=1)
    play, answer = restored(data, allow_msg_ttl=True)
    assert answer["state"]["messages"] == 1
    again = NodePlay(disk=play.disk).connect("a")
    assert again.ask("$JS.API.STREAM.INFO.S")["state"]["messages"] == 2


def test_a_last_message_far_in_the_future() -> None:
    data = packed(message(1), last_seq=5, last_ts="9999-12-31T00:00:00Z")
    _, answer = restored(data)
    assert answer["state"]["last_seq"] == 5
