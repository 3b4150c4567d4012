"""Heartbeats between two servers on a simulated clock."""

from jsctl.broker.peers.liveness import (
    DOWN_AFTER_NS,
    HEARTBEAT_NS,
    Liveness,
    Restarted,
    WentDown,
    WentUp,
)

WAY_NS = 2_000_000


def exchange(a: Liveness, b: Liveness, now_ns: int) -> list[object]:
    """Both send what is due; it arrives one way later."""
    events: list[object] = []
    beats_a, beats_b = a.due(now_ns), b.due(now_ns)
    for _, beat in beats_a:
        events += b.heard("a", beat, now_ns + WAY_NS)
    for _, beat in beats_b:
        events += a.heard("b", beat, now_ns + WAY_NS)
    return events


def pair() -> tuple[Liveness, Liveness]:
    a, b = Liveness(11, 1), Liveness(22, 1)
    a.linked("b", 0)
    b.linked("a", 0)
    assert exchange(a, b, 0) == [WentUp("a"), WentUp("b")]
    return a, b


def test_up_with_the_first_heartbeat_and_round_trip_from_echoes() -> None:
    a, b = pair()
    for turn in range(1, 6):
        assert exchange(a, b, turn * HEARTBEAT_NS) == []
    assert a.is_up("b") and a.lives()[0].rtt_ns == 2 * WAY_NS
    assert b.deadline_ns() == 6 * HEARTBEAT_NS


def test_no_heartbeat_before_its_time() -> None:
    a, _ = pair()
    assert a.due(HEARTBEAT_NS - 1) == []
    assert [peer for peer, _ in a.due(HEARTBEAT_NS)] == ["b"]


def test_what_is_due_soon_goes_with_what_is_due() -> None:
    """Whoever has nothing else to do wakes once for all."""
    a, _ = pair()
    early_ns, late_ns = HEARTBEAT_NS // 4, HEARTBEAT_NS * 7 // 4
    a.linked("c", early_ns)
    assert [peer for peer, _ in a.due(early_ns)] == ["c"]
    assert [peer for peer, _ in a.due(HEARTBEAT_NS)] == ["b", "c"]
    a.linked("d", late_ns)
    assert [peer for peer, _ in a.due(late_ns)] == ["b", "c", "d"]
    assert a.due(late_ns + HEARTBEAT_NS - 1) == []
    assert len(a.due(late_ns + HEARTBEAT_NS)) == 3


def test_silence_brings_a_server_down_and_a_heartbeat_up_again() -> None:
    a, b = pair()
    assert a.tick(WAY_NS + DOWN_AFTER_NS - 1) == []
    assert a.tick(WAY_NS + DOWN_AFTER_NS) == [WentDown("b", closed=False)]
    assert a.tick(5 * DOWN_AFTER_NS) == [] and not a.is_up("b")
    [(_, beat)] = b.due(6 * DOWN_AFTER_NS)
    assert a.heard("b", beat, 6 * DOWN_AFTER_NS) == [WentUp("b")]


def test_what_was_on_its_way_during_a_silence_is_not_fresh() -> None:
    for silent in ("a stood still", "nothing came through"):
        a, b = pair()
        now_ns = HEARTBEAT_NS
        exchange(a, b, now_ns)
        late = [beat for at in range(2, 9) for _, beat in b.due(at * HEARTBEAT_NS)]
        now_ns = 20 * HEARTBEAT_NS
        if silent == "a stood still":
            a.stood_still()
        else:
            assert a.tick(now_ns) == [WentDown("b", closed=False)]
        for beat in late:
            a.heard("b", beat, now_ns)
            assert not a.is_fresh("b"), silent
        exchange(a, b, now_ns)
        assert not a.is_fresh("b"), "b has not heard anything of now when it sent that"
        exchange(a, b, now_ns + HEARTBEAT_NS)
        assert a.is_fresh("b"), silent


def test_a_new_connection_brings_what_is_of_now() -> None:
    a, _ = pair()
    a.stood_still()
    a.unlinked("b", 7)
    a.linked("b", HEARTBEAT_NS)
    assert a.is_fresh("b") and a.is_fresh("nobody")


def test_a_closed_connection_brings_it_down_at_once() -> None:
    a, _ = pair()
    assert a.unlinked("b", 7) == [WentDown("b", closed=True)]
    assert a.unlinked("b", 7) == [] and a.unlinked("nobody", 7) == []
    assert a.due(HEARTBEAT_NS * 9) == []
    assert not a.is_up("b")


def test_a_new_boot_is_a_restart() -> None:
    a, _ = pair()
    for boot, incarnation, changed in ((33, 1, False), (44, 2, True)):
        again = Liveness(boot, incarnation)
        again.linked("a", 0)
        [(_, beat)] = again.due(HEARTBEAT_NS)
        expected = [WentDown("b", False), Restarted("b", incarnation, changed), WentUp("b")]
        assert a.heard("b", beat, HEARTBEAT_NS) == expected


def test_late_and_doubled_heartbeats_change_nothing() -> None:
    a, b = pair()
    [(_, first)] = b.due(HEARTBEAT_NS)
    [(_, second)] = b.due(2 * HEARTBEAT_NS)
    assert a.heard("b", second, 2 * HEARTBEAT_NS) == []
    heard_ns = a.lives()[0].heard_ns
    assert a.heard("b", first, 3 * HEARTBEAT_NS) == []
    assert a.heard("b", second, 3 * HEARTBEAT_NS) == []
    assert a.lives()[0].heard_ns == heard_ns


def test_leaving_is_told_and_forgotten_peers_are_gone() -> None:
    a, b = pair()
    b.leaving = True
    exchange(a, b, HEARTBEAT_NS)
    assert a.lives()[0].leaving
    a.forget("b")
    assert a.lives() == [] and a.deadline_ns() is None
