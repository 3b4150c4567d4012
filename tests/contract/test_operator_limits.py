"""Operator mode: limits and permissions of users and accounts, on both servers."""

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from jsctl.auth.claims import (
    Account,
    JetStreamLimits,
    MsgTrace,
    NatsLimits,
    Permission,
    Permissions,
    ResponsePermission,
    TimeRange,
    UserLimits,
    UserPermissionLimits,
    WeightedMapping,
)
from jsctl.auth.keys import KeyPair
from jsctl.dataclass import replace
from jsctl.testing import Broker
from tests.contract.conftest import KINDS
from tests.support.login import Caller
from tests.support.operators import FREE, NO_STORAGE, OperatorWorld, account_key, limits, scope

NOTHING = UserPermissionLimits()
SMALL_KEY, FREE_KEY = account_key(), account_key()
SMALL = UserPermissionLimits(nats=NatsLimits(2, -1, 10))


def permissions(
    publish: tuple[str, ...] = (),
    subscribe: tuple[str, ...] = (),
    responses: ResponsePermission | None = None,
    no_publish: tuple[str, ...] = (),
) -> Permissions:
    """Of a user, or those of an account that its users have by default."""
    return Permissions(Permission(publish, no_publish), Permission(subscribe), responses)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> OperatorWorld:
    """Accounts with limits of all kinds."""
    made = OperatorWorld(tmp_path_factory.mktemp("world"))
    keys = (scope(SMALL_KEY, SMALL), scope(FREE_KEY))
    narrow = limits(nats=NatsLimits(3, -1, 20))
    made.account("free", Account(signing_keys=keys))
    made.account("narrow", Account(limits=narrow, signing_keys=keys))
    made.account("few", Account(limits=limits(connections=2)))
    made.account("nobody", Account(limits=limits(connections=0)))
    made.account(
        "defaults", Account(default_permissions=permissions(("may.>",), ("may.>", "_INBOX.>")))
    )
    made.account(
        "mapped",
        Account(
            mappings={
                "from.*": (WeightedMapping("to.{{wildcard(1)}}"),),
                "half": (WeightedMapping("one", 100),),
            }
        ),
    )
    made.account("traced", Account(trace=MsgTrace("traces", 100)))
    made.account("no storage", Account(limits=limits(NO_STORAGE)))
    made.account(
        "some storage",
        Account(
            limits=limits(JetStreamLimits(4096, 8192, 1, 1, 7, 2048, 4096, max_bytes_required=True))
        ),
    )
    return made


@pytest.fixture(scope="module", params=list(KINDS))
def server(request: pytest.FixtureRequest, world: OperatorWorld) -> Iterator[Broker]:
    """A server with JetStream."""
    with KINDS[str(request.param)]("-js", config=world.config(), name="one") as running:
        yield running


@pytest.fixture
def caller(server: Broker) -> Iterator[Caller]:
    """A connection that has said nothing."""
    with Caller(server.port) as made:
        yield made


def enter(
    caller: Caller,
    world: OperatorWorld,
    account: str = "free",
    rules: UserPermissionLimits = FREE,
    issuer: KeyPair | None = None,
    **more: Any,
) -> Caller:
    """Log in as a new user."""
    member = world.user(account, rules=rules, issuer=issuer, **more)
    assert caller.login(member.login(caller.challenge)), caller.refusal
    return caller


def rest(caller: Caller) -> list[str]:
    """What is said until the server hangs up."""
    heard: list[str] = []
    while line := caller.line():
        if not line.startswith("PING") and line != "PONG":
            heard.append(line)
    return heard


def closed_by(caller: Caller, lines: bytes) -> list[str]:
    """What somebody hears who is closed for what it says."""
    caller.send(lines)
    return rest(caller)


SUBSCRIPTIONS = b"".join(b"SUB x.%d %d\r\n" % (n, n) for n in range(4))
COUNTS: dict[str, tuple[str, UserPermissionLimits, KeyPair | None, int, int]] = {
    "the user's": ("free", SMALL, None, 2, 10),
    "the signing key's": ("free", NOTHING, SMALL_KEY, 2, 10),
    "the account's": ("narrow", FREE, None, 3, 20),
    "the account's, by a key": ("narrow", NOTHING, FREE_KEY, 3, 20),
    "the lower ones": ("narrow", SMALL, None, 2, 10),
    "the lower ones, by a key": ("narrow", NOTHING, SMALL_KEY, 2, 10),
}


@pytest.mark.parametrize("whose", list(COUNTS))
def test_subscriptions_are_limited(caller: Caller, world: OperatorWorld, whose: str) -> None:
    account, rules, key, count, _ = COUNTS[whose]
    enter(caller, world, account, rules, key)
    heard = caller.ask(SUBSCRIPTIONS)
    assert heard == ["-ERR 'maximum subscriptions exceeded'"] * (4 - count)
    assert caller.ask(b"UNSUB 0\r\nSUB y 9\r\n") == []


@pytest.mark.parametrize("whose", list(COUNTS))
def test_payloads_are_limited(caller: Caller, world: OperatorWorld, whose: str) -> None:
    account, rules, key, _, size = COUNTS[whose]
    enter(caller, world, account, rules, key)
    assert caller.ask(b"PUB x %d\r\n%s\r\n" % (size, b"a" * size)) == []
    heard = closed_by(caller, b"PUB x %d\r\n%s\r\n" % (size + 1, b"a" * (size + 1)))
    assert heard == ["-ERR 'Maximum Payload Violation'"]


def test_a_client_is_told_its_own_limit(caller: Caller, world: OperatorWorld) -> None:
    whole = caller.info["max_payload"]
    member = world.user("free", rules=SMALL)
    caller.send(f"CONNECT {json.dumps(member.login(caller.challenge, protocol=1))}\r\n".encode())
    infos = [line for line in caller.ask(b"") if line.startswith("INFO ")]
    sizes = [json.loads(line.removeprefix("INFO "))["max_payload"] for line in infos]
    assert whole == 1048576 and all(size in (10, whole) for size in sizes)
    assert sizes[-1:] in ([], [10]), sizes


def test_connections_of_an_account_are_limited(server: Broker, world: OperatorWorld) -> None:
    with Caller(server.port) as one, Caller(server.port) as two, Caller(server.port) as three:
        enter(one, world, "few")
        enter(two, world, "few")
        member = world.user("few")
        assert not three.login(member.login(three.challenge))
        assert three.refusal == "maximum account active connections exceeded"
    with Caller(server.port) as caller:
        assert not caller.login(world.user("nobody").login(caller.challenge))
        assert caller.refusal == "maximum account active connections exceeded"


@pytest.mark.parametrize("said", [NatsLimits(), NatsLimits(0, -1, -1), NatsLimits(-5, -1, -1)])
def test_limits_of_nothing_allow_nothing(
    caller: Caller, world: OperatorWorld, said: NatsLimits
) -> None:
    """A JWT that does not name its limits has limits of 0."""
    member = world.user("free", rules=UserPermissionLimits(nats=said))
    caller.login(member.login(caller.challenge))
    heard = [f"-ERR '{caller.refusal}'", *rest(caller)]
    assert "-ERR 'maximum subscriptions exceeded'" in heard


def test_default_permissions_of_an_account(server: Broker, world: OperatorWorld) -> None:
    denied = [
        "-ERR 'Permissions Violation for Publish to \"x\"'",
        "-ERR 'Permissions Violation for Subscription to \"x\"'",
    ]
    asked = b"PUB x 0\r\n\r\nSUB x 1\r\n"
    with Caller(server.port) as caller:
        enter(caller, world, "defaults")
        assert caller.ask(asked) == denied
        assert caller.ask(b"SUB may.x 2\r\nPUB may.x 0\r\n\r\n")[:1] == ["MSG may.x 2 0"]
    with Caller(server.port) as caller:
        own = replace(FREE, permissions=permissions(("x",), ("x",)))
        enter(caller, world, "defaults", own)
        assert caller.ask(asked + b"PUB may.x 0\r\n\r\n") == [
            "-ERR 'Permissions Violation for Publish to \"may.x\"'"
        ]
    with Caller(server.port) as caller:
        enter(caller, world, "defaults", replace(FREE, permissions=permissions(("x",))))
        assert caller.ask(b"SUB anything 1\r\nPUB may.x 0\r\n\r\n") == [
            "-ERR 'Permissions Violation for Publish to \"may.x\"'"
        ]


@pytest.mark.parametrize(
    ("said", "count"),
    [(ResponsePermission(2, -1), 2), (ResponsePermission(), 1), (ResponsePermission(0, 10**12), 1)],
)
def test_responses_are_counted(
    server: Broker, world: OperatorWorld, said: ResponsePermission, count: int
) -> None:
    with Caller(server.port) as answering, Caller(server.port) as asking:
        rules = replace(FREE, permissions=permissions(("none",), ("ask",), said))
        enter(answering, world, rules=rules)
        enter(asking, world)
        answering.ask(b"SUB ask 1\r\n")
        asking.ask(b"PUB ask back.here 0\r\n\r\n")
        while not answering.line().startswith("MSG ask"):
            pass
        heard = answering.ask(b"PUB back.here 0\r\n\r\n" * 4)
        refused = [line for line in heard if line.startswith("-ERR")]
        assert refused == ["-ERR 'Permissions Violation for Publish to \"back.here\"'"] * (
            4 - count
        )


def test_subjects_are_mapped(caller: Caller, world: OperatorWorld) -> None:
    enter(caller, world, "mapped")
    assert caller.ask(b"SUB to.a 1\r\nSUB one 2\r\nPUB from.a 0\r\n\r\nPUB half 0\r\n\r\n") == [
        "MSG to.a 1 0", "", "MSG one 2 0", "",
    ]  # fmt: skip


def test_messages_are_traced_where_the_account_says(caller: Caller, world: OperatorWorld) -> None:
    enter(caller, world, "traced")
    headers = (
        b"NATS/1.0\r\ntraceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n\r\n"
    )
    caller.ask(b"SUB traces 1\r\n")
    caller.send(b"HPUB x %d %d\r\n%s\r\n" % (len(headers), len(headers), headers))
    while not (line := caller.line()).startswith("MSG traces"):
        assert line is not None
    assert json.loads(caller.line())["request"]["header"]


def ask(caller: Caller, subject: str, body: dict[str, object] | None = None) -> dict[str, Any]:
    """An answer of the JetStream API."""
    _, payload = caller.request(f"$JS.API.{subject}", json.dumps(body).encode() if body else b"")
    found = json.loads(payload or b"{}")
    assert isinstance(found, dict)
    return found


def test_jetstream_is_what_the_account_has(server: Broker, world: OperatorWorld) -> None:
    with Caller(server.port) as caller:
        enter(caller, world, "no storage")
        found = ask(caller, "INFO")
        assert found.get("error", {}).get("err_code") == 10039, found
    with Caller(server.port) as caller:
        enter(caller, world, "some storage")
        assert ask(caller, "INFO")["limits"] == {
            "max_memory": 4096, "max_storage": 8192, "max_streams": 1, "max_consumers": 1,
            "max_ack_pending": 7, "memory_max_stream_bytes": 2048,
            "storage_max_stream_bytes": 4096, "max_bytes_required": True,
        }  # fmt: skip
        plain: dict[str, object] = {"name": "S", "subjects": ["s"], "storage": "file"}
        assert ask(caller, "STREAM.CREATE.S", plain)["error"]["err_code"] == 10113
        large = {**plain, "max_bytes": 5000}
        assert ask(caller, "STREAM.CREATE.S", large)["error"]["err_code"] == 10122
        assert "error" not in ask(caller, "STREAM.CREATE.S", {**plain, "max_bytes": 4096})
        other = {"name": "O", "subjects": ["o"], "max_bytes": 100}
        assert ask(caller, "STREAM.CREATE.O", other)["error"]["err_code"] == 10027
    with Caller(server.port) as caller:
        enter(caller, world)
        found = ask(caller, "INFO")["limits"]
        assert (found["max_memory"], found["max_storage"], found["max_streams"]) == (-1, -1, -1)


def test_who_expires_is_closed(server: Broker, world: OperatorWorld) -> None:
    now_s = time.time_ns() // 1_000_000_000
    ends = time.strftime("%H:%M:%S", time.gmtime(now_s + 2))
    before = time.strftime("%H:%M:%S", time.gmtime(now_s - 100))
    times = UserLimits(times=(TimeRange(before, ends),), times_location="UTC")
    with Caller(server.port) as one, Caller(server.port) as other, Caller(server.port) as stays:
        enter(one, world, expires_s=now_s + 2)
        enter(other, world, rules=replace(FREE, limits=times))
        enter(stays, world, expires_s=now_s + 3600)
        assert rest(one) == ["-ERR 'User Authentication Expired'"]
        assert rest(other) == ["-ERR 'User Authentication Expired'"]
        assert stays.ask(b"") == []
    page = server.monitor("/connz?state=closed&limit=100")
    assert isinstance(page, dict) and isinstance(page["connections"], list)
    assert "Authentication Expired" in json.dumps(page)


@pytest.mark.parametrize("kind", list(KINDS))
def test_an_account_expires(kind: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    world = OperatorWorld(tmp_path_factory.mktemp("expiring"))
    world.account("A", expires_s=time.time_ns() // 1_000_000_000 + 5)
    member = world.user("A")
    with KINDS[kind](config=world.config()) as server:
        with Caller(server.port) as caller:
            assert caller.login(member.login(caller.challenge))
            assert rest(caller) == ["-ERR 'Account Authentication Expired'"]
        with Caller(server.port) as caller:
            assert not caller.login(member.login(caller.challenge))
            assert caller.refusal == "Authorization Violation"
