"""Messages that are too old go, also where others that outlive them, or holes, lie before them."""

import pytest

from jsctl.broker.jetstream.streams import timers
from tests.support.node_play import NodePlay
from tests.support.stream_requests import stream

SECOND = 10**9
NEVER = b"NATS/1.0\r\nNats-TTL: never\r\n\r\n"


@pytest.mark.parametrize("marker_s", [0, 1])
@pytest.mark.parametrize("kept", [1, 25])
def test_what_is_too_old_goes_behind_holes_and_what_outlives_it(
    monkeypatch: pytest.MonkeyPatch, marker_s: int, kept: int
) -> None:
    monkeypatch.setattr(timers, "ROUND_MESSAGES_MAX", 10)
    play = NodePlay()
    client = play.connect("a")
    config = stream(
        replicas=1,
        allow_msg_ttl=True,
        max_age=2 * SECOND,
        duplicate_window=SECOND,
        max_msgs_per_subject=1,
        subject_delete_marker_ttl=marker_s * SECOND,
    )
    assert "error" not in client.ask("$JS.API.STREAM.CREATE.S", **config)
    for number in range(kept):
        client.request(f"s.kept.{number}", b"1", NEVER)
    for _ in range(30):
        client.request("s.old", b"1")
    for number in range(30):
        client.request(f"s.old.{number}", b"1")
    play.run(6)
    state = client.ask("$JS.API.STREAM.INFO.S")["state"]
    assert state["messages"] == kept
    assert state["first_seq"] == 1
