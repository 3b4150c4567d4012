"""Our reports beside those of a running nats-server: same keys, order, status and texts."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import TYPE_CHECKING

import nats
import pytest
from nats.aio.msg import Msg
from nats.js.api import AckPolicy, ConsumerConfig

from jsctl.broker.system.events import SysEvents
from jsctl.broker.system.monitoring.http import answer_http
from jsctl.broker.system.monitoring.view import ServerView
from jsctl.broker.system.requests import Requester, SysReply, SysRequest, SysServices
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from tests.broker.system.monitoring.conftest import FakeView, RealServer

pytestmark = pytest.mark.processes

# Keys that depend on facts which the two servers do not share.
FREE = {
    "jsctl_version", "jsctl_internal_errors", "jsctl_lane", "git_commit", "auth_required",
    "metadata", "feature_flags", "cluster",
    "meta_cluster", "name", "leader_since", "replicas", "raft_group", "stream_raft_group",
    "consumer_raft_groups", "system_account", "traffic_account", "is_system", "tags", "domain",
    "config", "http_req_stats", "meta", "mirror", "deleted", "last_active", "placement",
    "qgroup", "max", "subscriptions_list_detail", "subjects", "num_deleted", "authorized_user",
    "push_bound", "duplicate_window", "connect_urls", "gomemlimit", "stop", "reason", "user",
    "account", "inflight", "write_timeout", "routes", "sync_interval", "active_servers", "lang",
    "version", "rtt", "name_tag", "state", "num_subjects",
}  # fmt: skip


def keys(document: object, path: str = "") -> list[str]:
    """Paths of all keys in order, of the first item of lists only."""
    if isinstance(document, list):
        return keys(document[0], path + "[]") if document else []
    if not isinstance(document, dict):
        return []
    found: list[str] = []
    for key, value in document.items():
        if key not in FREE:
            found += [f"{path}.{key}", *keys(value, f"{path}.{key}")]
    return found


@pytest.fixture
async def busy(real: "RealServer") -> AsyncIterator["RealServer"]:
    """The real server with a client, a subscription, a stream and a consumer."""
    await (await nats.connect(f"nats://a:a@127.0.0.1:{real.client_port}", name="gone")).close()
    client = await nats.connect(f"nats://a:a@127.0.0.1:{real.client_port}", name="own")
    await client.subscribe("keep.>")
    await client.subscribe("foo", queue="q")
    jetstream = client.jetstream(timeout=30)
    await jetstream.add_stream(name="S", subjects=["s.>"])
    await jetstream.publish("s.1", b"x")
    await jetstream.add_consumer(
        "S", ConsumerConfig(durable_name="C", ack_policy=AckPolicy.EXPLICIT)
    )
    yield real
    await client.close()


@pytest.mark.parametrize(
    "path",
    [
        "/varz",
        "/connz?subs=1&auth=1",
        "/connz?state=closed",
        "/routez",
        "/gatewayz",
        "/leafz",
        "/subsz",
        "/subsz?subs=1&acc=A&limit=1",
        "/accountz",
        "/accountz?acc=A",
        "/accstatz",
        "/jsz",
        "/jsz?acc=A&consumers=1",
        "/healthz",
        "/healthz?details=1",
        "/healthz?stream=X",
        "/healthz?account=A&consumer=X",
        "/healthz?account=NOPE",
        "/healthz?account=NOPE&details=true",
        "/ipqueuesz?queues=nothing",
        "/connz?limit=abc",
        "/connz?limit=99999999999999999999",
        "/connz?cid=-1",
        "/connz?auth=maybe",
        "/connz?sort=bogus",
        "/connz?sort=stop",
        "/connz?state=odd",
        "/subsz?test=a..b",
        "/accountz?acc=NOPE",
        "/nope",
    ],
)
async def test_http(busy: "RealServer", view: "FakeView", path: str) -> None:
    status, kind, body = busy.get(path)
    target, _, query = path.partition("?")
    params = dict(part.split("=") for part in query.split("&") if part)
    ours = answer_http(view, target, params)
    assert (ours.status, ours.content_type) == (status, kind)
    if status == 200:
        assert keys(json.loads(ours.body)) == keys(json.loads(body))
        assert ours.body[:4] == body[:4]
    else:
        assert ours.body == body


async def test_services(busy: "RealServer", view: "FakeView") -> None:
    client = await nats.connect(f"nats://sys:sys@127.0.0.1:{busy.client_port}")
    services = SysServices(lambda: "ID")
    try:
        for subject, payload in [
            ("$SYS.REQ.SERVER.PING", b""),
            ("$SYS.REQ.SERVER.PING.STATSZ", b'{"server_name":"n1"}'),
            ("$SYS.REQ.SERVER.PING.VARZ", b""),
            ("$SYS.REQ.SERVER.PING.IDZ", b""),
            ("$SYS.REQ.SERVER.PING.CONNZ", b'{"auth":true,"subscriptions":true,"acc":"A"}'),
            ("$SYS.REQ.SERVER.PING.JSZ", b'{"account":"A","consumer":true}'),
            ("$SYS.REQ.SERVER.PING.HEALTHZ", b"{}"),
            ("$SYS.REQ.SERVER.PING.SUBSZ", b'{"subscriptions":true,"account":"A"}'),
            ("$SYS.REQ.SERVER.PING.ACCOUNTZ", b'{"account":"A"}'),
            ("$SYS.REQ.SERVER.PING.CONNZ", b'{"sort":"bogus"}'),
            ("$SYS.REQ.SERVER.PING.CONNZ", b'{"limit":"x"}'),
            ("$SYS.REQ.SERVER.PING.JSZ", b"xyz"),
            ("$SYS.REQ.SERVER.PING.JSZ", b'{"streams":1}'),
            ("$SYS.REQ.ACCOUNT.A.INFO", b""),
            ("$SYS.REQ.ACCOUNT.A.STATZ", b""),
            ("$SYS.REQ.ACCOUNT.A.CONNZ", b""),
            ("$SYS.REQ.ACCOUNT.A.JSZ", b'{"streams":true}'),
            ("$SYS.REQ.ACCOUNT.A.SUBSZ", b""),
            ("$SYS.REQ.ACCOUNT.A.LEAFZ", b""),
            ("$SYS.REQ.ACCOUNT.A.CONNS", b""),
            ("$SYS.REQ.ACCOUNT.NOPE.INFO", b""),
            ("$SYS.REQ.ACCOUNT.PING.STATZ", b""),
        ]:
            theirs = json.loads((await client.request(subject, payload, timeout=20)).data)
            ours = ask(services, view, subject, payload, "$SYS")
            assert ours is not None, subject
            assert keys(ours) == keys(theirs), subject
            assert ours.get("error") == theirs.get("error"), subject
    finally:
        await client.close()


async def test_services_of_an_ordinary_account(busy: "RealServer", view: "FakeView") -> None:
    client = await nats.connect(f"nats://a:a@127.0.0.1:{busy.client_port}")
    try:
        for subject in (
            "$SYS.REQ.ACCOUNT.PING.CONNZ",
            "$SYS.REQ.SERVER.PING.CONNZ",
            "$SYS.REQ.ACCOUNT.PING.STATZ",
            "$SYS.REQ.USER.INFO",
        ):
            theirs = json.loads((await client.request(subject, b"", timeout=20)).data)
            ours = ask(SysServices(lambda: "ID"), view, subject, b"", "A")
            assert keys(ours) == keys(theirs), subject
        assert ask(SysServices(lambda: "ID"), view, "$SYS.REQ.SERVER.PING.VARZ", b"", "A") is None
    finally:
        await client.close()


async def test_events(real: "RealServer", view: "FakeView") -> None:
    """A login, a failed one and a logout, seen by the system account."""
    url = f"127.0.0.1:{real.client_port}"
    system = await nats.connect(f"nats://sys:sys@{url}")
    theirs: dict[str, list[str]] = {}

    async def heard(message: Msg) -> None:
        theirs.setdefault(message.subject.rpartition(".")[2], keys(json.loads(message.data)))

    await system.subscribe("$SYS.ACCOUNT.A.*", cb=heard)
    await system.subscribe("$SYS.ACCOUNT.A.SERVER.CONNS", cb=heard)
    await system.subscribe("$SYS.SERVER.*.CLIENT.AUTH.ERR", cb=heard)
    await system.subscribe("$SYS.SERVER.*.STATSZ", cb=heard)
    await system.flush()
    await (await nats.connect(f"nats://a:a@{url}", name="own")).close()
    reader, writer = await asyncio.open_connection("127.0.0.1", real.client_port)
    wrong = {"user": "a", "pass": "wrong", "name": "own", "lang": "x", "version": "1"}
    writer.write(f"CONNECT {json.dumps(wrong)}\r\nPING\r\n".encode())
    await reader.read()
    writer.close()
    await writer.wait_closed()

    async def all_heard() -> bool:
        return {"CONNECT", "DISCONNECT", "CONNS", "ERR", "STATSZ"} <= theirs.keys()

    await eventually(all_heard, "events of the real server")
    await system.close()
    events = SysEvents(SysServices(lambda: "ID"))
    refused = replace(view.closed[0], account="$G")
    ours = {
        "CONNECT": events.connected(view, view.conns[0]),
        "DISCONNECT": events.disconnected(view, view.closed[0]),
        "CONNS": events.account_connections(view, view.accounts()[2]),
        "ERR": events.refused(view, refused),
        "STATSZ": events.stats(view),
    }
    for kind, made in ours.items():
        assert keys(json.loads(made[0][1])) == theirs[kind], kind


def ask(
    services: SysServices, view: ServerView, subject: str, payload: bytes, account: str
) -> dict[str, object] | None:
    request = SysRequest(subject, "_INBOX.1", b"", payload, Requester(account, "a"))
    outcome = services.serve(view, request)
    if outcome is None:
        return None
    assert isinstance(outcome, SysReply)
    answer = json.loads(outcome.payload)
    assert isinstance(answer, dict)
    return answer
