"""Clusters whose gateways are secured, of either kind: messages cross, and who does not fit is told
apart by a line in the log of each side."""

import re
from collections.abc import Iterator
from contextlib import AsyncExitStack, ExitStack, contextmanager
from pathlib import Path

import pytest

from jsctl.testing import HOST, Broker
from tests.contract.conftest import KINDS
from tests.support.certificates import make_certificates
from tests.support.gateways import IDS, PAIRS, block, gateway_port, linked, remote, told
from tests.support.listeners import connected, listen
from tests.support.ports import free_port
from tests.support.waiting import wait_for


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_certificates(tmp_path_factory.mktemp("one"))


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of another authority."""
    return make_certificates(tmp_path_factory.mktemp("two"))


def tls(at: Path) -> str:
    """A `tls` block."""
    files = f"cert_file: '{at}/cert.pem', key_file: '{at}/key.pem', ca_file: '{at}/ca.pem'"
    return f"tls {{ {files}, timeout: 5 }}"


@contextmanager
def clusters(
    kinds: tuple[str, str], here: str, there: str, name: str = "A"
) -> Iterator[tuple[Broker, Broker]]:
    """A server of A, and one of B, which dials it by a name."""
    with ExitStack() as stack:
        one = stack.enter_context(KINDS[kinds[0]](config=block("A", more=here), name="a1"))
        known = remote(name, gateway_port(one))
        config = block("B", known, more=there)
        yield one, stack.enter_context(KINDS[kinds[1]](config=config, name="b1"))


@pytest.mark.parametrize("kinds", PAIRS, ids=IDS)
async def test_messages_cross(kinds: tuple[str, str], certificates: Path) -> None:
    with clusters(kinds, tls(certificates), tls(certificates)) as servers:
        for one, name in zip(servers, "BA", strict=True):
            linked(one, name)
        for one, other in (servers, servers[::-1]):
            async with AsyncExitStack() as stack:
                heard = await listen(await connected(stack, other), "secret")
                told(one, "secret")
                client = await connected(stack, one)
                for number in range(100):
                    await client.publish("secret", b"%d" % number * 1000)
                await heard.reach(100)
            told(one, "secret", gone=True)


def logged(server: Broker, pattern: str) -> None:
    """Wait for a line."""
    wait_for(lambda: re.search(pattern, server.logs), f"{server.name} has logged {pattern}")


@pytest.mark.parametrize("kinds", PAIRS, ids=IDS)
@pytest.mark.parametrize("what", ["plain to TLS", "TLS to plain", "another authority"])
def test_who_does_not_fit(
    kinds: tuple[str, str], what: str, certificates: Path, others: Path
) -> None:
    here = "" if what == "TLS to plain" else tls(certificates)
    there = {"plain to TLS": "", "TLS to plain": tls(certificates)}.get(what, tls(others))
    with clusters(kinds, here, there) as (one, other):
        if what == "TLS to plain":
            one.wait_log("authentication error")
        else:
            logged(one, r"TLS (gateway )?handshake error: \S")
        if what != "plain to TLS":
            logged(other, r"TLS gateway handshake error: \S|Error connecting to explicit gateway")
        assert "registered" not in one.logs + other.logs


@pytest.mark.parametrize("kinds", PAIRS, ids=IDS)
def test_a_cluster_of_another_name(kinds: tuple[str, str]) -> None:
    with clusters(kinds, "", "", name="Z") as (one, other):
        other.wait_log('Failing connection to gateway "Z", remote gateway name is "A"')
        assert "registered" not in one.logs + other.logs


@pytest.mark.parametrize("kinds", PAIRS, ids=IDS)
def test_who_is_no_number_does_not_lend_its_name(kinds: tuple[str, str], tmp_path: Path) -> None:
    """The certificate behind a number may have the name of another address, or the number."""
    block_tls = tls(make_certificates(tmp_path, "/CN=server", names=f"IP:{HOST}"))
    with ExitStack() as stack:
        config = block("A", more=block_tls)
        one = stack.enter_context(KINDS[kinds[0]](config=config, name="a1"))
        urls = f'"nats://localhost:{free_port()}", "nats://{HOST}:{gateway_port(one)}"'
        config = block("B", f"{{ name: A, urls: [{urls}] }}", more=block_tls)
        other = stack.enter_context(KINDS[kinds[1]](config=config, name="b1"))
        linked(one, "B")
        linked(other, "A")
