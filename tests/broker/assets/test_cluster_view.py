"""What a server knows of the others."""

from jsctl.broker.assets.cluster_view import NEVER_HEARD_NS, ClusterView
from jsctl.broker.assets.engine_options import EngineOptions
from jsctl.broker.jetstream.meta.entries import MetaServer, add_server, remove_server
from jsctl.broker.jetstream.meta.placement import ServerFacts
from jsctl.broker.jetstream.meta.state import Meta
from jsctl.broker.peers.items import (
    Announcement,
    DamagedReplicas,
    DiskRoom,
    PeerHeartbeat,
    ServerNews,
)
from jsctl.broker.peers.liveness import DOWN_AFTER_NS, Liveness

MINE = ServerNews(ServerFacts("me", "n1", "C", incarnation=1), "N1", "host", "1")


def told(peer: str, *, jetstream: bool = True, lame_duck: bool = False) -> ServerNews:
    """What a server tells of itself; its life is 5."""
    facts = ServerFacts(peer, f"name of {peer}", "C", jetstream=jetstream, incarnation=5)
    return ServerNews(facts, f"N{peer}", "host", "1", lame_duck)


class News:
    """What this server would tell."""

    def now(self, *, removed: bool) -> ServerNews:
        """The same at all times."""
        assert not removed
        return MINE

    def damaged(self) -> DamagedReplicas:
        """Nothing."""
        return DamagedReplicas(())

    def room(self) -> DiskRoom:
        """Enough."""
        return DiskRoom(full=False)


def neighbours(meta: Meta | None = None) -> ClusterView:
    """A server that has heard of nobody."""
    options = EngineOptions("me", "n1", "C", b"\x80" + bytes(15), 1, True, 3)
    return ClusterView(options, Liveness(1, options.life), News(), meta or Meta())


def hear(one: ClusterView, peer: str, now_ns: int = 1, *, leaving: bool = False) -> None:
    """A heartbeat."""
    one.now_ns = now_ns
    beat = PeerHeartbeat(9, 5, now_ns, leaving=leaving)
    one.liveness.heard(peer, beat, now_ns)


def test_the_life_is_a_number_that_fits_everywhere() -> None:
    assert neighbours().options.life == 1 << 62


def test_who_is_online() -> None:
    one = neighbours()
    one.servers["b"] = told("b")
    assert one.online("me") and not one.online("b") and one.peers_up() == []
    hear(one, "b")
    assert one.online("b") and one.peers_up() == ["b"]
    one.liveness.tick(1 + DOWN_AFTER_NS)
    assert not one.online("b")


def test_who_is_heard_is_told_news_even_while_its_own_are_missing() -> None:
    one = neighbours()
    hear(one, "b")
    assert one.peers_up() == ["b"]
    assert [facts.peer for facts in one.facts()] == ["me"]


def test_names() -> None:
    meta = Meta()
    one = neighbours(meta)
    one.servers["b"] = told("b")
    meta.apply(1, add_server(MetaServer("c", "old c", 1, "C")))
    assert [one.name_of(peer) for peer in ("me", "b", "c")] == ["n1", "name of b", "old c"]
    assert "peerID: x" in one.name_of("x")


def test_silence() -> None:
    one = neighbours()
    assert one.silent_ns("b") == NEVER_HEARD_NS
    one.liveness.linked("b", 1)
    assert one.silent_ns("b") == NEVER_HEARD_NS
    hear(one, "b", 10)
    one.now_ns = 25
    assert one.silent_ns("b") == 15
    for now_ns in (10, 5):
        one.now_ns = now_ns
        assert one.silent_ns("b") == 1


def test_who_said_goodbye_has_left_once_it_is_gone() -> None:
    one = neighbours()
    assert not one.left("b")
    hear(one, "b", leaving=True)
    assert not one.left("b")
    one.liveness.unlinked("b", 7)
    assert one.left("b")


def test_known_servers_are_marked_and_removed_ones_left_out() -> None:
    meta = Meta()
    one = neighbours(meta)
    one.servers = {"b": told("b"), "c": told("c"), "d": told("d", jetstream=False)}
    one.servers["e"] = told("e", lame_duck=True)
    for peer in "bde":
        hear(one, peer)
    found = {facts.peer: facts.online for facts in one.known_servers()}
    assert found == {"me": True, "b": True, "c": False, "e": False}
    assert [facts.peer for facts in one.facts()] == ["me", "b", "e"]
    meta.apply(1, add_server(MetaServer("b", "b", 5, "C")))
    meta.apply(2, remove_server("b"))
    assert "b" not in {facts.peer for facts in one.known_servers()}
    meta.apply(3, add_server(MetaServer("b", "b", 6, "C")))
    assert "b" in {facts.peer for facts in one.known_servers()}


def test_the_leader_of_the_latest_term_counts() -> None:
    one = neighbours()
    hear(one, "b")
    hear(one, "c")
    assert one.leader_of("S") == ""
    one.learn_leader(Announcement("S", 4, "b"))
    one.learn_leader(Announcement("S", 3, "c"))
    assert one.leader_of("S") == "b"
    one.learn_leader(Announcement("S", 5, "c"))
    assert one.leader_of("S") == "c"
    one.forget_leader("b")
    assert one.leader_of("S") == "c"
    one.forget_leader("c")
    assert one.leader_of("S") == ""


def test_a_leader_that_was_not_heard_for_a_while_is_not_forgotten() -> None:
    one = neighbours()
    hear(one, "b")
    one.learn_leader(Announcement("S", 4, "b"))
    one.liveness.tick(1 + DOWN_AFTER_NS)
    assert one.leader_of("S") == ""
    hear(one, "b", DOWN_AFTER_NS + 2)
    assert one.leader_of("S") == "b"
