"""What is remembered of requests that others decide on."""

from collections.abc import Callable, Sequence

from jsctl.broker.jetstream.requests import ApiRequest, ClientInfo
from jsctl.broker.jsapi import forwarded
from jsctl.broker.jsapi.forwarded import (
    ANSWERED_NS,
    INTERRUPTED_NS,
    LOOK_NS,
    SILENT_NS,
    Forwarded,
    SentRequest,
)


def request(number: int, reply: bytes = b"r") -> ApiRequest:
    return ApiRequest("A", b"%d" % number, reply, b"", b"", ClientInfo("A", conn=1), "me")


def forwarded_to(boot_of: Callable[[str], int]) -> Forwarded:
    """A server whose peers are all heard."""
    return Forwarded(boot_of, lambda peer: True)


def subjects(found: Sequence[ApiRequest | SentRequest]) -> list[int]:
    requests = (one.request if isinstance(one, SentRequest) else one for one in found)
    return [int(one.subject) for one in requests]


def test_those_of_a_process_that_is_gone_come_back_once() -> None:
    boots = {"p": 1, "q": 2}
    open_ = forwarded_to(lambda peer: boots.get(peer, 0))
    for number in range(6):
        open_.sent(request(number, b"r%d" % (number // 2)), "pq"[number % 2], number, 0)
    open_.answered("A", b"r0")
    assert open_.unanswered(10) == []
    boots["p"] = 3
    assert subjects(open_.unanswered(10)) == [2, 4]
    assert open_.unanswered(10) == []
    open_.sent(request(7), "p", 11, 0)
    del boots["q"], boots["p"]
    assert subjects(open_.unanswered(12)) == [1, 3, 5, 7]
    open_.answered("A", b"r1")
    assert open_.unanswered(12) == []


def test_what_nobody_waits_for_is_forgotten() -> None:
    boots = {"p": 1}
    open_ = forwarded_to(lambda peer: boots[peer])
    open_.sent(request(0), "p", 0, 0)
    open_.sent(request(1), "p", 5, 5)
    open_.sent(request(2, b""), "p", 5, 5)
    boots["p"] = 2
    assert subjects(open_.late(ANSWERED_NS + 3)) == [0]
    assert subjects(open_.unanswered(ANSWERED_NS + 3)) == [1]
    assert open_.late(2 * ANSWERED_NS) == []


def test_a_request_that_leaves_again_is_one_and_its_age_counts_on() -> None:
    open_ = forwarded_to(lambda peer: 1)
    open_.sent(request(1), "p", 0, 0)
    open_.sent(request(1), "q", ANSWERED_NS - 1, 0, again=True)
    assert open_.late(ANSWERED_NS - 1) == []
    assert subjects(open_.late(ANSWERED_NS)) == [1]
    assert not open_.answered("A", b"r")


def test_one_answer_for_each_request() -> None:
    open_ = forwarded_to(lambda peer: 1)
    assert not open_.answered("A", b"r"), "nobody asked"
    assert open_.answered_here("A", b"r")
    open_.sent(request(1), "p", 0, 0)
    open_.sent(request(2), "p", 0, 0)
    assert [open_.answered("A", b"r") for _ in range(3)] == [True, True, False]
    (one,) = (request(3),)
    open_.sent(one, "p", 0, 0)
    assert subjects(open_.late(ANSWERED_NS)) == [3]
    open_.give_up(one)
    assert not open_.answered("A", b"r") and not open_.answered_here("A", b"r")
    open_.anew(one)
    assert open_.answered_here("A", b"r"), "he asks again"


def test_each_server_may_answer_who_asked_all() -> None:
    open_ = forwarded_to(lambda peer: 1)
    open_.asked_all(request(1))
    assert [open_.answered("A", b"r") for _ in range(3)] == [True] * 3


def test_only_so_many_are_remembered() -> None:
    boots = {"p": 1}
    open_ = forwarded_to(lambda peer: boots[peer])
    for number in range(forwarded.OPEN_MAX + 5):
        open_.sent(request(number), "p", 0, 0)
    boots["p"] = 2
    assert subjects(open_.unanswered(1)) == list(range(5, forwarded.OPEN_MAX + 5))


def test_what_is_returned_is_not_open_any_more() -> None:
    open_ = forwarded_to(lambda peer: 1)
    for number in range(3):
        open_.sent(request(number), "p", number, 10 + number)
    assert open_.returned("A", b"r", b"9") is None
    found = open_.returned("A", b"r", b"1")
    assert found is not None and (found.request.subject, found.asked_ns) == (b"1", 11)
    assert open_.returned("A", b"r", b"1") is None
    open_.boot_of = lambda peer: 2
    assert subjects(open_.unanswered(3)) == [0, 2]


def test_what_was_sent_before_a_link_closed_has_some_time_for_an_answer() -> None:
    open_ = forwarded_to(lambda peer: 1)
    for number in range(4):
        open_.sent(request(number, b"r%d" % number), "pq"[number % 2], number, 0)
    open_.interrupted("p", 2)
    open_.sent(request(4, b"r4"), "p", 3, 0)
    open_.answered("A", b"r0")
    assert open_.unanswered(2 + INTERRUPTED_NS) == []
    assert subjects(open_.unanswered(3 + INTERRUPTED_NS)) == [2]
    assert open_.unanswered(4 + INTERRUPTED_NS) == []


def test_a_link_that_closes_again_and_again_puts_nothing_off() -> None:
    open_ = forwarded_to(lambda peer: 1)
    second = INTERRUPTED_NS // 2
    found: list[int] = []
    for moment in range(8):
        open_.sent(request(moment, b"r%d" % moment), "p", moment * second, 0)
        open_.interrupted("p", moment * second)
        found += subjects(open_.unanswered(moment * second + 1))
    assert found == [0, 1, 2, 3, 4]


def test_words_that_are_lost_may_be_any_answer() -> None:
    open_ = forwarded_to(lambda peer: 1)
    for number in range(4):
        open_.sent(request(number, b"r%d" % number), "pq"[number % 2], number, 0)
    open_.interrupted_all(2)
    assert subjects(open_.unanswered(3 + INTERRUPTED_NS)) == [0, 1, 2]


def test_who_was_told_that_nobody_answers_is_not_answered_when_the_request_passes_by_again() -> (
    None
):
    open_ = forwarded_to(lambda peer: 1)
    open_.sent(request(1), "p", 0, 0)
    assert open_.answered_here("A", b"r")
    open_.give_up(request(1))
    open_.sent(request(1), "q", 9, 0, again=True)
    assert not open_.answered("A", b"r")
    assert open_.late(2 * ANSWERED_NS) == [], "nor told so again"
    open_.anew(request(2))
    open_.sent(request(2), "p", 10, 10)
    assert open_.answered("A", b"r")


def test_a_silent_server_is_waited_for_and_others_are_asked_meanwhile() -> None:
    silent: set[str] = set()
    open_ = Forwarded(lambda peer: 1, lambda peer: peer not in silent)
    open_.sent(request(1, b"a"), "p", 0, 0)
    open_.sent(request(2, b"b"), "p", 0, 0, repeatable=True)
    open_.sent(request(3, b"c"), "q", 0, 0)
    open_.sent(request(4, b"d"), "", 0, 0)
    assert open_.unanswered(SILENT_NS // 2) == []
    silent.add("p")
    assert subjects(open_.unanswered(SILENT_NS - 1)) == [2]
    assert open_.answered("A", b"d")
    found = [subjects(open_.unanswered(SILENT_NS + n * LOOK_NS)) for n in range(3)]
    assert found == [[], [1], []]
    assert open_.answered("A", b"c") and not open_.answered("A", b"a")


def test_an_answer_comes_from_a_server_that_was_silent() -> None:
    silent = {"p"}
    open_ = Forwarded(lambda peer: 1, lambda peer: peer not in silent)
    open_.sent(request(1), "p", 0, 0)
    assert open_.unanswered(SILENT_NS - 1) == []
    silent.clear()
    assert open_.unanswered(2 * SILENT_NS) == [] and open_.answered("A", b"r")


def test_a_question_that_several_decide_on_has_one_answer() -> None:
    silent = {"p"}
    open_ = Forwarded(lambda peer: 1, lambda peer: peer not in silent)
    open_.sent(request(1), "p", 0, 0, repeatable=True)
    (lost,) = open_.unanswered(LOOK_NS)
    open_.ask_again(lost, LOOK_NS)
    assert open_.waits(lost.request)
    open_.sent(lost.request, "q", LOOK_NS, 0, again=True, repeatable=True)
    assert [open_.answered("A", b"r") for _ in range(2)] == [True, False]
    assert not open_.waits(lost.request) and not open_.answered_here("A", b"r")
    open_.anew(request(2))
    assert open_.answered_here("A", b"r"), "he asks something else"


def test_a_question_that_is_given_back_while_it_waits_here_is_still_one() -> None:
    open_ = Forwarded(lambda peer: 1, lambda peer: False)
    open_.sent(request(1), "p", 0, 0, repeatable=True)
    (lost,) = open_.unanswered(LOOK_NS)
    open_.ask_again(lost, LOOK_NS)
    assert open_.returned("A", b"r", b"1") is None
    assert open_.answered_here("A", b"r")
    open_.sent(request(1), "q", 2 * LOOK_NS, 0, again=True)
    assert not open_.answered("A", b"r"), "another server had kept it"
    assert not open_.answered_here("A", b"r")


def test_a_question_that_nobody_answers_the_second_time_is_given_up() -> None:
    open_ = Forwarded(lambda peer: 1, lambda peer: False)
    open_.sent(request(1), "p", 0, 0, repeatable=True)
    (lost,) = open_.unanswered(LOOK_NS)
    open_.ask_again(lost, LOOK_NS)
    (late,) = open_.late(ANSWERED_NS)
    assert open_.answered_here("A", b"r"), "it is said that nobody answers"
    open_.give_up(late)
    assert not open_.answered_here("A", b"r")
