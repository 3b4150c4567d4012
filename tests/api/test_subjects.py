"""Subjects of the API, acknowledgements and system services."""

import pytest

from jsctl.api.subjects import (
    ROUTES,
    ApiCall,
    ack_prefix,
    ack_tail,
    api_subject,
    domain_prefix,
    parse_ack,
    parse_api,
    parse_server_request,
    server_request,
)


@pytest.mark.parametrize(("operation", "words", "names"), ROUTES, ids=[r[0] for r in ROUTES])
def test_every_operation_comes_back(operation: str, words: str, names: int) -> None:
    given = ("S", "C")[:names]
    subject = api_subject(operation, *given)
    assert subject == b"$JS.API." + ".".join((words, *given)).encode()
    assert parse_api(subject) == ApiCall(operation, *given)


@pytest.mark.parametrize(
    "subject",
    [
        b"$JS.API.STREAM.CREATE.A.B",
        b"$JS.API.STREAM.CREATE",
        b"$JS.API.STREAM.CREATE.",
        b"$JS.API.NOTHING",
        b"$JS.API.INFO.X",
        b"$JS.APIS.INFO",
        b"foo",
    ],
)
def test_what_no_request_answers_to(subject: bytes) -> None:
    assert parse_api(subject) is None


def test_open_ended_subjects() -> None:
    assert parse_api(b"$JS.API.CONSUMER.CREATE.S.C.a.*.>") == ApiCall(
        "consumer_create", "S", "C", "a.*.>"
    )
    assert parse_api(b"$JS.API.DIRECT.GET.S.a.b") == ApiCall("direct_get", "S", "", "a.b")
    assert api_subject("account_info", prefix=domain_prefix("hub")) == b"$JS.hub.API.INFO"


def test_both_forms_of_acknowledgement_subjects() -> None:
    subject = ack_prefix("S", "C") + ack_tail(1, 22, 3, 1_700_000_000_000_000_000, 7)
    ack = parse_ack(subject)
    assert ack is not None
    assert (ack.stream, ack.consumer, ack.deliveries, ack.stream_seq, ack.consumer_seq) == (
        "S",
        "C",
        1,
        22,
        3,
    )
    assert (ack.time_ns, ack.pending, ack.domain) == (1_700_000_000_000_000_000, 7, "")
    long = parse_ack(b"$JS.ACK.hub.hAsH.S.C.1.2.3.4.5.tok")
    assert long is not None
    assert (long.domain, long.account_hash, long.stream, long.pending) == ("hub", "hAsH", "S", 5)
    assert parse_ack(b"$JS.ACK.S.C.1.2.3.4.x") is None
    assert parse_ack(b"$JS.ACK.S.C.1.2.3.4.5.6") is None


def test_system_requests() -> None:
    assert server_request("") == b"$SYS.REQ.SERVER.PING"
    assert server_request("JSZ") == b"$SYS.REQ.SERVER.PING.JSZ"
    assert parse_server_request(server_request("VARZ", "NABC")) == ("NABC", "VARZ")
    assert parse_server_request(b"$SYS.REQ.SERVER.PING") == ("PING", "")
    assert parse_server_request(b"$SYS.REQ.ACCOUNT.PING.CONNZ") is None
