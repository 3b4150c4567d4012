"""API requests as they are captured."""

from jsctl.broker.interest.targets import Captured, RouteLink
from jsctl.broker.jsapi.subscriptions import PATTERNS, ApiSubscriptions, from_server, request_of
from jsctl.broker.subject.matching import matches
from tests.support.node_play import NodePlay

DOOR = ApiSubscriptions("A", False, b"$JS.hub.API.")


def captured(subject: bytes, origin: object = None) -> Captured:
    """A message."""
    return (subject, b"reply", b"", b"body", origin)


def test_the_domain_is_taken_out_of_the_subject() -> None:
    for subject in (b"$JS.hub.API.STREAM.INFO.S", b"$JS.API.STREAM.INFO.S"):
        request = request_of(DOOR, captured(subject), "me", "C", "n1")
        assert request.subject == b"$JS.API.STREAM.INFO.S"
        assert (request.account, request.reply, request.payload) == ("A", b"reply", b"body")
        assert request.entry == "me" and not request.system
    other = request_of(DOOR, captured(b"$JS.huba.API.INFO"), "me", "C", "n1")
    assert other.subject == b"$JS.huba.API.INFO"


def test_who_asks_is_told_as_far_as_it_is_known() -> None:
    play = NodePlay()
    play.connect("a")
    (session,) = play.node.sessions
    request = request_of(DOOR, captured(b"$JS.API.INFO", session), "me", "C", "n1")
    assert (request.client.user, request.client.name) == ("a", "test a")
    assert (request.client.server, request.client.cluster) == ("n1", "C")
    nobody = request_of(DOOR, captured(b"$JS.API.INFO"), "me", "C", "n1")
    assert nobody.client.user == "" and nobody.client.account == "A"


def test_messages_of_routes_are_told_apart() -> None:
    link = RouteLink(1, "N2", None, 0, 1)
    assert from_server(captured(b"x", link)) is link and from_server(captured(b"x")) is None


def test_what_others_serve_is_not_taken() -> None:
    def taken(subject: bytes) -> bool:
        return any(matches(subject, pattern.encode()) for pattern in PATTERNS)

    assert taken(b"INFO") and taken(b"STREAM.INFO.S") and taken(b"CONSUMER.CREATE.S.C.f.>")
    assert not taken(b"CONSUMER.MSG.NEXT.S.C") and not taken(b"DIRECT.GET.S.x")
