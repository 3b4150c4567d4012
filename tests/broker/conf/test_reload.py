"""What a changed configuration asks of a running server; keys one by one are contract tests."""

from dataclasses import fields, replace
from typing import Any

import pytest

from jsctl.broker.conf.reloading.plan import KEYS, plan
from jsctl.broker.leafnode_options import LeafNodeOptions
from jsctl.broker.options import (
    ANY_PORT,
    ClientLimits,
    ClusterOptions,
    JetStreamOptions,
    Listen,
    LogOptions,
    Options,
    SyncMode,
)
from jsctl.broker.tls_options import HandshakeFirst, TlsOptions

OLD = Options(jetstream=JetStreamOptions(enabled=True, memory_bytes_max=1, store_bytes_max=1))
BOUND = {"client": ("0.0.0.0", 4222), "cluster": ("0.0.0.0", 6222)}


def test_nothing_changes() -> None:
    found = plan(OLD, OLD, BOUND)
    assert (found.options, found.refusal, found.lines) == (OLD, "", ())


def test_the_first_key_in_order_is_refused_and_nothing_else_is_said() -> None:
    new = replace(OLD, lame_duck_duration_ns=1, server_name="x", log=LogOptions(debug=True))
    found = plan(OLD, new, BOUND)
    assert found.refusal == "config reload not supported for ServerName: old=, new=x"
    assert found.lines == () and found.options == OLD


@pytest.mark.parametrize(("port", "refused"), [(ANY_PORT, False), (4222, False), (4223, True)])
def test_any_port_is_the_one_that_is_bound(port: int, refused: bool) -> None:
    old = replace(OLD, listen=Listen(port=ANY_PORT))
    found = plan(old, replace(OLD, listen=Listen(port=port)), BOUND)
    assert bool(found.refusal) == refused
    assert found.options.listen.port == 4222


def test_any_port_of_the_cluster_too() -> None:
    old = replace(OLD, cluster=ClusterOptions(name="c", port=ANY_PORT))
    assert plan(old, old, BOUND).options.cluster.port == 6222


ANY_LEAF = {"leafnodes": LeafNodeOptions(port=ANY_PORT)}
ANY_ROUTE = {"cluster": ClusterOptions(name="c", port=ANY_PORT)}


@pytest.mark.parametrize(
    ("more", "refused"),
    [
        (ANY_LEAF, 'LeafNode: field "Host": old=, new=0.0.0.0'),
        (ANY_ROUTE, "cluster host: old=, new=0.0.0.0"),
    ],
)
def test_any_port_is_another_one_than_none(more: dict[str, Any], refused: str) -> None:
    """Nobody would listen there."""
    found = plan(OLD, replace(OLD, **more), BOUND)
    assert found.refusal == f"config reload not supported for {refused}"
    assert plan(replace(OLD, **more), replace(OLD, **more), BOUND).refusal == ""


def test_a_limit_that_is_taken_away_is_refused_behind_everything_else() -> None:
    new = replace(OLD, jetstream=replace(OLD.jetstream, memory_bytes_max=-1))
    assert plan(OLD, new, BOUND).refusal.endswith("jetstream max memory and max store")
    later = replace(new, lame_duck_duration_ns=1)
    assert "LameDuckDuration" in plan(OLD, later, BOUND).refusal


def test_lines_are_in_nats_servers_order() -> None:
    new = replace(
        OLD,
        server_tags=("a",),
        log=LogOptions(debug=True),
        client=ClientLimits(payload_bytes_max=5, ping_interval_ns=90 * 10**9),
    )
    assert plan(OLD, new, BOUND).lines == (
        "Reloaded: debug = true",
        "Reloaded: ping_interval = 1m30s",
        "Reloaded: max_payload = 5",
        "Reloaded: tags",
    )


def test_tls_is_told_in_its_parts() -> None:
    one = replace(OLD, tls=TlsOptions("c", "k"))
    wait = replace(one, tls=TlsOptions("c", "k", handshake_first=HandshakeFirst.AUTO))
    timeout = "Reloaded: authorization timeout = "
    assert plan(OLD, one, BOUND).lines == (f"{timeout}3", "Reloaded: tls = enabled")
    assert plan(one, OLD, BOUND).lines == (f"{timeout}2", "Reloaded: tls = disabled")
    assert plan(one, wait, BOUND).lines == (
        "Reloaded: Client TLS handshake first: true",
        "Reloaded: Client TLS handshake first fallback delay: 50ms",
    )


def test_the_way_of_syncing_stays() -> None:
    new = replace(OLD, jetstream=replace(OLD.jetstream, sync=SyncMode.NEVER))
    assert plan(OLD, new, BOUND).refusal.endswith("SyncAlways: old=true, new=false")


def test_names_are_unique() -> None:
    assert len({key.name for key in KEYS}) == len(KEYS)


def test_every_option_has_a_key() -> None:
    """A new option is looked at by some key, or told here to be none of a reload."""
    told = {"config_file", "config_digest", "warnings"}
    seen: set[str] = set()

    class Watched(Options):
        __slots__ = ()

        def __getattribute__(self, name: str) -> object:
            seen.add(name)
            return super().__getattribute__(name)

    watched = Watched()
    for key in KEYS:
        key.value(watched)
    assert {one.name for one in fields(Options)} - told <= seen
