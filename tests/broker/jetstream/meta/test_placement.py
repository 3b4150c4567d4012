"""Placement: filters, order, balance, unique tags, scaling."""

from collections import Counter
from dataclasses import replace
from random import Random

import pytest

from jsctl.broker.jetstream.meta.placement import (
    NoPeers,
    Placed,
    ReplicaStanding,
    ServerFacts,
    Wanted,
    choose_peers,
    choose_replacement,
    choose_subset,
    scale_down,
)


def _jitter(seed: int = 1) -> "Random":
    return Random(seed)


def _servers(count: int, **facts: object) -> list[ServerFacts]:
    base = [ServerFacts(f"peer{i}", f"n{i}", "C1") for i in range(count)]
    return [replace(server, **facts) for server in base]  # type: ignore[arg-type]


def _placed(outcome: Placed | NoPeers) -> Placed:
    assert isinstance(outcome, Placed), outcome
    return outcome


def _refused(outcome: Placed | NoPeers) -> str:
    assert isinstance(outcome, NoPeers), outcome
    return outcome.text


def test_thirty_replicated_streams_spread_over_five_servers() -> None:
    random = _jitter(7)
    servers = {server.peer: server for server in _servers(5)}
    for _ in range(30):
        placed = _placed(choose_peers(list(servers.values()), Wanted(3, "C1"), random.randrange))
        assert len(set(placed.peers)) == 3
        assert placed.preferred in placed.peers
        for peer in placed.peers:
            one = servers[peer]
            servers[peer] = replace(one, streams=one.streams + 1, ha_assets=one.ha_assets + 1)
    counts = [server.streams for server in servers.values()]
    assert max(counts) - min(counts) <= 2


def test_single_replica_streams_spread_and_leaders_vary() -> None:
    random = _jitter()
    servers = {server.peer: server for server in _servers(3)}
    for _ in range(30):
        (peer,) = _placed(
            choose_peers(list(servers.values()), Wanted(1, "C1"), random.randrange)
        ).peers
        servers[peer] = replace(servers[peer], streams=servers[peer].streams + 1)
    assert {server.streams for server in servers.values()} == {10}
    leaders = Counter(
        _placed(choose_peers(_servers(3), Wanted(3, "C1"), random.randrange)).preferred
        for _ in range(60)
    )
    assert len(leaders) == 3


@pytest.mark.parametrize(
    ("facts", "wanted", "text"),
    [
        ({}, Wanted(5, "C1"), "no suitable peers for placement"),
        (
            {},
            Wanted(1, "C2"),
            "no suitable peers for placement",
        ),
        (
            {"online": False},
            Wanted(3, "C1"),
            "no suitable peers for placement, peer offline",
        ),
        (
            {"store_max": 100, "store_reserved": 60},
            Wanted(1, "C1", bytes_max=50),
            "no suitable peers for placement, insufficient storage",
        ),
        (
            {"tags": ("a",)},
            Wanted(1, "C1", tags=("a", "b")),
            "no suitable peers for placement, tags not matched ['b']",
        ),
        (
            {"tags": ("c",)},
            Wanted(1, "C1", tags=("!c",)),
            "no suitable peers for placement, tags excluded ['c']",
        ),
        (
            {"tags": ("!jetstream",)},
            Wanted(1, "C1"),
            "no suitable peers for placement, exclude tag set",
        ),
        (
            {"ha_assets": 11, "ha_assets_max": 10},
            Wanted(3, "C1"),
            "no suitable peers for placement, miscellaneous issue",
        ),
        (
            {"tags": ("az:1",)},
            Wanted(3, "C1", unique_tag="az:"),
            "no suitable peers for placement, server tag not unique",
        ),
    ],
)
def test_reasons(facts: dict[str, object], wanted: Wanted, text: str) -> None:
    assert _refused(choose_peers(_servers(4, **facts), wanted, _jitter().randrange)) == text


def test_reasons_are_joined_in_the_known_order() -> None:
    servers = [
        *_servers(1, tags=("x",), store_max=1, known=False),
        replace(ServerFacts("q", "q", "C1"), store_max=1),
        replace(ServerFacts("r", "r", "C1"), jetstream=False),
    ]
    text = _refused(choose_peers(servers, Wanted(1, "C1", bytes_max=9), _jitter().randrange))
    assert text == (
        "no suitable peers for placement, peer offline, insufficient storage, "
        "jetstream not enabled in cluster"
    )


def test_unique_tags_are_distinct_and_can_be_named_away() -> None:
    zones = ["az:1", "az:1", "az:2", "az:2", "az:3"]
    servers = [
        replace(server, tags=(zone,)) for server, zone in zip(_servers(5), zones, strict=True)
    ]
    tag_of = {server.peer: server.tags[0] for server in servers}
    for seed in range(20):
        random = _jitter(seed)
        placed = _placed(choose_peers(servers, Wanted(3, "C1", unique_tag="az:"), random.randrange))
        assert len({tag_of[peer] for peer in placed.peers}) == 3
        same = Wanted(2, "C1", tags=("az:1",), unique_tag="az:")
        assert set(_placed(choose_peers(servers, same, random.randrange)).peers) == {
            "peer0",
            "peer1",
        }


def test_existing_peers_keep_their_slots_and_one_offline_is_tolerated() -> None:
    servers = _servers(3)
    servers[2] = replace(servers[2], online=False)
    grown = _placed(
        choose_peers(
            servers, Wanted(3, "C1"), _jitter().randrange, existing=["peer1"], leader="peer1"
        )
    )
    assert grown.peers == ("peer1", "peer0", "peer2")
    assert grown.preferred == "peer1"


def test_replacement_needs_another_server() -> None:
    peers = ["peer0", "peer1", "peer2"]
    jitter = _jitter().randrange
    replaced = _placed(
        choose_replacement(_servers(4), Wanted(3, "C1"), jitter, peers=peers, removed="peer1")
    )
    assert replaced.peers == ("peer0", "peer2", "peer3")
    none = choose_replacement(_servers(3), Wanted(3, "C1"), jitter, peers=peers, removed="peer1")
    assert _refused(none) == "no suitable peers for placement"


def test_scale_down_keeps_the_leader_and_the_most_current() -> None:
    standings = {
        "a": ReplicaStanding(online=True, lag=5),
        "b": ReplicaStanding(online=False),
        "c": ReplicaStanding(online=True, lag=0),
        "d": ReplicaStanding(online=True, lag=9),
    }
    assert scale_down(["a", "b", "c", "d"], 1, standings, "d") == ("d",)
    assert scale_down(["a", "b", "c", "d"], 3, standings, "d") == ("a", "c", "d")
    assert scale_down(["a", "b", "c", "d"], 2, standings, "") == ("a", "c")


def test_consumers_get_online_peers_of_their_stream() -> None:
    standings = {"a": ReplicaStanding(online=True), "c": ReplicaStanding(online=True)}
    for seed in range(5):
        chosen = choose_subset(["a", "b", "c"], 1, standings, _jitter(seed).randrange)
        assert chosen in (("a",), ("c",))
    alone = {"a": ReplicaStanding(online=True)}
    assert choose_subset(["a", "b", "c"], 3, alone, _jitter().randrange) is None


def test_servers_whose_disk_is_full_come_last_and_do_not_begin_as_leaders() -> None:
    full, *others = _servers(4)
    full = replace(full, disk_full=True)
    for seed in range(20):
        jitter = _jitter(seed).randrange
        placed = _placed(choose_peers([full, *others], Wanted(3, "C1"), jitter))
        assert full.peer not in placed.peers
        placed = _placed(choose_peers([full, *others[:2]], Wanted(3, "C1"), jitter))
        assert full.peer in placed.peers and placed.preferred != full.peer
    one = [full, *(replace(other, streams=9) for other in others)]
    in_memory = _placed(choose_peers(one, Wanted(1, "C1", memory=True), jitter))
    assert in_memory.peers == (full.peer,)
    all_full = [replace(other, disk_full=True) for other in others]
    assert len(_placed(choose_peers(all_full, Wanted(3, "C1"), jitter)).peers) == 3
