"""What of an archive would be lost, or is no hindrance, when it is restored."""

import pytest

from tests.broker.jsapi.archives.test_archives import again, create, fill
from tests.support.archives import message, packed, take
from tests.support.node_play import NodePlay, PlayClient
from tests.support.stream_requests import consumer

pytestmark = pytest.mark.slow


@pytest.fixture
def client() -> PlayClient:
    return NodePlay().connect("a")


def test_interest_needs_its_consumers(client: PlayClient) -> None:
    create(client, retention="interest")
    client.ask("$JS.API.CONSUMER.CREATE.S.C", **consumer("C"))
    fill(client, 3)
    data = b"".join(take(client, "S", no_consumers=True).chunks)
    client.ask("$JS.API.STREAM.DELETE.S")
    refused = again(client, data, retention="interest")["error"]
    assert (
        "nobody would want its messages; restore it with retention limits" in refused["description"]
    )
    assert again(client, data)["state"]["messages"] == 3, "the remedy"


@pytest.mark.parametrize("text", [b"", b"x"])
def test_a_time_to_live_that_is_none_is_no_hindrance(client: PlayClient, text: bytes) -> None:
    head = b"NATS/1.0\r\nNats-TTL: %b\r\n\r\n" % text
    answer = again(client, packed(message(1, headers=head), last_seq=1), allow_msg_ttl=True)
    assert answer["state"]["messages"] == 1


def test_what_is_never_to_expire_stays_where_other_times_to_live_mean_nothing() -> None:
    play = NodePlay()
    client = play.connect("a")
    heads = [b"NATS/1.0\r\nNats-TTL: %b\r\n\r\n" % ttl for ttl in (b"never", b"1s", b"60s")]
    rows = b"".join(message(seq, headers=head) for seq, head in enumerate(heads, 1))
    assert again(client, packed(rows, last_seq=3))["state"]["messages"] == 3
    client.ask("$JS.API.STREAM.UPDATE.S", name="S", subjects=["s.>"], max_age=10_000_000_000)
    play.run(12)
    state = client.ask("$JS.API.STREAM.INFO.S")["state"]
    assert (state["messages"], state["first_seq"]) == (1, 1)
