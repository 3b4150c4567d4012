"""How a leader feeds one peer."""

from jsctl.broker.raft.progress import Flow, FollowerProgress


def replicating(match: int = 5) -> FollowerProgress:
    made = FollowerProgress(match + 1, 0, learner=False)
    made.acked(match)
    return made


def test_probing_sends_one_append_and_waits() -> None:
    made = FollowerProgress(8, 0, learner=False)
    assert not made.blocked(100)
    made.sent(9, 10)

    assert made.blocked(100)
    assert (made.next, made.inflight_bytes) == (8, 0)


def test_an_ack_ends_probing() -> None:
    made = FollowerProgress(8, 0, learner=False)

    assert made.acked(3)
    assert (made.flow, made.match, made.next) == (Flow.REPLICATE, 3, 4)
    assert not made.acked(3)
    assert not made.acked(2)


def test_an_ack_without_news_ends_probing_too() -> None:
    made = FollowerProgress(8, 0, learner=False)

    assert not made.acked(0)
    assert (made.flow, made.next) == (Flow.REPLICATE, 1)


def test_the_window_fills_by_bytes_and_empties_by_acks() -> None:
    made = replicating()
    made.sent(7, 60)
    made.sent(9, 60)
    assert made.blocked(100)
    assert made.next == 10

    assert made.acked(8)
    assert (made.inflight_bytes, made.blocked(100)) == (60, False)
    assert made.acked(9)
    assert made.inflight_bytes == 0


def test_a_rejection_while_replicating_probes_behind_the_match() -> None:
    made = replicating()
    made.sent(9, 60)

    assert not made.rejected(5, 2)
    assert made.rejected(9, 7)
    assert (made.flow, made.next, made.inflight_bytes) == (Flow.PROBE, 6, 0)


def test_a_rejection_while_probing_backs_off_to_the_hint() -> None:
    made = FollowerProgress(20, 0, learner=False)
    made.sent(20, 1)

    assert not made.rejected(12, 3)
    assert made.rejected(19, 7)
    assert (made.next, made.paused) == (8, False)
    assert made.rejected(7, 30)
    assert made.next == 7


def test_a_state_transfer_pauses_until_it_is_over() -> None:
    made = replicating()
    made.sent(9, 60)
    made.become_snapshot()

    assert made.blocked(100)
    assert not made.rejected(9, 3)
    made.lost(2)
    assert (made.flow, made.match) == (Flow.SNAPSHOT, 2)
    made.become_probe(31)
    assert (made.flow, made.next, made.blocked(100)) == (Flow.PROBE, 31, False)


def test_a_peer_that_lost_its_log_is_fed_from_what_is_left() -> None:
    made = replicating()
    made.lost(2)

    assert (made.flow, made.match, made.next) == (Flow.PROBE, 2, 3)
