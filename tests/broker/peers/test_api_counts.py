"""Words of the API that are lost between two servers are missed by both."""

from jsctl.broker.peers.api_counts import ApiCounts, Lost
from jsctl.broker.peers.items import (
    Answered,
    ApiCount,
    GatherReply,
    GatherRequest,
    PeerFrame,
    PeerHeartbeat,
    Returned,
)

NOTHING = Lost(theirs=False, mine=False)
BEAT = PeerHeartbeat(boot=1, incarnation=1, sequence=1)


class Side:
    """A server and what it hears of the other one."""

    def __init__(self, boot: int) -> None:
        self.boot = boot
        self.counts = ApiCounts()

    def beat(self) -> ApiCount:
        frame = PeerFrame("me", heartbeat=BEAT)
        self.counts.leaving("you", frame)
        return frame.counts[0]

    def word(self) -> ApiCount:
        frame = PeerFrame("me", items=[Answered("A", b"r")])
        self.counts.leaving("you", frame)
        return frame.counts[0]

    def hears(self, other: "Side", count: ApiCount) -> Lost:
        return self.counts.came("you", other.boot, count)


def test_nothing_is_missed_that_comes() -> None:
    one, other = Side(1), Side(2)
    assert other.hears(one, one.beat()) == NOTHING
    for _ in range(3):
        assert other.hears(one, one.word()) == NOTHING
        assert one.hears(other, other.word()) == NOTHING
    assert other.hears(one, one.beat()) == NOTHING


def test_what_is_lost_is_missed_by_who_wanted_it_and_then_by_who_sent_it() -> None:
    one, other = Side(1), Side(2)
    assert other.hears(one, one.beat()) == one.hears(other, other.beat()) == NOTHING
    one.word()
    assert other.hears(one, one.beat()) == Lost(theirs=True, mine=False)
    assert other.hears(one, one.beat()) == NOTHING
    assert one.hears(other, other.beat()) == Lost(theirs=False, mine=True)
    assert one.hears(other, other.beat()) == NOTHING


def test_the_next_word_tells_as_well_as_a_heartbeat() -> None:
    one, other = Side(1), Side(2)
    other.hears(one, one.word())
    one.word()
    assert other.hears(one, one.word()).theirs
    assert not other.hears(one, one.word()).theirs


def test_a_word_that_is_overtaken_hides_no_other_that_is_lost() -> None:
    one, other = Side(1), Side(2)
    other.hears(one, one.beat())
    late = one.word()
    assert other.hears(one, one.word()).theirs
    assert not other.hears(one, late).theirs
    one.word()
    assert other.hears(one, one.beat()).theirs


def test_another_process_counts_anew() -> None:
    one, other = Side(1), Side(2)
    for _ in range(5):
        other.hears(one, one.word())
    again = Side(3)
    assert other.hears(again, again.beat()) == NOTHING
    assert other.hears(again, again.word()) == NOTHING


def test_what_was_said_before_anything_was_heard_is_missed() -> None:
    one, other = Side(1), Side(2)
    one.word()
    assert other.hears(one, one.beat()).theirs
    assert one.hears(other, other.beat()) == NOTHING, "it sent nothing to who was not heard"


def test_frames_of_groups_alone_have_no_count() -> None:
    frame = PeerFrame("me")
    ApiCounts().leaving("you", frame)
    assert frame.counts == []


def test_all_that_somebody_waits_for_are_words() -> None:
    for frame in (
        PeerFrame("me", items=[Returned("A", b"r", b"s", untouched=True)]),
        PeerFrame("me", items=[GatherRequest(1, "A", [])]),
        PeerFrame("me", items=[GatherReply(1, [])]),
    ):
        assert frame.has_words
    assert not PeerFrame("me", heartbeat=BEAT).has_words
