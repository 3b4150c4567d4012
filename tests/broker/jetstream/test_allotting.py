"""What accounts are given of a server alone."""

from jsctl.broker.jetstream.allotting import NOT_THE_SYSTEMS, allot, overcommitted
from jsctl.broker.options import (
    AccountJetStream,
    AccountOptions,
    ClusterOptions,
    JetStreamOptions,
    Options,
)
from jsctl.dataclass import replace


def store(size: int, memory: int = 0) -> AccountJetStream:
    """Limits in bytes."""
    return AccountJetStream(memory_bytes_max=memory, store_bytes_max=size)


def server(**accounts: AccountJetStream | None) -> Options:
    """A server that has ten bytes of each."""
    made = tuple(AccountOptions(name=name, jetstream=one) for name, one in accounts.items())
    jetstream = JetStreamOptions(enabled=True, memory_bytes_max=10, store_bytes_max=10)
    return Options(accounts=made, jetstream=jetstream)


NO_STORE = "insufficient storage resources available (10047)"
NO_MEMORY = "insufficient memory resources available (10028)"


def test_who_comes_first_has_room() -> None:
    options = server(A=store(6), B=store(6), C=store(4), D=None, E=store(-1), M=store(0, 11))
    found = allot(options, {})
    assert found.given == {"A": store(6), "C": store(4), "E": store(-1)}
    assert found.refused == {"B": NO_STORE, "M": NO_MEMORY}
    assert allot(options, {}, first=["B"]).refused == {"A": NO_STORE, "M": NO_MEMORY}
    assert overcommitted(options) == NO_MEMORY


def test_what_was_given_stays() -> None:
    before = {"B": store(6), "C": store(2), "GONE": store(2)}
    found = allot(server(A=store(4), B=store(6), C=store(5)), before)
    assert found.given == {"B": store(6), "C": store(2)}
    assert found.refused == {"C": NO_STORE, "A": NO_STORE}


def test_who_becomes_smaller_makes_room() -> None:
    before = {"A": store(6), "B": store(4)}
    found = allot(server(A=store(8), B=store(2)), before)
    assert found.given == {"A": store(8), "B": store(2)} and not found.refused
    # Also on a server that has less than it had.
    narrow = server(A=store(30), B=store(19))
    assert not allot(narrow, {"A": store(30), "B": store(20)}).refused


def test_tiers_count_together() -> None:
    tiers = (("R1", store(6)), ("R3", store(6)))
    options = server(A=AccountJetStream(tiers=tiers))
    assert allot(options, {}).refused == {"A": NO_STORE}
    assert overcommitted(options) == NO_STORE
    assert not allot(server(A=AccountJetStream(tiers=tiers[:1])), {}).refused


def test_servers_that_others_join_do_not_count() -> None:
    options = server(A=store(60))
    clustered = replace(options, cluster=ClusterOptions(host="h", port=1, name="C"))
    off = replace(options, jetstream=replace(options.jetstream, enabled=False))
    free = replace(options, jetstream=JetStreamOptions(enabled=True))
    full = replace(options, jetstream=replace(options.jetstream, store_is_found=True))
    for one in (clustered, off, free, full):
        assert allot(one, {}).given == {"A": store(60)}
        assert not overcommitted(one)


def test_the_system_account_has_nothing() -> None:
    options = replace(server(A=store(6), S=store(6)), system_account="S")
    found = allot(options, {})
    assert found.given == {"A": store(6)} and found.refused == {"S": NOT_THE_SYSTEMS}
    assert not overcommitted(options)
