"""Windows, rates and original speed of push consumers."""

from jsctl.broker.jetstream.consumers.dispatch.pacing import (
    WINDOW_BYTES_FIRST,
    WINDOW_BYTES_MAX,
    FlowControl,
    RateLimit,
    Replay,
    idle_heartbeat,
)
from tests.support.consumer_play import Play

MS = 1_000_000
SECOND = 1000 * MS


def test_a_window_asks_at_half_and_blocks_when_full() -> None:
    flow = FlowControl()
    assert not flow.sent(WINDOW_BYTES_FIRST // 2)
    assert flow.sent(1)
    flow.ask(b"fc.1")
    assert not flow.sent(WINDOW_BYTES_FIRST // 2)
    assert flow.blocked
    assert not flow.answered(b"fc.other")
    assert flow.answered(b"fc.1")
    assert flow.window_bytes == 2 * WINDOW_BYTES_FIRST
    assert flow.outstanding_bytes == WINDOW_BYTES_FIRST // 2
    assert not flow.answered(b"fc.1")
    assert not flow.sent(1)


def test_a_window_grows_to_its_maximum() -> None:
    flow = FlowControl()
    for _ in range(10):
        flow.ask(b"fc")
        assert flow.answered(b"fc")
    assert flow.window_bytes == WINDOW_BYTES_MAX


def test_a_rate_lets_through_what_time_allows() -> None:
    rate = RateLimit(1000, 500)
    now, sent = 5 * SECOND, 0
    for _ in range(200):
        rate.fill(now)
        sent += 100 * rate.fitting([100] * 50)
        assert rate.next_due_ns >= now
        now = max(now + MS, rate.next_due_ns)
    elapsed = now - 5 * SECOND
    assert abs(sent - 1000 * elapsed / SECOND) <= 500 + 200


def test_replay_keeps_gaps() -> None:
    replay = Replay(until=4)
    times = [0 + SECOND, SECOND + MS // 2, SECOND + 100 * MS, SECOND + 300 * MS]
    assert replay.fitting(times, 50 * SECOND) == (2, 50 * SECOND + 100 * MS - MS // 2)
    assert replay.fitting(times[2:], 50 * SECOND + 10 * MS) == (
        0,
        50 * SECOND + 100 * MS - MS // 2,
    )
    count, due = replay.fitting(times[2:], 50 * SECOND + 100 * MS)
    assert count == 1 and due is not None
    assert replay.fitting(times[3:], due) == (1, None)


def test_heartbeats_say_where_a_stalled_consumer_waits() -> None:
    assert idle_heartbeat(3, 9) == (
        b"NATS/1.0 100 Idle Heartbeat\r\nNats-Last-Consumer: 3\r\nNats-Last-Stream: 9\r\n\r\n"
    )
    assert b"Nats-Consumer-Stalled: fc.1\r\n\r\n" in idle_heartbeat(3, 9, b"fc.1")


def test_answers_to_flow_control_may_have_any_number() -> None:
    play = Play()
    play.run(
        "publish a 3 600000\nconsumer ack_policy=flow_control deliver_subject=d idle_heartbeat=1s"
        " flow_control=true max_ack_pending=100"
    )
    asked = b"$JS.FC.S.C.ID00"
    head = b"NATS/1.0\r\nNats-Last-Stream: %b\r\nNats-Last-Consumer: 2\r\n\r\n" % (b"9" * 5_000)
    play.turn(flow=[(asked, b"", head, b"", None)])
    assert play.leader.push is not None and play.leader.push.flow is not None
    assert not play.leader.push.flow.asked, "it is answered all the same"
    assert list(play.consumer.state.pending) == [1, 2, 3]
