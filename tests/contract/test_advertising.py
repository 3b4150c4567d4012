"""Where servers of a cluster tell clients to connect."""

import contextlib
import json
import re
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import Any

import pytest

from jsctl.testing import Broker, BrokerFailed
from tests.contract.conftest import KINDS
from tests.support.waiting import wait_for

ROUTES = ("--cluster_name", "C", "--cluster", "nats://127.0.0.1:-1")
PORTS_MAX = 5


@pytest.fixture(params=list(KINDS))
def kind(request: pytest.FixtureRequest) -> type[Broker]:
    """A server of each kind."""
    return KINDS[str(request.param)]


def _started(running: ExitStack, server: Callable[[], Broker]) -> Broker:
    """Ports are kept free on loopback alone: at all addresses somebody's connection may have the
    one that a server was given, and then it gets another."""
    for _ in range(PORTS_MAX):
        try:
            return running.enter_context(server())
        except BrokerFailed as error:
            if "address already in use" not in str(error):
                raise
    raise AssertionError("no port is free")


@contextmanager
def _pair(kind: type[Broker], *flags: str) -> Iterator[tuple[Broker, Broker]]:
    with ExitStack() as running:
        a = _started(running, lambda: kind(*ROUTES, *flags, name="a"))
        found = r"route connections on \S+:(\d+)"
        (port,) = wait_for(lambda: re.findall(found, a.logs), "the port of routes")
        route = ("--routes", f"nats://127.0.0.1:{port}")
        b = _started(running, lambda: kind(*ROUTES, *route, *flags, name="b"))
        wait_for(lambda: all(_page(one, "/routez")["num_routes"] for one in (a, b)), "a route")
        yield a, b


def _info(broker: Broker) -> dict[str, object]:
    with socket.create_connection(("127.0.0.1", broker.port)) as one, one.makefile("rb") as lines:
        found: dict[str, object] = json.loads(lines.readline()[len("INFO ") :])
    return found


def _page(broker: Broker, path: str) -> dict[str, object]:
    found = broker.monitor(path)
    assert isinstance(found, dict)
    return dict(found)


def _urls(broker: Broker) -> list[str]:
    found = _info(broker).get("connect_urls") or []
    assert isinstance(found, list)
    return found


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_all_interfaces_are_told_by_their_addresses(kind: type[Broker], host: str) -> None:
    with _pair(kind, "-a", host) as (a, b):
        # A machine without a network has none to tell, and says nothing of itself.
        wait_for(lambda: _page(a, "/varz").get("connect_urls") == (_urls(a) or None), "one view")
        found = [url.rpartition(":")[::2] for url in _urls(a)]
        hosts = [host for host, port in found if port == str(a.port)]
        assert not {"0.0.0.0", "[::]", "127.0.0.1", "[::1]", ""} & set(hosts)
        assert hosts == _addresses()
        # Its own come first; nats-server keeps those of others in no order.
        assert found[: len(hosts)] == [(host, str(a.port)) for host in hosts]
        assert sorted(found[len(hosts) :]) == sorted((host, str(b.port)) for host in hosts)


@cache
def _addresses() -> list[str]:
    """What the machine's interfaces have, as a real server puts it."""
    with _pair(KINDS["nats-server"], "-a", "0.0.0.0") as (a, _):
        found = [url.rpartition(":")[::2] for url in _urls(a)]
        return [host for host, port in found if port == str(a.port)]


def test_one_address_is_told_as_it_is(kind: type[Broker]) -> None:
    with _pair(kind) as (a, b):
        wait_for(lambda: len(_urls(a)) == 2, "both servers")
        assert _urls(a) == [f"127.0.0.1:{a.port}", f"127.0.0.1:{b.port}"]


def test_an_advertised_address_is_told_instead_with_the_port_it_lacks(kind: type[Broker]) -> None:
    with _pair(kind, "--client_advertise", "example.org") as (a, b):
        wait_for(lambda: len(_urls(a)) == 2, "both servers")
        assert _urls(a) == [f"example.org:{a.port}", f"example.org:{b.port}"]
        said = _info(a)
        assert (said["host"], said["port"]) == ("example.org", a.port)
        varz = _page(a, "/varz")
        assert (varz["host"], varz["port"]) == ("example.org", a.port)


def test_nothing_is_told_where_that_is_not_wanted(kind: type[Broker]) -> None:
    with _pair(kind, "--no_advertise") as (a, _):
        assert _urls(a) == []
        assert "connect_urls" not in _page(a, "/varz")


def test_a_server_that_leaves_is_told_no_more(kind: type[Broker]) -> None:
    with _pair(kind) as (a, b):
        wait_for(lambda: len(_urls(a)) == len(_urls(b)) == 2, "both servers")
        with socket.create_connection(("127.0.0.1", a.port)) as one, one.makefile("rb") as lines:
            one.sendall(b'CONNECT {"protocol":1,"verbose":false}\r\nPING\r\n')
            while lines.readline() != b"PONG\r\n":
                pass
            a.signal(signal.SIGUSR2)
            said: dict[str, Any] = {"connect_urls": [f"127.0.0.1:{a.port}"]}
            while f"127.0.0.1:{a.port}" in said["connect_urls"]:
                line = lines.readline()
                if line.startswith(b"INFO "):
                    said = json.loads(line[len(b"INFO ") :])
        assert said["ldm"] is True
        assert said["connect_urls"] == [f"127.0.0.1:{b.port}"]
        wait_for(lambda: _urls(b) == [f"127.0.0.1:{b.port}"], "the other one's own address only")
        a.kill()  # It would stay for ten seconds more.


@pytest.mark.parametrize("text", ["a:b", "a:b:c"])
@pytest.mark.parametrize("flag", ["--client_advertise", "--cluster_advertise"])
def test_an_address_that_is_none_is_refused(kind: type[Broker], flag: str, text: str) -> None:
    broker = kind(*ROUTES, flag, text)
    try:
        # nats-server looks at its routes when clients may connect already.
        with contextlib.suppress(BrokerFailed):
            broker.start()
        broker.wait_log(f"Advertise value of {text}")
        wait_for(lambda: not broker.running, "the end of the server")
    finally:
        broker.close()
