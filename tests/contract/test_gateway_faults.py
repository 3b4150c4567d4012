"""Gateways under faults: servers that are killed, clusters that are gone and come back, names that
do not fit, logins that fail, strangers on the port."""

import socket
from collections.abc import Iterator
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path

import pytest

from jsctl.testing import HOST, Broker
from tests.contract.conftest import KINDS
from tests.support.certificates import make_certificates
from tests.support.gateways import (
    IDS,
    PAIRS,
    block,
    free_port,
    gateway_port,
    gatewayz,
    linked,
    page,
    pair,
    remote,
    told,
)
from tests.support.listeners import WAIT_S, connected, listen, settle
from tests.support.super_clusters import super_cluster, whole
from tests.support.waiting import eventually, wait_for

of_each_pair = pytest.mark.parametrize("kinds", PAIRS, ids=IDS)
of_each_kind = pytest.mark.parametrize("kind", list(KINDS))


@of_each_pair
async def test_a_cluster_that_comes_back_is_heard_again(kinds: tuple[str, str]) -> None:
    with ExitStack() as servers:
        port = free_port()
        one = servers.enter_context(KINDS[kinds[0]](config=block("A", port=port), name="a1"))
        config = block("B", remote("A", port), port=free_port())
        other = servers.enter_context(KINDS[kinds[1]](config=config, name="b1"))
        linked(one, "B")
        linked(other, "A")
        async with AsyncExitStack() as stack:
            heard = await listen(await connected(stack, one), "x")
            told(other, "x")
            other.kill()
            wait_for(lambda: not gatewayz(one, "")["outbound_gateways"], "a1 is alone")
            other.start()
            linked(one, "B")
            linked(other, "A")
            told(other, "x")
            client = await connected(stack, other)
            await client.publish("x", b"again")
            assert (await heard.reach(1))[0].data == b"again"


@of_each_pair
async def test_when_the_server_on_the_way_dies_another_one_is_there(
    kinds: tuple[str, str],
) -> None:
    """The one server of `a` is connected with one of `b`; whichever it is, it is killed."""
    sizes = {"a": 1, "b": 2}
    with super_cluster(dict(zip(sizes, kinds, strict=True)), sizes) as servers:
        peer = gatewayz(servers["a1"], "")["outbound_gateways"]["b"]["connection"]["name"]
        ids = {page(server, "/varz")["server_id"]: name for name, server in servers.items()}
        dead = ids[peer]
        left = "b2" if dead == "b1" else "b1"
        async with AsyncExitStack() as stack:
            heard = await listen(await connected(stack, servers[left]), "x")
            told(servers["a1"], "x")
            client = await connected(stack, servers["a1"])
            servers[dead].kill()

            async def there() -> bool:
                await client.publish("x", b"on")
                await settle(client)
                return bool(heard)

            await eventually(there, "what is published arrives by the other server")
            servers[dead].start()
            whole(servers[dead], {"a"}, 1)


@of_each_pair
async def test_a_third_cluster_is_found_by_gossip(kinds: tuple[str, str]) -> None:
    """B and C know A alone; they learn of each other."""
    with ExitStack() as servers:
        one = servers.enter_context(KINDS[kinds[0]](config=block("A"), name="a1"))
        there = remote("A", gateway_port(one))
        found = {"a1": one}
        for name in ("b1", "c1"):
            config = block(name[0].upper(), there)
            found[name] = servers.enter_context(KINDS[kinds[1]](config=config, name=name))
        for name, server in found.items():
            linked(server, *({"A", "B", "C"} - {name[0].upper()}))
        rows = gatewayz(found["b1"], "")["outbound_gateways"]
        assert {name: row["configured"] for name, row in rows.items()} == {"A": True, "C": False}


@of_each_pair
def test_a_wrong_name_is_told(kinds: tuple[str, str]) -> None:
    with ExitStack() as servers:
        one = servers.enter_context(KINDS[kinds[0]](config=block("A"), name="a1"))
        config = block("B", remote("X", gateway_port(one)))
        other = servers.enter_context(KINDS[kinds[1]](config=config, name="b1"))
        text = 'Failing connection to gateway "X", remote gateway name is "A"'
        wait_for(lambda: text in other.logs, "the one that dials is told")
        if kinds[0] == "jsctl":  # nats-server takes nothing but CONNECT first.
            text = 'Connection from "B" rejected, wanted to connect to "X", this is "A"'
            wait_for(lambda: text in one.logs, "the other one is told")
        assert not gatewayz(one, "")["inbound_gateways"]


@of_each_pair
def test_an_unknown_cluster_is_rejected_if_that_is_configured(kinds: tuple[str, str]) -> None:
    with ExitStack() as servers:
        config = block("A", more="reject_unknown_cluster: true")
        one = servers.enter_context(KINDS[kinds[0]](config=config, name="a1"))
        config = block("B", remote("A", gateway_port(one)))
        other = servers.enter_context(KINDS[kinds[1]](config=config, name="b1"))
        text = 'Rejecting connection from gateway "B"'
        wait_for(lambda: text in one.logs, "the log names the cluster")
        text = 'Connection to gateway "A" rejected'
        wait_for(lambda: text in other.logs, "the other one is told")


@of_each_pair
def test_a_server_with_a_name_that_is_taken_is_turned_away(kinds: tuple[str, str]) -> None:
    with ExitStack() as servers:
        one = servers.enter_context(KINDS[kinds[0]](config=block("A"), name="same"))
        config = block("B", remote("A", gateway_port(one)))
        other = servers.enter_context(KINDS[kinds[1]](config=config, name="same"))
        text = 'Remote server has a duplicate name: "same"'
        wait_for(lambda: text in one.logs or text in other.logs, "one of them says so")
        assert not gatewayz(one, "")["outbound_gateways"]


@of_each_pair
def test_who_cannot_log_in_stays_out(kinds: tuple[str, str]) -> None:
    login = "authorization { user: g, password: secret }"
    with ExitStack() as servers:
        one = servers.enter_context(KINDS[kinds[0]](config=block("A", more=login), name="a1"))
        config = block("B", remote("A", gateway_port(one), login="g:wrong"))
        other = servers.enter_context(KINDS[kinds[1]](config=config, name="b1"))
        wait_for(lambda: "Authorization Violation" in other.logs, "the other one is told")
        assert not gatewayz(one, "")["inbound_gateways"]
        assert "secret" not in one.logs + other.logs


@of_each_pair
def test_who_can_log_in_does(kinds: tuple[str, str]) -> None:
    login = "authorization { user: g, password: secret }"
    with pair(kinds, more=(login, login)):
        pass


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A certificate for everything."""
    yield make_certificates(tmp_path_factory.mktemp("certificates"))


@of_each_pair
async def test_what_crosses_is_secured(kinds: tuple[str, str], certificates: Path) -> None:
    files = {"cert_file": "cert.pem", "key_file": "key.pem", "ca_file": "ca.pem"}
    words = ", ".join(f'{key}: "{certificates / file}"' for key, file in files.items())
    more = f"tls {{ {words} }}"
    with pair(kinds, more=(more, more)) as (one, other):
        async with AsyncExitStack() as stack:
            heard = await listen(await connected(stack, one), "x")
            told(other, "x")
            await (await connected(stack, other)).publish("x", b"sealed")
            assert (await heard.reach(1))[0].data == b"sealed"


STRANGERS = (
    b"GET / HTTP/1.1\r\n\r\n",
    b"PUB x 1\r\nx\r\n",
    b"CONNECT {}\r\nPING\r\n",
    b'CONNECT {"lang":"go"}\r\n',
    b'CONNECT {"gateway":1}\r\n',
    b'CONNECT {"gateway":"A"}\r\n',
    b'CONNECT {"gateway":"B"}\r\nINFO {"gateway":"C","server_id":"N"}\r\n',
    b'INFO {"gateway":"B","server_id":"N","gateway_urls":["x"]}\r\n',
    b"RS+ $G x\r\n",
    b"RMSG $G x 1\r\nx\r\n",
    b'CONNECT {"gateway":"B"}\r\nRMSG $G x 1\r\nx\r\n',
    b"\xff" * 4096,
    b"{" * 70_000,
)
LINKED = (
    b"RS+ $G x\r\n",
    b"RS- $G x\r\n",
    b"LS+ C $G x\r\n",
    b"LMSG C $G x 0 1\r\nx\r\n",
    b"RMSG $G x 99999999999\r\n",
    b"RMSG $G\r\n",
    b"CONNECT {}\r\n",
    b"A+\r\n",
)
GREETING = b'CONNECT {"gateway":"B"}\r\nINFO {"gateway":"B","server_id":"NX","server_name":"x"}\r\n'


def ends(port: int, data: bytes) -> bool:
    """Whether the server ends a connection on which that is said."""
    with socket.create_connection((HOST, port), timeout=WAIT_S) as peer:
        peer.sendall(data)
        try:
            while peer.recv(65536):
                pass
        except ConnectionResetError:
            pass
    return True


@pytest.mark.parametrize("said", STRANGERS, ids=lambda said: repr(said[:24]))
def test_strangers_are_turned_away(strange: Broker, said: bytes) -> None:
    assert ends(gateway_port(strange), said)
    assert not gatewayz(strange, "")["inbound_gateways"]


@pytest.mark.parametrize("said", LINKED, ids=lambda said: repr(said[:24]))
def test_what_no_gateway_says_ends_its_connection(strange: Broker, said: bytes) -> None:
    assert ends(gateway_port(strange), GREETING + said)
    assert page(strange, "/varz")["jsctl_internal_errors"] == 0


@pytest.fixture(scope="module")
def strange() -> Iterator[Broker]:
    """A broker whose gateway port strangers find."""
    with Broker(config=block("A", more="authorization { timeout: 2 }"), name="a1") as broker:
        yield broker
