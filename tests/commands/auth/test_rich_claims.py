"""Claims with all that they may say: what no command makes, and other tools do.

Both tools show the same of them, and take nothing away that a line does not change.
"""

import shlex
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from jsctl.auth.claims import (
    Account,
    Activation,
    Export,
    Head,
    Import,
    Info,
    JetStreamLimits,
    MsgTrace,
    NatsLimits,
    Permission,
    Permissions,
    ResponsePermission,
    ServiceLatency,
    TimeRange,
    UserLimits,
    UserPermissionLimits,
    UserScope,
    WeightedMapping,
)
from jsctl.auth.entities import AccountEntity, Issuer, OperatorEntity
from jsctl.auth.store import Store
from jsctl.auth.token import Claims, sign
from tests.commands.conftest import Result
from tests.support.real_cli import Answer, as_answer, differences, nats, needs_nats

Run = Callable[..., Result]
pytestmark = [needs_nats, pytest.mark.processes]
NOW_S, LATER_S = 1_700_000_000, 4_000_000_000

RULES = UserPermissionLimits(
    permissions=Permissions(
        pub=Permission(("p.>",)),
        sub=Permission(("q", "q2 w"), ("z",)),
        resp=ResponsePermission(3, 5_000_000_000),
    ),
    limits=UserLimits(("1.2.3.0/24",), (TimeRange("01:02:03", "04:05:06"),), "Europe/Berlin"),
    nats=NatsLimits(5, 6, 7),
    bearer_token=True,
    allowed_connection_types=("STANDARD", "WEBSOCKET"),
)
EXPORTS = (
    Export(
        "lat", "svc.*", "service", response_type="Stream", response_threshold=5_000_000_000,
        service_latency=ServiceLatency(60, "lat.results"), advertise=True,
        info=Info("described", "http://h/p"),
    ),
    Export(
        "hdr", "hdr", "service", response_type="Chunked", allow_trace=True,
        service_latency=ServiceLatency("headers", "lat.h"),
    ),
    Export("single", "single", "service", response_type="Singleton"),
    Export("tok", "tok.>", "stream", token_req=True, revocations={"*": NOW_S - 1}),
    Export("pos", "pos.*.x", "stream", account_token_position=2),
)  # fmt: skip


def exporting(nats: Account) -> Account:
    stored = JetStreamLimits(1024, 2048, 3, 4, 5, 6, 7, True)
    return replace(
        nats,
        exports=EXPORTS,
        limits=replace(nats.limits, jetstream=stored),
        info=Info("an account", "http://a/b"),
        mappings={"m": (WeightedMapping("n", 30, "east"), WeightedMapping("o", 70))},
        revocations={"*": NOW_S - 1},
        default_permissions=Permissions(pub=Permission(("d.>",), ("e",)), sub=Permission(("f",))),
        trace=MsgTrace("trace.to", 10),
        cluster_traffic="owner",
        generic=replace(nats.generic, tags=("z", "y")),
    )


def imports(source: AccountEntity, into: AccountEntity) -> tuple[Import, ...]:
    allowed = Activation(subject="tok.>", kind="stream")
    token, _ = sign(Claims(Head(sub=into.subject, name="act"), allowed), source.key, NOW_S)
    of = source.subject
    return (
        Import("tok", "tok.in", of, token=token, local_subject="local.tok", type_="stream"),
        Import("svc", "svc.1", of, local_subject="local.svc", type_="service", share=True),
        Import("old", "pos.1.x", of, to="old.to", type_="stream"),
        Import("trace", "traced", of, local_subject="l2", type_="stream", allow_trace=True),
    )


def made() -> OperatorEntity:
    issuer = Issuer(lambda: NOW_S)
    operator = issuer.new_operator("OP")
    issuer.new_operator_key(operator)
    a, b, t, x, c = (issuer.new_account(operator, name) for name in "ABTXC")
    issuer.change_operator(
        operator,
        replace(operator.claims.nats, system_account=x.subject, assert_server_version="2.10.1"),
    )
    issuer.change_account(operator, a, exporting(a.claims.nats))
    issuer.change_account(operator, b, replace(b.claims.nats, imports=imports(a, b)))
    tiers = {"R1": JetStreamLimits(1024, -1, 3, 4, 5, 6, 7, True), "R3": JetStreamLimits(-1, -1)}
    limits = replace(t.claims.nats.limits, tiered_limits=tiers)
    issuer.change_account(operator, t, replace(t.claims.nats, limits=limits))
    issuer.change_account(operator, x, x.claims.nats, expires_s=LATER_S)
    signer = operator.signing_keys[0].public
    issuer.change_account(operator, c, c.claims.nats, issuer=signer)
    scope = UserScope(role="r1", description="first", template=RULES)
    key = issuer.new_account_key(operator, a, scope)
    user = issuer.new_user(operator, a, "u")
    rules = replace(user.claims.nats, rules=RULES)
    issuer.change_user(a, user, rules, expires_s=LATER_S)
    issuer.new_user(operator, a, "s", key.public)
    return operator


LINES = """
auth operator info
auth account ls
auth account info A
auth account info B
auth account info T
auth account info X
auth account info C
auth account exports ls A
auth account exports info svc.* A
auth account exports info hdr A
auth account exports info single A
auth account exports info tok.> A
auth account exports info pos.*.x A
auth account imports info local.tok B
auth account imports info local.svc B
auth account imports info old.to B
auth account imports info l2 B
auth account keys ls A
auth account keys info A r1
auth account mappings info A m
auth user ls A
auth user info u A
auth user info s A
jwt decode {OP}/OP.jwt
jwt decode {OP}/accounts/A/A.jwt
jwt decode {OP}/accounts/B/B.jwt
jwt decode {OP}/accounts/T/T.jwt
jwt decode {OP}/accounts/X/X.jwt
jwt decode {OP}/accounts/A/users/u.jwt
jwt decode {OP}/accounts/A/users/s.jwt
jwt decode {OP}/OP.jwt -j
jwt decode {OP}/accounts/A/A.jwt -j
jwt decode {OP}/accounts/B/B.jwt -j
jwt decode {OP}/accounts/T/T.jwt -j
jwt decode {OP}/accounts/A/users/u.jwt -j
auth account exports edit svc.* A --description changed
auth account exports edit hdr A --advertise
auth account exports edit tok.> A --no-advertise --url http://u/v
auth account exports edit pos.*.x A --token-position 1
auth account imports edit local.tok B --local other.tok
auth account imports edit local.svc B --local other.svc
auth account imports rm l2 B -f
auth account imports ls B
auth account edit A --connections 5
auth account edit A --js-disk 4K --tags new
auth account edit A --jetstream
auth account edit T --connections 5
auth account edit T --js-disk 5K
auth account edit X --connections 3
auth account edit C --connections 3
auth operator edit --tags more
auth account exports rm tok.> A -f
auth account keys rm A --key r1 -f
auth user info s A
auth user edit u A --payload 9 --data 8 --subscriptions 7 --locale UTC --bearer
auth user rm s A -f --revoke
auth account info A
auth account info T
auth account info B
auth user info u A
"""


def test_rich_claims_are_shown_and_kept(
    cli: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    homes = {name: tmp_path / name for name in ("nats", "jsctl")}
    place = homes["nats"] / "data" / "nats" / "nsc"
    Store(place / "stores", place / "keys").save(made())
    shutil.copytree(homes["nats"], homes["jsctl"])
    pairs: list[tuple[str, Answer, Answer]] = []
    for line in LINES.split("\n")[1:-1]:
        answers: list[Answer] = []
        for name, home in homes.items():
            monkeypatch.setenv("XDG_DATA_HOME", str(home / "data"))
            stores = home / "data" / "nats" / "nsc" / "stores"
            words = shlex.split(line.format(OP=stores / "OP"))
            done: Answer | Result = nats(*words) if name == "nats" else cli(*words)
            answers.append(as_answer(done, home))
        pairs.append((line, answers[0], answers[1]))
    told = differences(pairs)
    assert not told, told
