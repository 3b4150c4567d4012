"""JWTs of accounts as accounts of the server: what is left out, and what an operator is told."""

from pathlib import Path

import pytest

from jsctl.auth.claims import (
    Account,
    Export,
    Import,
    JetStreamLimits,
    NatsLimits,
    WeightedMapping,
)
from jsctl.broker.claims.accounts import ResolvedAccounts, resolve
from jsctl.broker.login_options.operators import OperatorOptions
from jsctl.broker.options import AccountOptions
from tests.support.operators import NO_STORAGE, OperatorWorld, account_key, limits

LATER_S = 2_000_000_000


@pytest.fixture
def world(tmp_path: Path) -> OperatorWorld:
    """An operator without a system account."""
    return OperatorWorld(tmp_path, system=False)


def resolved(world: OperatorWorld, now_s: int = LATER_S - 1) -> ResolvedAccounts:
    """All accounts of a world at some time."""
    options = OperatorOptions(keys=(world.pair.public,))
    return resolve(options, [(one.public, one.token) for one in world.tenants.values()], now_s)


def only(found: ResolvedAccounts) -> AccountOptions:
    """The one account that there is."""
    (account,) = found.accounts
    return account


def test_an_account_that_does_not_count_is_left_out(world: OperatorWorld, tmp_path: Path) -> None:
    world.account("good")
    world.account("old", expires_s=LATER_S - 2)
    world.account("early", starts_s=LATER_S)
    other = OperatorWorld(tmp_path / "other", system=False)
    world.tenants["foreign"] = other.account("foreign")
    found = resolved(world)
    assert only(found).name == world.tenants["good"].public
    assert len(found.notes) == 3
    for name in ("old", "early", "foreign"):
        assert any(world.tenants[name].public in note for note in found.notes)


def test_a_jwt_is_that_of_the_account_it_is_found_as(world: OperatorWorld) -> None:
    one, other = world.account("one"), world.account("other")
    options = OperatorOptions(keys=(world.pair.public,))
    found = resolve(options, [(one.public, other.token)], LATER_S)
    assert not found.accounts and "its JWT is that of" in found.notes[0]


def test_limits_below_none_allow_nothing(world: OperatorWorld) -> None:
    said = limits(nats=NatsLimits(-7, -1, -1), connections=-2, leafs=5)
    world.account("A", Account(limits=said))
    found = only(resolved(world)).limits
    assert (found.subscriptions_max, found.connections_max, found.leafnodes_max) == (0, 0, 5)


def test_storage(world: OperatorWorld) -> None:
    world.account("A", Account(limits=limits(NO_STORAGE)))
    assert only(resolved(world)).jetstream is None
    world.account("A", Account(limits=limits(JetStreamLimits(1, 2, 3, 4, 0, 0, 7))))
    found = only(resolved(world)).jetstream
    assert found is not None
    assert (found.memory_bytes_max, found.store_bytes_max, found.streams_max) == (1, 2, 3)
    assert (found.ack_pending_max, found.store_stream_bytes_max) == (-1, 7)
    world.account("A", Account(limits=limits(tiers={"R1": JetStreamLimits(1, 2, 3, 4)})))
    found = only(resolved(world)).jetstream
    assert found is not None and [name for name, _ in found.tiers] == ["R1"]


def test_a_mapping_that_makes_no_sense_is_left_out(world: OperatorWorld) -> None:
    mappings: dict[str, tuple[WeightedMapping, ...]] = {
        "good": (WeightedMapping("to", 50),),
        "bad.*": (WeightedMapping("to.{{wildcard(5)}}"),),
    }
    world.account("A", Account(mappings=mappings))
    found = resolved(world)
    assert [one.source for one in only(found).mappings] == ["good"]
    assert "bad.*" in found.notes[0]


def trading(world: OperatorWorld, *imports: Import) -> tuple[AccountOptions, AccountOptions]:
    """Who exports, and who imports."""
    world.account("B", Account(imports=imports))
    found = {one.name: one for one in resolved(world).accounts}
    return found[world.tenants["A"].public], found[world.tenants["B"].public]


@pytest.mark.parametrize("kind", ["service", "stream"])
def test_a_token_is_for_its_own_import(world: OperatorWorld, kind: str) -> None:
    offers = (
        Export(subject="a", type_=kind, token_req=True),
        Export(subject="b", type_=kind, token_req=True),
        Export(subject="c", type_=kind),
    )
    giver = world.account("A", Account(exports=offers))
    world.account("B")
    token = world.activation("A", "B", "a", kind)

    def wanted(subject: str, token: str = "") -> Import:
        return Import(subject=subject, account=giver.public, token=token, type_=kind)

    one, other = trading(world, wanted("a", token), wanted("b"), wanted("c"), wanted("d"))
    assert [taken.subject for taken in other.imports] == ["a", "c"]
    allowed = {made.subject: made.accounts for made in one.exports}
    assert allowed == {"a": (giver.public, other.name), "b": (giver.public,), "c": ()}


def test_a_token_of_a_key_counts_as_long_as_the_key_does(world: OperatorWorld) -> None:
    key = account_key()
    offers = (Export(subject="a", type_="stream", token_req=True),)
    giver = world.account("A", Account(exports=offers, signing_keys=(key.public,)))
    world.account("B")
    token = world.activation("A", "B", "a", "stream", issuer=key)
    wanted = Import(subject="a", account=giver.public, token=token, type_="stream")
    assert trading(world, wanted)[1].imports
    world.account("A", Account(exports=offers))
    assert not trading(world, wanted)[1].imports


def test_an_import_from_nobody_is_told(world: OperatorWorld) -> None:
    wanted = Import(subject="a", account=account_key().public, type_="stream")
    world.account("B", Account(imports=(wanted,)))
    found = resolved(world)
    assert not only(found).imports and "which is not known" in found.notes[0]
