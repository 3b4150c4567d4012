"""Operator mode: who may log in with a JWT, and who may not, on both servers."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from jsctl.auth.claims import (
    UNLIMITED,
    Account,
    Authorization,
    Permission,
    Permissions,
    TimeRange,
    UserLimits,
    UserPermissionLimits,
)
from jsctl.auth.keys import KeyKind, KeyPair, generate
from jsctl.dataclass import dataclass, replace
from jsctl.testing import Broker, RealServer
from tests.contract.conftest import KINDS
from tests.support.login import Caller
from tests.support.operators import (
    FREE,
    SYSTEM,
    Member,
    OperatorWorld,
    account_key,
    limits,
    scope,
    written,
)
from tests.support.waiting import wait_for

VIOLATION = "Authorization Violation"
NOW_S = time.time_ns() // 1_000_000_000
HOUR_S = 3600
PLAIN, WIDE, ROLE, TEMPLATE, STRANGE, NARROW, BEARERS, EMPTY = (account_key() for _ in range(8))
"""Signing keys of A: without a scope, and with one each."""
GONE, RENEWED, ASKED = (generate(KeyKind.USER) for _ in range(3))
BEARER = replace(FREE, bearer_token=True)
NOTHING = UserPermissionLimits()


def rules(
    publish: tuple[str, ...] = (),
    subscribe: tuple[str, ...] = (),
    no_publish: tuple[str, ...] = (),
    no_subscribe: tuple[str, ...] = (),
    **more: Any,
) -> UserPermissionLimits:
    """What a user may do."""
    permissions = Permissions(Permission(publish, no_publish), Permission(subscribe, no_subscribe))
    return UserPermissionLimits(permissions=permissions, nats=UNLIMITED, **more)


def kinds(*names: str) -> UserPermissionLimits:
    """A user of some kinds of connections."""
    return replace(FREE, allowed_connection_types=names)


def sources(*networks: str) -> UserPermissionLimits:
    """A user of some networks."""
    return replace(FREE, limits=UserLimits(src=networks))


def hours(*ranges: tuple[int, int], zone: str = "UTC") -> UserPermissionLimits:
    """A user of some times, given in minutes from now."""
    times = tuple(TimeRange(_at(start), _at(end)) for start, end in ranges)
    return replace(FREE, limits=UserLimits(times=times, times_location=zone))


def _at(minutes: int) -> str:
    # Now, not when this was loaded: the whole suite takes longer than some of the ranges.
    now_s = time.time_ns() // 1_000_000_000
    return time.strftime("%H:%M:%S", time.gmtime(now_s + minutes * 60))


TEMPLATES = rules(
    publish=(
        "n.{{name()}}", "s.{{subject()}}", "an.{{account-name()}}", "as.{{account-subject()}}",
        "t.{{tag(team)}}.{{tag(place)}}", "{{account-tag(region)}}.>", "missing.{{tag(none)}}",
        "same.{{name()}}.{{ NAME() }}", "$SYS.REQ.USER.INFO",
    ),
    subscribe=("_INBOX.>", "gone.{{tag(none)}}"),
    no_publish=("no.{{tag(team)}}",),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Worlds:
    """Two operators; the accounts of the second one are not to sign users with their own keys."""

    main: OperatorWorld
    strict: OperatorWorld
    foreign: OperatorWorld
    """An operator that the server does not know."""
    directory: Path

    @property
    def config(self) -> str:
        """A server that trusts the first two."""
        system = self.main.tenants[SYSTEM].public
        return f"system_account: {system}\n{self.main.config(self.strict)}"


def _worlds(directory: Path) -> Worlds:
    main = OperatorWorld(directory / "main", keys=1)
    signing = (
        PLAIN.public, scope(WIDE), scope(ROLE, rules(("may",))), scope(TEMPLATE, TEMPLATES),
        scope(STRANGE, rules(("x.{{strange()}}",))),
        scope(NARROW, rules(no_publish=("no.{{tag(none)}}",))), scope(BEARERS, BEARER),
        scope(EMPTY, rules(("{{tag(none)}}.>",), ("gone.{{tag(none)}}",))),
    )  # fmt: skip
    revoked = {GONE.public: NOW_S, RENEWED.public: NOW_S - HOUR_S}
    said = Account(signing_keys=signing, revocations=revoked)
    main.account("A", said, tags=["region:east", "region:west"])
    main.account("own", issuer=main.pair)
    main.account("revoked", Account(revocations={"*": NOW_S - HOUR_S}))
    main.account("careful", Account(limits=limits(no_bearer=True)))
    main.account("callout", Account(authorization=Authorization(auth_users=(ASKED.public,))))
    main.account("over", expires_s=NOW_S - 10)
    main.account("early", starts_s=NOW_S + HOUR_S)
    strict = OperatorWorld(directory / "strict", strict=True, keys=2, system=False)
    strict.account("B", Account(signing_keys=(PLAIN.public,)))
    strict.account("by master", issuer=strict.pair)
    strict.account("second key", Account(signing_keys=(PLAIN.public,)), issuer=strict.keys[1])
    foreign = OperatorWorld(directory / "foreign")
    foreign.account("F")
    main.tenants["F"] = foreign.tenants["F"]
    return Worlds(main, strict, foreign, directory)


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> Worlds:
    """The same JWTs for both servers."""
    return _worlds(tmp_path_factory.mktemp("worlds"))


@pytest.fixture(scope="module", params=list(KINDS))
def server(request: pytest.FixtureRequest, worlds: Worlds) -> Iterator[Broker]:
    """A server on which everybody has to log in."""
    with KINDS[str(request.param)](config=worlds.config, name="one") as running:
        yield running


def logs_in(server: Broker, member: Member, **more: object) -> bool:
    """Whether a user is let in; who is not hears why."""
    with Caller(server.port) as caller:
        found = caller.login(member.login(caller.challenge, **more))
        assert found or caller.refusal == VIOLATION
        return found


Make = Callable[[Worlds], Member]
ADMITTED: dict[str, Make] = {
    "by the account's key": lambda w: w.main.user("A"),
    "by a signing key": lambda w: w.main.user("A", issuer=PLAIN),
    "by the account's key, which is named": lambda w: w.main.user(
        "A", issuer=w.main.tenants["A"].pair
    ),
    "by a scoped key": lambda w: w.main.user("A", rules=NOTHING, issuer=WIDE),
    "of an account that the operator's own key has signed": lambda w: w.main.user("own"),
    "of an operator that is strict, by a signing key": lambda w: w.strict.user("B", issuer=PLAIN),
    "of an account by the operator's second key": lambda w: w.strict.user(
        "second key", issuer=PLAIN
    ),
    "of the system account": lambda w: w.main.user(SYSTEM),
    "that expires later": lambda w: w.main.user("A", expires_s=NOW_S + HOUR_S),
    "that began before": lambda w: w.main.user("A", starts_s=NOW_S - HOUR_S),
    "of which an older JWT is revoked": lambda w: w.main.user("A", pair=RENEWED),
    "of an account whose older JWTs are revoked": lambda w: w.main.user("revoked"),
    "of the network": lambda w: w.main.user("A", rules=sources("10.0.0.0/8", "127.0.0.0/8")),
    "of the address": lambda w: w.main.user("A", rules=sources("127.0.0.1/32")),
    "of the network, as IPv6 has it": lambda w: w.main.user(
        "A", rules=sources("::ffff:127.0.0.0/104")
    ),
    "of everywhere": lambda w: w.main.user("A", rules=sources("0.0.0.0/0")),
    "of the address with bits beside the mask": lambda w: w.main.user(
        "A", rules=sources("127.9.9.9/8")
    ),
    "at its time": lambda w: w.main.user("A", rules=hours((-60, 60))),
    "at one of its times": lambda w: w.main.user("A", rules=hours((-60, -30), (-10, 10))),
    "over midnight": lambda w: w.main.user("A", rules=hours((-60, -120))),
    "of its kind": lambda w: w.main.user("A", rules=kinds("standard")),
    "of known and unknown kinds": lambda w: w.main.user("A", rules=kinds("NEW", "STANDARD")),
    "with a bearer token": lambda w: w.main.user("A", rules=BEARER),
}
REFUSED: dict[str, Make] = {
    "by somebody else": lambda w: w.main.user("A", issuer=account_key()),
    "by another account": lambda w: w.main.user("A", issuer=w.main.tenants["own"].pair),
    "by an operator": lambda w: _by(w, w.main.pair),
    "of an account of somebody else's operator": lambda w: w.foreign.user("F"),
    "of an account that nobody knows": lambda w: w.foreign.user(SYSTEM),
    "of an operator that is strict, by the account": lambda w: w.strict.user("B"),
    "of an account that a strict operator signed itself": lambda w: w.strict.user("by master"),
    "by a scoped key, with permissions of its own": lambda w: w.main.user(
        "A", rules=rules(("may",)), issuer=WIDE
    ),
    "by a scoped key, with limits of its own": lambda w: w.main.user("A", issuer=WIDE),
    "whose template has an unknown operation": lambda w: w.main.user(
        "A", rules=NOTHING, issuer=STRANGE
    ),
    "whose template denies what it has no tag for": lambda w: w.main.user(
        "A", rules=NOTHING, issuer=NARROW
    ),
    "that is expired": lambda w: w.main.user("A", expires_s=NOW_S - 10),
    "that does not begin yet": lambda w: w.main.user("A", starts_s=NOW_S + HOUR_S),
    "of an account that is expired": lambda w: w.main.user("over"),
    "of an account that does not begin yet": lambda w: w.main.user("early"),
    "that is revoked": lambda w: w.main.user("A", pair=GONE, issued_s=NOW_S),
    "that was revoked": lambda w: w.main.user("A", pair=RENEWED, issued_s=NOW_S - HOUR_S),
    "that was revoked with all others": lambda w: w.main.user(
        "revoked", issued_s=NOW_S - HOUR_S - 1
    ),
    "of another network": lambda w: w.main.user("A", rules=sources("10.0.0.0/8")),
    "of another network, IPv6": lambda w: w.main.user("A", rules=sources("::1/128")),
    "of every IPv6": lambda w: w.main.user("A", rules=sources("::/0")),
    "at another time": lambda w: w.main.user("A", rules=hours((60, 120))),
    "not at this time of the night": lambda w: w.main.user("A", rules=hours((60, -60))),
    "at that time elsewhere": lambda w: w.main.user("A", rules=hours((-60, 60), zone="Asia/Tokyo")),
    "of another kind": lambda w: w.main.user("A", rules=kinds("MQTT", "WEBSOCKET")),
    "of leaf nodes": lambda w: w.main.user("A", rules=kinds("LEAFNODE")),
    "of unknown kinds": lambda w: w.main.user("A", rules=kinds("NEW")),
    "by bearer tokens that are not allowed": lambda w: w.main.user("careful", rules=BEARER),
    "by a proxy": lambda w: w.main.user("A", rules=replace(FREE, proxy_required=True)),
}


def _by(worlds: Worlds, issuer: KeyPair) -> Member:
    """A user that no account has signed."""
    pair = generate(KeyKind.USER)
    said = {"type": "user", "issuer_account": worlds.main.tenants["A"].public}
    return Member(written({"nats": said}, pair, issuer), pair)


@pytest.mark.parametrize("who", list(ADMITTED))
def test_a_user_is_let_in(server: Broker, worlds: Worlds, who: str) -> None:
    assert logs_in(server, ADMITTED[who](worlds))


@pytest.mark.parametrize("who", list(REFUSED))
def test_a_user_is_refused(server: Broker, worlds: Worlds, who: str) -> None:
    member = REFUSED[who](worlds)
    with Caller(server.port) as caller:
        assert not caller.login(member.login(caller.challenge))
        assert caller.refusal == VIOLATION


def test_a_broker_says_why_in_its_log(server: Broker, worlds: Worlds) -> None:
    """To its operator: nats-server does so for who has it log everything."""
    member = worlds.main.user("A", pair=GONE, issued_s=NOW_S)
    with Caller(server.port) as caller:
        assert not caller.login(member.login(caller.challenge))
    ours = not isinstance(server, RealServer)
    text = "authentication error" + ": user authentication revoked" * ours
    wait_for(lambda: text in server.logs, "the line in the log")


SIGNATURES: dict[str, Callable[[Member, str], str]] = {
    "none": lambda member, nonce: "",
    "of somebody else": lambda member, nonce: Member("", generate(KeyKind.USER)).signature(nonce),
    "of another connection": lambda member, nonce: member.signature(nonce[::-1]),
    "of nothing": lambda member, nonce: member.signature(""),
    "half": lambda member, nonce: member.signature(nonce)[:43],
    "more": lambda member, nonce: member.signature(nonce) * 2,
    "no base64": lambda member, nonce: "!" * 86,
    "no ASCII": lambda member, nonce: "\u00e9" * 86,
}


@pytest.mark.parametrize("what", list(SIGNATURES))
def test_a_signature_is_the_users_own(server: Broker, worlds: Worlds, what: str) -> None:
    member = worlds.main.user("A")
    with Caller(server.port) as caller:
        signature = SIGNATURES[what](member, caller.challenge)
        said: dict[str, object] = {"jwt": member.token, "sig": signature}
        assert not caller.login(said)
        assert caller.refusal == VIOLATION


def test_who_bears_a_token_signs_nothing(server: Broker, worlds: Worlds) -> None:
    for member in (
        worlds.main.user("A", rules=BEARER),
        worlds.main.user("A", rules=NOTHING, issuer=BEARERS),
    ):
        with Caller(server.port) as caller:
            assert caller.login({"jwt": member.token})
            assert who(caller)["user"] == member.pair.public


WITHOUT: dict[str, dict[str, object]] = {
    "nothing": {},
    "a name": {"user": "u", "pass": "p"},
    "a token": {"auth_token": "t"},
    "an nkey": {"nkey": GONE.public},
    "an empty JWT": {"jwt": ""},
    "no JWT": {"jwt": "x"},
    "two parts": {"jwt": "eyJ.eyJ"},
    "three empty parts": {"jwt": ".."},
    "JSON that is no object": {"jwt": "MQ.MQ.MQ"},
    "a long one": {"jwt": "eyJ" + "a" * 3000},
    "dots": {"jwt": "." * 3000},
    "no ASCII": {"jwt": "\u00e9.\u00e9.\u00e9"},
    "deep JSON": {"jwt": f"{'W' * 1500}.{'W' * 1500}.x"},
}


@pytest.mark.parametrize("what", list(WITHOUT))
def test_without_a_jwt_nobody_is_let_in(server: Broker, what: str) -> None:
    with Caller(server.port) as caller:
        assert caller.info["auth_required"] is True and len(caller.challenge) == 15
        assert not caller.login(WITHOUT[what])
        assert caller.refusal == VIOLATION


def test_a_changed_jwt_is_none(server: Broker, worlds: Worlds) -> None:
    member = worlds.main.user("A")
    head, body, signature = member.token.split(".")
    other = worlds.main.user("A").token.split(".")
    for token in (
        f"{head}.{other[1]}.{signature}",
        f"{head}.{body}.{other[2]}",
        f"{head}.{body}.{signature[:-8]}",
        f"{head}.{body}.",
        worlds.main.tenants["A"].token,
        worlds.main.token,
    ):
        assert not logs_in(server, Member(token, member.pair))


def test_what_stands_beside_a_jwt_does_not_count(server: Broker, worlds: Worlds) -> None:
    member, other = worlds.main.user("A"), worlds.main.user("own")
    beside: tuple[dict[str, object], ...] = (
        {"user": "u", "pass": "p"},
        {"auth_token": "t"},
        {"nkey": other.pair.public},
    )
    for more in beside:
        with Caller(server.port) as caller:
            assert caller.login(member.login(caller.challenge, **more)), more
            assert who(caller)["account"] == worlds.main.tenants["A"].public


def test_nobody_names_an_account(server: Broker, worlds: Worlds) -> None:
    assert not logs_in(server, worlds.main.user("A"), account=worlds.main.tenants["own"].public)


def test_signatures_of_the_standard_form_count(server: Broker, worlds: Worlds) -> None:
    member = worlds.main.user("A")
    with Caller(server.port) as caller:
        signature = member.signature(caller.challenge).replace("-", "+").replace("_", "/") + "=="
        assert caller.login({"jwt": member.token, "sig": signature})


def test_a_jwt_of_the_first_version_counts(server: Broker, worlds: Worlds) -> None:
    pair, account = generate(KeyKind.USER), worlds.main.tenants["A"].pair
    document: dict[str, object] = {"type": "user", "name": "old", "nats": {"max": 5}}
    assert logs_in(server, Member(written(document, pair, account, version=1), pair))
    document["issuer_account"] = account.public
    assert logs_in(server, Member(written(document, pair, PLAIN, version=1), pair))


def test_fields_that_nobody_knows_change_nothing(server: Broker, worlds: Worlds) -> None:
    pair, account = generate(KeyKind.USER), worlds.main.tenants["A"].pair
    said = {"type": "user", "subs": -1, "data": -1, "payload": -1, "new": {"a": [1]}}
    document = {"nats": said, "later": 5}
    assert logs_in(server, Member(written(document, pair, account), pair))
    newer = written({"nats": {"type": "user", "version": 3}}, pair, account)
    assert not logs_in(server, Member(newer, pair))


@pytest.mark.parametrize(
    "said",
    [
        {"type": "account"}, {"type": "activation"}, {"type": "operator"}, {"type": "new"},
        {"type": ""}, {"type": "user", "subs": "x"}, {"type": "user", "pub": []},
        {"type": "user", "src": 5}, {"type": "user", "tags": 5},
        {"type": "user", "pub": {"allow": "x"}}, {"type": "user", "src": ["nowhere"]},
        {"type": "user", "times": [{"start": "x", "end": "y"}]},
        {"type": "user", "issuer_account": "x"}, {"type": "user", "pub": {"allow": [""]}},
        {"type": "user", "version": "x"}, {"type": "user", "bearer_token": "yes"},
    ],
)  # fmt: skip
def test_nonsense_that_is_well_signed_lets_nobody_in(
    server: Broker, worlds: Worlds, said: dict[str, object]
) -> None:
    pair, account = generate(KeyKind.USER), worlds.main.tenants["A"].pair
    assert not logs_in(server, Member(written({"nats": said}, pair, account), pair))


def test_a_subject_that_is_no_user_lets_nobody_in_here(server: Broker, worlds: Worlds) -> None:
    account = worlds.main.tenants["A"].pair
    for pair in (account_key(), generate(KeyKind.OPERATOR)):
        said = {"type": "user", "subs": -1, "data": -1, "payload": -1}
        token = written({"nats": said}, pair, account)
        assert logs_in(server, Member(token, pair)) is isinstance(server, RealServer)


def who(caller: Caller) -> dict[str, Any]:
    """What the server says of the user that asks."""
    _, payload = caller.request("$SYS.REQ.USER.INFO")
    found = json.loads(payload)["data"]
    assert isinstance(found, dict)
    return found


def permissions_of(server: Broker, member: Member) -> dict[str, Any]:
    """What a user may do."""
    with Caller(server.port) as caller:
        assert caller.login(member.login(caller.challenge)), caller.refusal
        found = who(caller).get("permissions", {})
        assert isinstance(found, dict)
        return found


def test_templates_are_filled_in(server: Broker, worlds: Worlds) -> None:
    tags = ["team:red", "team:blue", "place:x", "team:two words"]
    member = worlds.main.user("A", "Jane", NOTHING, issuer=TEMPLATE, tags=tags[:3])
    found = permissions_of(server, member)
    account = worlds.main.tenants["A"].public
    assert sorted(found["publish"]["allow"]) == sorted(
        [
            "n.Jane", f"s.{member.pair.public}", "an.A", f"as.{account}", "t.red.x", "t.blue.x",
            "east.>", "west.>", "same.Jane.Jane", "$SYS.REQ.USER.INFO",
        ]
    )  # fmt: skip
    assert sorted(found["publish"]["deny"]) == ["no.blue", "no.red"]
    assert found["subscribe"] == {"allow": ["_INBOX.>"]}
    assert not logs_in(server, worlds.main.user("A", "x", NOTHING, issuer=TEMPLATE, tags=tags))


def test_a_name_of_several_words_allows_nothing(server: Broker, worlds: Worlds) -> None:
    member = worlds.main.user("A", "Jane Doe", NOTHING, issuer=TEMPLATE, tags=["team:a"])
    found = permissions_of(server, member)
    account = worlds.main.tenants["A"].public
    assert sorted(found["publish"]["allow"]) == sorted(
        [
            f"s.{member.pair.public}",
            "an.A",
            f"as.{account}",
            "east.>",
            "west.>",
            "$SYS.REQ.USER.INFO",
        ]
    )


def test_templates_that_become_nothing_allow_nothing(server: Broker, worlds: Worlds) -> None:
    member = worlds.main.user("A", rules=NOTHING, issuer=EMPTY)
    with Caller(server.port) as caller:
        assert caller.login(member.login(caller.challenge))
        assert caller.ask(b"PUB a.b 0\r\n\r\nSUB a 1\r\n") == [
            "-ERR 'Permissions Violation for Publish to \"a.b\"'",
            "-ERR 'Permissions Violation for Subscription to \"a\"'",
        ]


def test_names_and_tags_may_be_wildcards(server: Broker, worlds: Worlds) -> None:
    member = worlds.main.user("A", "*", NOTHING, issuer=TEMPLATE, tags=["team:>", "place:y"])
    found = permissions_of(server, member)["publish"]
    assert {"n.*", "same.*.*"} <= set(found["allow"]) and "t.>.y" not in found["allow"]
    assert found["deny"] == ["no.>"]


def test_of_a_callouts_account_only_its_own_users_are_let_in(
    server: Broker, worlds: Worlds
) -> None:
    assert logs_in(server, worlds.main.user("callout", pair=ASKED))
    assert not logs_in(server, worlds.main.user("callout"))
