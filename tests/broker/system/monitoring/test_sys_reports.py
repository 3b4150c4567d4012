"""Reports on a made-up server: filters, sorting, pages, health, services, events."""

import gzip
import json
from collections.abc import Mapping
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING

import cramjam
import pytest

from jsctl.api.monitoring.health import HealthzOptions
from jsctl.broker.system.events import SysEvents
from jsctl.broker.system.monitoring.health import healthz
from jsctl.broker.system.monitoring.http import answer_http, known_page, page_of
from jsctl.broker.system.monitoring.view import Ailment, AssetHealth, HealthFacts
from jsctl.broker.system.monitoring.words import uptime
from jsctl.broker.system.requests import (
    ActionKind,
    Requester,
    SysAction,
    SysReply,
    SysRequest,
    SysServices,
    imported_subject,
)
from jsctl.broker.system.schedule import EventSchedule

if TYPE_CHECKING:
    from tests.broker.system.monitoring.conftest import FakeView

SECOND = 1_000_000_000


def get(view: "FakeView", path: str, **params: str) -> dict[str, object]:
    answer = answer_http(view, path, {key.replace("_", "-"): v for key, v in params.items()})
    assert answer.status == 200, answer.body
    document = json.loads(answer.body)
    assert isinstance(document, dict)
    return document


def rows(document: Mapping[str, object], key: str) -> list[dict[str, object]]:
    found = document[key]
    assert isinstance(found, list)
    return found


def test_uptime_words() -> None:
    day = 86_400
    lengths = [0, 59, 60, 3_725, day + 1, 366 * day]
    shown = [uptime(seconds * SECOND) for seconds in lengths]
    assert shown == ["0s", "59s", "1m0s", "1h2m5s", "1d0h0m1s", "1y1d0h0m0s"]


@pytest.mark.parametrize(
    ("sort", "cids"),
    [("", [7, 9]), ("start", [7, 9]), ("uptime", [7, 9]), ("msgs_to", [9, 7]), ("rtt", [9, 7])],
)
def test_connz_sorts(view: "FakeView", sort: str, cids: list[int]) -> None:
    view.conns[1] = replace(view.conns[1], out_msgs=5, rtt_ns=2**40)
    found = get(view, "/connz", sort=sort)
    assert [row["cid"] for row in rows(found, "connections")] == cids


def test_connz_filters_and_pages(view: "FakeView") -> None:
    assert get(view, "/connz", cid="9")["num_connections"] == 1
    assert get(view, "/connz", acc="A")["total"] == 1
    everything = get(view, "/connz", state="any", sort="cid", offset="1", limit="1")
    assert [row["cid"] for row in rows(everything, "connections")] == [7]
    assert (everything["total"], everything["offset"], everything["limit"]) == (3, 1, 1)
    detail = get(view, "/connz", subs="detail", cid="7")
    [row] = rows(detail, "connections")
    assert [sub["subject"] for sub in rows(row, "subscriptions_list_detail")] == ["keep.>", "foo"]


def test_connz_by_subject_needs_an_account(view: "FakeView") -> None:
    text = b"filter by subject only valid with account filtering"
    assert answer_http(view, "/connz", {"filter_subject": "foo"}).body == text
    for subject, found in (("keep.1", 1), ("other", 0)):
        answer = answer_http(view, "/connz", {"filter_subject": subject, "acc": "A"})
        assert json.loads(answer.body)["num_connections"] == found


def test_subsz_by_test_subject(view: "FakeView") -> None:
    found = get(view, "/subsz", subs="1", test="keep.it")
    assert [sub["subject"] for sub in rows(found, "subscriptions_list")] == ["keep.>"]
    assert found["num_subscriptions"] == 6


def test_jsz_levels(view: "FakeView") -> None:
    assert "account_details" not in get(view, "/jsz")
    [account] = rows(get(view, "/jsz", accounts="1"), "account_details")
    assert "stream_detail" not in account
    assert account["reserved_storage"] == 2**64 - 1
    whole = get(view, "/jsz", consumers="1", config="1", raft="1", direct_consumers="true")
    [account] = rows(whole, "account_details")
    [stream] = rows(account, "stream_detail")
    assert stream["stream_raft_group"] == "S-R3F-x"
    assert stream["consumer_raft_groups"] == [{"name": "C", "raft_group": "C-R3F-y"}]
    assert len(rows(stream, "direct_consumer_detail")) == 1
    assert (whole["streams_leader"], whole["consumers_leader"], whole["messages"]) == (1, 1, 5)


def test_jsz_without_jetstream_and_without_lead(view: "FakeView") -> None:
    assert view.js is not None
    view.js = replace(view.js, leads_meta=False)
    refused = answer_http(view, "/jsz", {"leader-only": "1"})
    assert (refused.status, refused.body) == (400, b"filtered response: not leader")
    view.js = None
    assert get(view, "/jsz")["disabled"] is True


def test_raftz(view: "FakeView") -> None:
    assert list(get(view, "/raftz")) == ["$SYS"]
    assert list(rows_of(get(view, "/raftz", acc="A"))) == ["S-R3F-x"]
    assert get(view, "/raftz", acc="A", group="other") == {}
    view.groups = None
    answer = answer_http(view, "/raftz", {})
    assert (answer.status, answer.body) == (404, b"No Raft nodes registered")


def rows_of(document: Mapping[str, object]) -> Mapping[str, object]:
    [groups] = document.values()
    assert isinstance(groups, dict)
    return groups


def test_ipqueuesz(view: "FakeView") -> None:
    assert get(view, "/ipqueuesz") == {"disk": {"pending": 3, "in_progress": 1}}
    assert get(view, "/ipqueuesz", all="1")["idle"] == {"pending": 0}


def test_index_base_path_and_counting(view: "FakeView") -> None:
    view.settings = replace(view.settings, http_base_path="/mon", server_name="<n1>")
    page = answer_http(view, "/mon/", {})
    assert b"./varz" in page.body and b"&lt;n1&gt;" in page.body
    assert answer_http(view, "/mon/varz", {}).status == 200
    assert answer_http(view, "/varz", {}).status == 404
    assert answer_http(view, "/monvarz", {}).status == 404
    assert (page_of("/mon", "/mon/varz"), page_of("/mon", "/mon"), page_of("", "")) == (
        "/varz",
        "/",
        "/",
    )
    assert known_page("/subscriptionsz") and not known_page("/nope") and not known_page("")


def test_varz_names_the_product(view: "FakeView") -> None:
    fields = list(get(view, "/varz"))
    assert fields[fields.index("version") + 1] == "jsctl_version"


ASSETS = [
    AssetHealth("A", "S"),
    AssetHealth("A", "S", "C", Ailment.NOT_CURRENT, "group is not current"),
    AssetHealth("B", "T", "", Ailment.WRITE_ERROR, "disk full"),
    AssetHealth("B", "U", "", Ailment.MISSING),
]
HOSTING = HealthFacts(assets=ASSETS, accounts=frozenset({"A", "B", "ELSEWHERE"}))


@pytest.mark.parametrize(
    ("facts", "asked", "code", "text"),
    [
        (HealthFacts(), HealthzOptions(), 200, ""),
        (HealthFacts(not_ready="not yet"), HealthzOptions(), 500, "not yet"),
        (HealthFacts(not_ready="no"), HealthzOptions(js_server_only=True), 500, "no"),
        (HealthFacts(jetstream_enabled=False), HealthzOptions(), 503, "JetStream not enabled"),
        (HealthFacts(jetstream_enabled=False), HealthzOptions(js_server_only=True), 200, ""),
        (HealthFacts(meta_problem="no leader"), HealthzOptions(), 503, "no leader"),
        (HealthFacts(meta_problem="no leader"), HealthzOptions(js_enabled_only=True), 200, ""),
        (HOSTING, HealthzOptions(js_meta_only=True), 200, ""),
        (
            HOSTING,
            HealthzOptions(),
            503,
            "JetStream consumer 'A > S > C' is not current: group is not current",
        ),
        (
            HOSTING,
            HealthzOptions(account="B"),
            503,
            "JetStream stream 'B > T' write error: disk full",
        ),
        (
            HOSTING,
            HealthzOptions(account="B", stream="U"),
            503,
            "JetStream stream 'B > U' could not be recovered",
        ),
        (
            HOSTING,
            HealthzOptions(account="A", stream="S", consumer="X"),
            404,
            'JetStream consumer "X" not found for stream "S" on account "A"',
        ),
        (HOSTING, HealthzOptions(account="ELSEWHERE"), 200, ""),
        (HOSTING, HealthzOptions(account="N"), 404, 'JetStream account "N" not found'),
        (
            HOSTING,
            HealthzOptions(account="ELSEWHERE", stream="S"),
            404,
            'JetStream stream "S" not found on account "ELSEWHERE"',
        ),
        (
            HOSTING,
            HealthzOptions(account="A", stream="X"),
            404,
            'JetStream stream "X" not found on account "A"',
        ),
    ],
)
def test_health(
    view: "FakeView", facts: HealthFacts, asked: HealthzOptions, code: int, text: str
) -> None:
    view.health_facts = facts
    found = healthz(view, asked)
    assert (found.status_code, found.error) == (code, text)
    detailed = healthz(view, replace(asked, details=True))
    assert (detailed.status_code, detailed.status) == (code, "error" if text else "ok")
    assert [error.error for error in detailed.errors][:1] == ([text] if text else [])


def test_health_details_list_all(view: "FakeView") -> None:
    view.health_facts = HOSTING
    errors = healthz(view, HealthzOptions(details=True)).errors
    assert [error.type for error in errors] == ["CONSUMER", "STREAM", "STREAM"]


def serve(
    view: "FakeView", subject: str, payload: bytes = b"", headers: bytes = b""
) -> SysReply | SysAction | None:
    request = SysRequest(subject, "_INBOX.1", headers, payload, Requester("$SYS"))
    return SysServices(lambda: "ID").serve(view, request)


def test_raft_groups_that_are_none_are_no_error_of_a_request(view: "FakeView") -> None:
    view.groups = None
    reply = serve(view, "$SYS.REQ.SERVER.PING.RAFTZ")
    assert isinstance(reply, SysReply)
    document = json.loads(reply.payload)
    assert document["data"] == {} and "error" not in document


@pytest.mark.parametrize(
    ("wanted", "answers"),
    [
        ({"server_name": "n"}, True),
        ({"server_name": "n", "exact_match": True}, False),
        ({"server_name": "n1", "exact_match": True}, True),
        ({"cluster": "C"}, True),
        ({"cluster": "X"}, False),
        ({"host": "10."}, False),
        ({"tags": ["SSD"]}, True),
        ({"tags": ["ssd", "hdd"]}, False),
        ({"domain": "hub"}, False),
    ],
)
def test_filters(view: "FakeView", wanted: dict[str, object], answers: bool) -> None:
    payload = json.dumps(wanted).encode()
    for kind in ("VARZ", "STATSZ"):
        assert (serve(view, f"$SYS.REQ.SERVER.PING.{kind}", payload) is not None) == answers
    assert serve(view, "$SYS.REQ.SERVER.PING.IDZ", payload) is not None


def test_requests_to_one_server(view: "FakeView") -> None:
    assert serve(view, "$SYS.REQ.SERVER.NAAA.VARZ") is not None
    assert serve(view, "$SYS.REQ.SERVER.NBBB.VARZ") is None
    assert serve(view, "$SYS.REQ.SERVER.NAAA.NOPE") is None
    kick = serve(view, "$SYS.REQ.SERVER.NAAA.KICK", b'{"cid":7}')
    assert kick == SysAction(ActionKind.KICK, 7)
    assert serve(view, "$SYS.REQ.SERVER.NAAA.RELOAD") == SysAction(ActionKind.RELOAD)
    failed = json.loads(SysServices(lambda: "ID").done(view, "no such client").payload)
    assert failed["error"] == {"code": 500, "description": "no such client"}
    assert list(json.loads(SysServices(lambda: "ID").done(view).payload)) == ["server"]


def test_compressed_answers(view: "FakeView") -> None:
    ask = b"NATS/1.0\r\nAccept-Encoding: gzip\r\n\r\n"
    reply = serve(view, "$SYS.REQ.SERVER.PING.VARZ", b"", ask)
    assert isinstance(reply, SysReply)
    assert reply.headers == b"NATS/1.0\r\nContent-Encoding: gzip\r\n\r\n"
    assert json.loads(gzip.decompress(reply.payload))["data"]["server_id"] == "NAAA"
    for name in (b"snappy", b"s2"):
        reply = serve(view, "$SYS.REQ.SERVER.PING.VARZ", b"", ask.replace(b"gzip", name))
        assert isinstance(reply, SysReply)
        assert reply.headers == b"NATS/1.0\r\nContent-Encoding: snappy\r\n\r\n"
        body = bytes(cramjam.snappy.decompress(reply.payload))
        assert json.loads(body)["data"]["server_id"] == "NAAA"
    plain = serve(view, "$SYS.REQ.SERVER.PING.VARZ", b"", ask.replace(b"gzip", b"br"))
    assert isinstance(plain, SysReply) and b"identity" in plain.headers


def test_number_of_subscribers(view: "FakeView") -> None:
    for payload, number in ((b"foo q", b"1"), (b"foo", b"1"), (b">", b"2"), (b"x", b"0")):
        request = SysRequest("$SYS.DEBUG.SUBSCRIBERS", "r", b"", payload, Requester("A"))
        assert SysServices(lambda: "ID").serve(view, request) == SysReply(number)
    asked = b'{"acc":"A","subject":"keep.1"}'
    assert serve(view, "$SYS.REQ.ACCOUNT.NSUBS", asked) == SysReply(b"1")


def test_imported_services() -> None:
    subject = imported_subject("$SYS.REQ.SERVER.PING.CONNZ", "A")
    assert subject == "$SYS.REQ.ACCOUNT.A.CONNZ"
    assert imported_subject("$SYS.REQ.SERVER.PING.VARZ", "A") is None


@pytest.mark.parametrize("payload", [b"[1]", b"3", b'{"server_name":3}', b"{", b"\xff"])
def test_bad_payloads_are_answered(view: "FakeView", payload: bytes) -> None:
    for kind in ("VARZ", "CONNZ", "STATSZ"):
        reply = serve(view, f"$SYS.REQ.SERVER.PING.{kind}", payload)
        assert isinstance(reply, SysReply)
        assert json.loads(reply.payload)["error"]["code"] == 400


def test_events(view: "FakeView") -> None:
    numbers = count()
    events = SysEvents(SysServices(lambda: f"ID{next(numbers)}"))
    [(subject, payload)] = events.connected(view, view.conns[0])
    message = json.loads(payload)
    assert subject == b"$SYS.ACCOUNT.A.CONNECT"
    assert list(message) == ["type", "id", "timestamp", "server", "client"]
    assert message["type"] == "io.nats.server.advisory.v1.client_connect"
    assert "rtt" not in message["client"] and message["server"]["seq"] == 1
    [(subject, payload)] = events.disconnected(view, view.closed[0])
    message = json.loads(payload)
    assert (subject, message["reason"]) == (b"$SYS.ACCOUNT.A.DISCONNECT", "Client Closed")
    assert message["server"]["seq"] == 2 and "stop" in message["client"]
    [(subject, _)] = events.refused(view, view.closed[0])
    assert subject == b"$SYS.SERVER.NAAA.CLIENT.AUTH.ERR"
    old, new = events.account_connections(view, view.accounts()[2])
    assert (old[0], new[0]) == (b"$SYS.SERVER.ACCOUNT.A.CONNS", b"$SYS.ACCOUNT.A.SERVER.CONNS")
    assert events.account_connections(view, view.accounts()[1]) == []
    for told, kind in ((events.shutdown, b"SHUTDOWN"), (events.lame_duck, b"LAMEDUCK")):
        [(subject, payload)] = told(view)
        assert subject == b"$SYS.SERVER.NAAA." + kind and json.loads(payload)["id"] == "NAAA"
    [(subject, payload)] = events.stats(view)
    assert subject == b"$SYS.SERVER.NAAA.STATSZ"
    assert "store_dir" not in json.loads(payload)["statsz"]["jetstream"]["config"]


def test_statistics_become_rarer() -> None:
    schedule = EventSchedule.starting(0)
    times, now_ns = [], 0
    while now_ns < 30 * SECOND:
        now_ns = schedule.deadline_ns()
        assert schedule.take_statsz(now_ns) and not schedule.take_statsz(now_ns)
        times.append(now_ns / SECOND)
    assert times == [0.25, 0.75, 1.75, 3.75, 7.75, 15.75, 25.75, 35.75]
    schedule.news(now_ns + 1)
    assert schedule.deadline_ns() == now_ns + SECOND


def test_account_events_repeat_until_idle() -> None:
    schedule = EventSchedule.starting(0)
    schedule.account_changed("A", 5)
    assert schedule.take_accounts(5) == ["A"] and schedule.take_accounts(6) == []
    assert schedule.take_accounts(30 * SECOND + 5) == ["A"]
    schedule.account_idle("A")
    assert schedule.take_accounts(90 * SECOND) == []


@pytest.mark.parametrize(
    "subject",
    [
        "$SYS.REQ.SERVER.PING.ACCSTATZ",
        "$SYS.REQ.SERVER.PING.KICK",
        "$SYS.REQ.SERVER.PING.VARZ.MORE",
        "$SYS.REQ.ACCOUNT.PING.CONNZ",
        "$SYS.REQ.ACCOUNT.A.NOPE",
        "$SYS.REQ.ACCOUNT.A.B.CONNZ",
        "$SYS.REQ.ACCOUNT.$G.STATZ",
        "$SYS.REQ.ACCOUNT.$G.CONNS",
        "$SYS.REQ.ACCOUNT.NSUBS",
        "$SYS.REQ.OTHER.X",
        "$SYS.OTHER",
    ],
)
def test_what_nobody_answers(view: "FakeView", subject: str) -> None:
    assert serve(view, subject) is None


def test_reports_need_a_reply(view: "FakeView") -> None:
    request = SysRequest("$SYS.REQ.SERVER.PING.VARZ", "", b"", b"", Requester("$SYS"))
    assert SysServices(lambda: "ID").serve(view, request) is None


def test_reports_on_an_account_without_jetstream(view: "FakeView") -> None:
    for account, text in (
        ("$G", 'account "$G" not jetstream enabled'),
        ("NOPE", 'account "NOPE" not found'),
    ):
        reply = serve(view, f"$SYS.REQ.ACCOUNT.{account}.JSZ")
        assert isinstance(reply, SysReply)
        answer = json.loads(reply.payload)
        assert answer["data"] is None
        assert answer["error"] == {"code": 500, "description": text}


def test_unused_accounts_on_request(view: "FakeView") -> None:
    assert [row["acc"] for row in rows(get(view, "/accstatz"), "account_statz")] == ["A"]
    everyone = get(view, "/accstatz", unused="1")
    assert [row["acc"] for row in rows(everyone, "account_statz")] == ["$SYS", "$G", "A"]
    reply = serve(view, "$SYS.REQ.ACCOUNT.$G.STATZ", b'{"include_unused":true}')
    assert isinstance(reply, SysReply)
