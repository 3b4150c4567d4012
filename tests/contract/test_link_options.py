"""Options of gateways and leaf nodes by what they do, on both kinds of servers: those that no other
file looks at."""

import json
import re
import socket
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack, ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path

import pytest

from jsctl.testing import HOST, Broker
from tests.contract.conftest import KINDS
from tests.support import leafs
from tests.support.gateways import IDS, PAIRS, block, gateway_port, gatewayz, remote
from tests.support.leafs import hub_block, leaf_port, leafz, spoke_block
from tests.support.listeners import WAIT_S, connected, known, listen
from tests.support.operators import operated
from tests.support.waiting import wait_for

both_kinds = pytest.mark.parametrize("kind", list(KINDS))
four_pairs = pytest.mark.parametrize("kinds", PAIRS, ids=IDS)
TRIED = re.compile(r"Error connecting to \w+ gateway \"(\w+)\".*\(attempt (\d+)\)")
LEAF_TRIED = re.compile(r"Error trying to connect as leafnode to remote server .*i/o timeout")
TIME = re.compile(r"(\d+):(\d+):([\d.]+) ")
LONGER = 1.3
"""Each pause of a backoff is about twice as long as the one before, some of it by chance."""
NO_BACKOFF_S = 1.6
"""Without one no pause is as long."""


@contextmanager
def closed_port() -> Iterator[int]:
    """One that nobody else gets, and where nobody listens."""
    with socket.socket() as held:
        held.bind((HOST, 0))
        yield int(held.getsockname()[1])


def tries(server: Broker, cluster: str) -> list[int]:
    """The numbers of the dials of a cluster that were refused."""
    return [int(number) for name, number in TRIED.findall(server.logs) if name == cluster]


# ---- gateways


@both_kinds
@pytest.mark.parametrize("retries", [6, 7])
def test_a_cluster_that_others_told_of_is_given_up(kind: str, retries: int) -> None:
    """After the first dial and `connect_retries` more; one that is configured is dialed on."""
    with ExitStack() as stack:
        ports = [stack.enter_context(closed_port()) for _ in range(3)]
        # Who tells of C is ours: nats-server dials both of them without any pause meanwhile.
        one = stack.enter_context(KINDS["jsctl"](config=block("A"), name="a1"))
        there = remote("A", gateway_port(one))
        config = block("C", there, more=f'advertise: "{HOST}:{ports[0]}"')
        stack.enter_context(KINDS["nats-server"](config=config, name="c1"))
        wait_for(lambda: gatewayz(one, "")["inbound_gateways"], "C is there")
        more = f'connect_retries: {retries}, advertise: "{HOST}:{ports[1]}"'
        config = f"debug: true\n{block('B', there, remote('D', ports[2]), more=more)}"
        last = stack.enter_context(KINDS[kind](config=config, name="b1"))
        wait_for(lambda: max(tries(last, "D"), default=0) > retries + 4, "D is dialed on")
        assert max(tries(last, "C")) == retries + 1


@both_kinds
def test_pauses_between_dials_grow(kind: str) -> None:
    with closed_port() as nowhere:
        there = remote("D", nowhere)
        config = f"debug: true\n{block('A', there, more='connect_backoff: true')}"
        with KINDS[kind](config=config, name="a1") as one:

            def pauses() -> list[float]:
                lines = [line for line in one.logs.splitlines() if TRIED.search(line)]
                found = [[float(part) for part in TIME.findall(line)[0]] for line in lines]
                seconds = [hours * 3600 + minutes * 60 + rest for hours, minutes, rest in found]
                return [(later - earlier) % 86400 for earlier, later in pairwise(seconds)]

            wait_for(lambda: max(pauses(), default=0) > NO_BACKOFF_S, "a long pause")
            *_, before, last = pauses()
            assert last > before * LONGER


@four_pairs
def test_clusters_that_are_not_known_are_rejected(kinds: tuple[str, str]) -> None:
    with ExitStack() as stack:
        config = block("A", more="reject_unknown_cluster: true")
        one = stack.enter_context(KINDS[kinds[0]](config=config, name="a1"))
        config = block("B", remote("A", gateway_port(one)))
        other = stack.enter_context(KINDS[kinds[1]](config=config, name="b1"))
        one.wait_log('Rejecting connection from gateway "B"')
        other.wait_log('Connection to gateway "A" rejected')
        assert not gatewayz(one, "")["inbound_gateways"]


# ---- leaf nodes


@both_kinds
def test_a_remote_that_is_switched_off_is_not_dialed(kind: str) -> None:
    with ExitStack() as stack:
        hub = stack.enter_context(KINDS["nats-server"](config=hub_block(), name="hub"))
        door = stack.enter_context(socket.create_server((HOST, 0)))
        off = leafs.remote(int(door.getsockname()[1]), "disabled: true")
        config = spoke_block(off, leafs.remote(leaf_port(hub)))
        leaf = stack.enter_context(KINDS[kind](config=config, name="leaf"))
        leafs.linked(leaf)
        door.setblocking(False)
        with pytest.raises(BlockingIOError):
            door.accept()


@contextmanager
def deaf_door() -> Iterator[int]:
    """Where no connection is made: so many wait already that more are not noticed."""
    with ExitStack() as stack:
        door = stack.enter_context(socket.create_server((HOST, 0), backlog=0))
        for _ in range(3):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(door.getsockname())
        yield int(door.getsockname()[1])


@both_kinds
@pytest.mark.parametrize(
    ("block_says", "remote_says", "seconds"),
    [("1500ms", "", 1.5), ("10s", "500ms", 0.5)],
)
def test_a_dial_is_given_up_after_a_while(
    kind: str, block_says: str, remote_says: str, seconds: float
) -> None:
    with deaf_door() as port:
        block, own = [
            f'dial_timeout: "{said}"' if said else "" for said in (block_says, remote_says)
        ]
        config = f"debug: true\n{spoke_block(leafs.remote(port, own), more=block)}"
        with KINDS[kind](config=config, name="leaf") as leaf:

            def times() -> list[float]:
                lines = [line for line in leaf.logs.splitlines() if LEAF_TRIED.search(line)]
                found = [[float(part) for part in TIME.findall(line)[0]] for line in lines]
                return [hours * 3600 + minutes * 60 + rest for hours, minutes, rest in found]

            wait_for(lambda: len(times()) > 1, "it dials again")
            first, second = times()[:2]
            assert seconds <= (second - first) % 86400 < seconds + 2


@both_kinds
def test_a_hub_that_says_nothing_is_left_after_a_while(kind: str) -> None:
    with socket.create_server((HOST, 0)) as door:
        door.settimeout(WAIT_S)
        silent = leafs.remote(int(door.getsockname()[1]), 'first_info_timeout: "2500ms"')
        with KINDS[kind](config=spoke_block(silent), name="leaf"):
            hung, _ = door.accept()
            with hung:
                hung.settimeout(WAIT_S)
                begin = time.monotonic()
                assert hung.recv(1) == b""
                assert time.monotonic() - begin > 2
            door.accept()[0].close()  # It comes again.


@both_kinds
@pytest.mark.parametrize("which", ["gateway", "leafnodes"])
def test_who_says_nothing_is_let_go_after_a_while(kind: str, which: str) -> None:
    login = "authorization { user: u, password: p, timeout: 3 }"
    config = hub_block(login) if which == "leafnodes" else block("A", more=login)
    with KINDS[kind](config=config, name="one") as one:
        port = leaf_port(one) if which == "leafnodes" else gateway_port(one)
        with socket.create_connection((HOST, port), WAIT_S) as stranger:
            lines, begin = stranger.makefile("rb"), time.monotonic()
            assert lines.readline().startswith(b"INFO ")
            assert lines.readline() == b"-ERR 'Authentication Timeout'\r\n"
            assert time.monotonic() - begin > 2.5


@both_kinds
@pytest.mark.parametrize(
    ("said", "told"),
    [
        ('advertise: "hub.example:7555"', ["hub.example:7555"]),
        ('advertise: "hub.example"', ["hub.example:{port}"]),
        ("", [f"{HOST}:{{port}}"]),
        ('advertise: "hub.example:7555", no_advertise: true', []),
    ],
)
def test_where_leaf_nodes_are_told_to_come(kind: str, said: str, told: list[str]) -> None:
    with KINDS[kind](config=hub_block(said), name="hub") as hub:
        port = leaf_port(hub)
        with socket.create_connection((HOST, port), WAIT_S) as stranger:
            info = json.loads(stranger.makefile("rb").readline()[5:])
    assert info.get("leafnode_urls", []) == [one.format(port=port) for one in told]


@both_kinds
async def test_a_leaf_node_logs_in_with_credentials(kind: str, tmp_path: Path) -> None:
    """At a nats-server in operator mode, which brokers do not have."""
    made = operated()
    path = tmp_path / "user.creds"
    path.write_text(made.credentials)
    with KINDS["nats-server"](config=made.config + hub_block(), name="hub") as hub:
        config = spoke_block(leafs.remote(leaf_port(hub), f'credentials: "{path}"'))
        with KINDS[kind](config=config, name="leaf") as leaf:
            leafs.linked(leaf)
            (row,) = leafs.linked(hub)
            assert row["account"] == made.account
            async with AsyncExitStack() as stack:
                near = await connected(stack, leaf)
                far = await connected(stack, hub, user_credentials=str(path))
                heard = await listen(far, "x")
                await known(near, "x", heard)


@both_kinds
def test_credentials_of_somebody_else_are_refused(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "user.creds"
    path.write_text(operated().credentials)
    with KINDS["nats-server"](config=operated().config + hub_block(), name="hub") as hub:
        config = spoke_block(leafs.remote(leaf_port(hub), f'credentials: "{path}"'))
        with KINDS[kind](config=config, name="leaf") as leaf:
            leaf.wait_log("Authorization Violation")
            assert leafz(leaf) == []
