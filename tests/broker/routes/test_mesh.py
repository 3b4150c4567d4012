"""Meshes wired to each other in memory."""

import random
from collections import deque
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jsctl.broker.routes.mesh import Mesh
from jsctl.broker.routes.types import (
    ClusterRenamed,
    ConnectUrlsChanged,
    LinkAdded,
    LinkRemoved,
    MeshEvent,
    MeshOptions,
    PeerDown,
    PeerUp,
    RouteUrl,
)
from jsctl.broker.turn import Accepted, ConnKind
from tests.support.quick import examples

SECOND = 1_000_000_000
ACCOUNTS = {"$G", "$SYS", "P"}


def options(name: str, *routes: str, **more: object) -> MeshOptions:
    """A server whose host is its name."""
    base = MeshOptions(
        server_id="N" + name,
        server_name=name,
        cluster="C",
        host=name,
        port=6222,
        client_urls=(f"{name}:4222",),
        routes=tuple(RouteUrl(host, 6222) for host in routes),
    )
    return replace(base, **more)  # type: ignore[arg-type]  # names of its own fields


@dataclass
class Net:
    """Meshes by host name on one clock; bytes arrive in order per connection."""

    seed: int = 1
    now_ns: int = SECOND
    meshes: dict[str, Mesh] = field(default_factory=dict)
    events: dict[str, list[MeshEvent]] = field(default_factory=dict)
    ends: dict[tuple[str, int], tuple[str, int]] = field(default_factory=dict)
    wires: deque[tuple[str, int, bytes]] = field(default_factory=deque)
    dead: set[str] = field(default_factory=set)
    conns: int = 0

    def add(self, wanted: MeshOptions) -> Mesh:
        name = wanted.server_name
        mesh = Mesh(wanted, random.Random(f"{self.seed}{name}").randrange, ACCOUNTS)
        self.meshes[name], self.events[name] = mesh, []
        mesh.start(self.now_ns)
        return mesh

    def perform(self, name: str) -> None:
        out = self.meshes[name].take()
        self.events[name] += out.events
        for conn, data in out.writes:
            if (name, conn) in self.ends:
                self.wires.append((*self.ends[name, conn], data))
        for conn, _ in out.closes:
            self.cut(name, conn)
        for dial in out.dials:
            if dial.host not in self.meshes or dial.host in self.dead:
                self.meshes[name].dial_failed(dial.token, "refused", self.now_ns)
                continue
            mine, theirs = self.conns + 1, self.conns + 2
            self.conns += 2
            self.ends[name, mine] = dial.host, theirs
            self.ends[dial.host, theirs] = name, mine
            accepted = Accepted(mine, ConnKind.ROUTE, dial.host, 6222, dial_token=dial.token)
            self.meshes[name].opened(accepted, self.now_ns)
            accepted = Accepted(theirs, ConnKind.ROUTE, name, 50000 + theirs)
            self.meshes[dial.host].opened(accepted, self.now_ns)

    def cut(self, name: str, conn: int) -> None:
        """The other side learns of it after what was written before."""
        other = self.ends.pop((name, conn), None)
        if other is not None:
            self.wires.append((*other, b""))

    def deliver(self, name: str, conn: int, data: bytes) -> None:
        mesh = self.meshes[name]
        if not data:
            self.ends.pop((name, conn), None)
            mesh.closed(conn, "Client Closed", self.now_ns)
            return
        word, _, body = data.strip().partition(b" ")
        if word == b"INFO":
            mesh.info(conn, body, self.now_ns)
        elif word == b"CONNECT":
            mesh.connect(conn, body, self.now_ns)
        elif word == b"PING":
            mesh.ping(conn)
        elif word == b"PONG":
            mesh.pong(conn, self.now_ns)
        else:
            mesh.error(conn, body.decode())

    def run(self, seconds: float, shuffle: random.Random | None = None) -> None:
        """Let time pass in steps of 10 ms; with `shuffle`, connections overtake each other."""
        for _ in range(round(seconds * 100)):
            for name in self.meshes:
                if name not in self.dead:
                    self.meshes[name].tick(self.now_ns)
                    self.perform(name)
            while self.wires:
                if shuffle is not None:
                    at = shuffle.randrange(len(self.wires))
                    where = self.wires[at][:2]
                    at = next(i for i, wire in enumerate(self.wires) if wire[:2] == where)
                    self.wires.rotate(-at)
                    name, conn, data = self.wires.popleft()
                    self.wires.rotate(at)
                else:
                    name, conn, data = self.wires.popleft()
                if name not in self.dead:
                    self.deliver(name, conn, data)
                    self.perform(name)
            self.now_ns += SECOND // 100

    def kill(self, name: str) -> None:
        self.dead.add(name)
        for end in [end for end in self.ends if end[0] == name]:
            self.cut(*end)

    def links(self, name: str, peer: str) -> list[str]:
        """Accounts of the links from one server to another; "" for the pool."""
        mesh = self.meshes[name]
        return sorted(link.account for link in mesh.links() if link.name == peer)


FULL = ["", "", "", "$SYS"]


def test_two_servers_build_the_pool() -> None:
    net = Net()
    a = net.add(options("a"))
    net.add(options("b", "a"))
    net.run(0.2)
    assert net.links("a", "b") == net.links("b", "a") == FULL
    assert net.events["a"][0] == PeerUp("Nb", "b", True)
    added = [event for event in net.events["a"] if isinstance(event, LinkAdded)]
    assert sorted((e.account, e.pool_index) for e in added) == [
        ("", 0), ("", 1), ("", 2), ("$SYS", 0),
    ]  # fmt: skip
    assert a.connect_urls() == ("a:4222", "b:4222")
    assert ConnectUrlsChanged(("a:4222", "b:4222")) in net.events["a"]
    assert {e.conn for e in added} == {link.conn for link in a.links()}


@settings(max_examples=examples(30), deadline=None)
@given(st.integers(0, 10_000))
def test_servers_that_dial_each_other_end_up_with_one_pool(seed: int) -> None:
    """Whatever overtakes what: one full pool to each, soon, and then peace."""
    net = Net(seed)
    net.add(options("a", "b", "c"))
    net.add(options("b", "a", "c"))
    net.add(options("c", "a", "b"))
    net.run(0.6, random.Random(seed))
    net.run(1.6, random.Random(seed))
    for name in "abc":
        for peer in "abc".replace(name, ""):
            assert net.links(name, peer) == FULL
    seen = {name: len(events) for name, events in net.events.items()}
    net.run(2, random.Random(seed))
    assert {name: len(events) for name, events in net.events.items()} == seen


def test_gossip_introduces_servers() -> None:
    net = Net()
    for name in "abcde":
        net.add(options(name, *([] if name == "a" else ["a"])))
    net.run(0.5)
    for name in "abcde":
        for peer in "abcde".replace(name, ""):
            assert net.links(name, peer) == FULL


def test_a_dead_peer_is_noticed_at_once_and_dialed_until_it_is_back() -> None:
    net = Net()
    net.add(options("a", "b"))
    net.add(options("b"))
    net.run(0.2)
    net.kill("b")
    net.run(0.01)
    assert isinstance(net.events["a"][-1], ConnectUrlsChanged)
    assert PeerDown("Nb", "b", "Client Closed") in net.events["a"]
    net.run(5)
    net.dead.clear()
    net.add(options("b", server_id="Nb2"))
    net.run(1.5)
    assert net.links("a", "b") == FULL
    assert net.meshes["a"].peers()[0].server_id == "Nb2"


def test_a_lost_link_is_replaced() -> None:
    net = Net()
    a = net.add(options("a", "b"))
    net.add(options("b"))
    net.run(0.2)
    for account in ("$SYS", ""):
        conn = next(link.conn for link in a.links() if link.account == account)
        net.cut("b", net.ends["a", conn][1])
        net.run(0.01)
        assert len(net.links("a", "b")) == 3
        assert net.links("b", "a") == FULL, "the other side did not notice"
        net.run(0.3)
        assert net.links("a", "b") == net.links("b", "a") == FULL
    assert not [e for e in net.events["a"] if isinstance(e, PeerDown)]


def test_a_start_before_the_others_finds_them_quickly() -> None:
    net = Net()
    net.add(options("a", "b"))
    net.run(0.3)
    net.add(options("b"))
    net.run(0.6)
    assert net.links("a", "b") == FULL


@pytest.mark.parametrize(
    ("mine", "theirs", "links"), [(-1, 3, 1), (3, -1, 1), (5, 3, 6), (3, 5, 6)]
)
def test_pool_sizes(mine: int, theirs: int, links: int) -> None:
    net = Net()
    net.add(options("a", pool_size=theirs))
    net.add(options("b", "a", pool_size=mine))
    net.run(1)
    assert len(net.links("a", "b")) == len(net.links("b", "a")) == links
    removed = [event for event in net.events["b"] if isinstance(event, LinkRemoved)]
    assert removed == []


def test_pinned_accounts_that_only_one_side_has() -> None:
    net = Net()
    net.add(options("a"))
    net.add(options("b", "a", accounts=("P",)))
    net.run(0.5)
    assert net.links("a", "b") == FULL
    seen = len(net.events["b"])
    net.run(5)
    assert len(net.events["b"]) == seen, "the refused account is not tried again"


def test_routes_to_oneself_are_forgotten() -> None:
    net = Net()
    net.add(options("a", "a"))
    net.run(3)
    assert net.links("a", "a") == [] and net.conns == 2


def test_lame_duck_takes_client_urls_back() -> None:
    net = Net()
    a, b = net.add(options("a", "b")), net.add(options("b"))
    net.run(0.2)
    b.lame_duck()
    net.run(0.1)
    assert a.connect_urls() == ("a:4222",) and net.links("a", "b") == FULL


def test_changed_urls_are_told() -> None:
    net = Net()
    a, b = net.add(options("a", "b")), net.add(options("b"))
    net.run(0.2)
    b.change_options(options("b", client_urls=("b:5555",)), {"$G", "$SYS"}, 0)
    net.run(0.1)
    assert a.connect_urls() == ("a:4222", "b:5555")


def test_generated_cluster_names_give_way() -> None:
    net = Net()
    a = net.add(options("a", "b", cluster="zz", cluster_dynamic=True))
    net.add(options("b"))
    net.run(1.5)
    assert a.cluster == "C" and net.links("a", "b") == FULL
    assert ClusterRenamed("C") in net.events["a"]


def test_credentials() -> None:
    net = Net()
    net.add(options("a", user="u", password="p"))
    net.add(options("b", "a", user="u", password="p"))
    net.add(options("c", "a", user="u", password="wrong"))
    net.run(0.5)
    assert net.links("a", "b") == FULL and net.links("a", "c") == []


def test_routes_come_and_go() -> None:
    net = Net()
    a, _ = net.add(options("a", "b")), net.add(options("b"))
    net.add(options("c"))
    net.run(0.5)
    assert net.links("a", "b") == FULL and net.links("a", "c") == []
    a.change_options(options("a", "c"), ACCOUNTS, net.now_ns)
    net.run(0.5)
    assert net.links("a", "c") == FULL and net.links("a", "b") == []
    conns = net.conns
    net.run(3)
    assert net.conns == conns


def test_peers_whose_credentials_count_no_more_have_to_go() -> None:
    net = Net()
    a = net.add(options("a", user="u", password="p"))
    net.add(options("b", "a", user="u", password="p"))
    net.run(0.5)
    a.change_options(options("a", user="u", password="p", ping_max=5), ACCOUNTS, net.now_ns)
    net.run(0.1)
    assert net.links("a", "b") == FULL
    a.change_options(options("a", user="u", password="q"), ACCOUNTS, net.now_ns)
    lines = b"".join(data for _, data in a.take().writes)
    assert b"-ERR 'Authorization Violation'" in lines and a.links() == []


def test_credentials_for_dials_change_where_the_route_has_none_of_its_own() -> None:
    net = Net()
    a = net.add(options("a", "b", user="u", password="p"))
    net.run(0.5)
    net.add(options("b", user="u", password="q"))
    net.run(2)
    assert net.links("a", "b") == []
    a.change_options(options("a", "b", user="u", password="q"), ACCOUNTS, net.now_ns)
    net.run(3)
    assert net.links("a", "b") == FULL


def test_links_are_made_anew_for_another_pool() -> None:
    net = Net()
    a, b = net.add(options("a", "b")), net.add(options("b"))
    net.run(0.5)
    a.change_options(options("a", "b", accounts=("P",)), ACCOUNTS, net.now_ns)
    b.change_options(options("b", accounts=("P",)), ACCOUNTS, net.now_ns)
    net.run(3)
    assert net.links("a", "b") == net.links("b", "a")
    assert {link.account for link in a.links()} == {"", "$SYS", "P"}


def test_stop_closes_all_and_dials_no_more() -> None:
    net = Net()
    a = net.add(options("a", "b"))
    net.add(options("b"))
    net.run(0.2)
    a.stop(net.now_ns)
    net.perform("a")
    conns = net.conns
    net.run(3)
    assert net.links("b", "a") == [] and net.conns == conns


def test_keep_alive_closes_silent_links() -> None:
    net = Net()
    a, _ = net.add(options("a", "b", ping_interval_ns=2 * SECOND)), net.add(options("b"))
    net.run(0.5)
    assert a.links()[0].rtt_ns > 0
    now_ns = net.now_ns
    for _ in range(8):
        now_ns += SECOND
        a.tick(now_ns)
    reasons = {reason for _, reason in a.take().closes}
    assert reasons == {"Stale Connection"} and a.links() == []
