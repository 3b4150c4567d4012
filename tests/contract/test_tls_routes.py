"""Routes over TLS, between servers of one kind and of both: messages cross, strangers do not."""

import asyncio
import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import product
from pathlib import Path

import nats
import pytest
from nats.aio.msg import Msg
from nats.errors import NoRespondersError

from jsctl.testing import HOST, Broker, ReservedPort
from tests.contract.conftest import KINDS
from tests.support.certificates import make_certificates
from tests.support.pulling import settled
from tests.support.waiting import wait_for

WAIT_S = 30.0
PAIRS = list(product(KINDS, repeat=2))
CONFIG = """server_name: {name}
cluster {{
    name: c
    listen: "{host}:{port}"
    tls {{
        cert_file: '{at}/cert.pem', key_file: '{at}/key.pem', ca_file: '{at}/ca.pem', timeout: 5
    }}
    {routes}
}}
"""


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_certificates(tmp_path_factory.mktemp("one"))


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_certificates(tmp_path_factory.mktemp("two"))


@pytest.fixture
def ports() -> Iterator[tuple[int, int]]:
    """Of the routes of two servers."""
    reserved = ReservedPort(), ReservedPort()
    yield reserved[0].number, reserved[1].number
    for port in reserved:
        port.release()


def member(kind: str, name: str, port: int, at: Path, route: int = 0) -> Broker:
    """A server that is to be started; `route` is where it dials."""
    routes = f'routes: ["nats://localhost:{route}"]' if route else ""
    config = CONFIG.format(name=name, host=HOST, port=port, at=at, routes=routes)
    return KINDS[kind](name=name, config=config)


def routes(server: Broker) -> int:
    """How many connections to other servers there are."""
    page = server.monitor("/routez")
    assert isinstance(page, dict)
    found = page["num_routes"]
    assert isinstance(found, int)
    return found


@pytest.mark.parametrize(("listens", "dials"), PAIRS, ids=[f"{a}-{b}" for a, b in PAIRS])
async def test_messages_cross(
    listens: str, dials: str, certificates: Path, ports: tuple[int, int]
) -> None:
    with ExitStack() as stack:
        first = stack.enter_context(member(listens, "n1", ports[0], certificates))
        second = stack.enter_context(member(dials, "n2", ports[1], certificates, ports[0]))
        wait_for(lambda: routes(first) > 3 and routes(second) > 3, "all routes")
        here = await nats.connect(first.url, connect_timeout=int(WAIT_S))
        there = await nats.connect(second.url, connect_timeout=int(WAIT_S))

        async def answer(message: Msg) -> None:
            await message.respond(message.data.upper())

        await here.subscribe("up", cb=answer)
        await settled(here)
        async with asyncio.timeout(WAIT_S):
            while True:
                try:
                    reply = await there.request("up", b"text", timeout=WAIT_S)
                    break
                except NoRespondersError:
                    await settled(here)
        assert reply.data == b"TEXT"
        await here.close()
        await there.close()


@pytest.mark.parametrize("kind", list(KINDS))
def test_the_handshake_comes_first_and_asks_who_dials(
    kind: str, certificates: Path, others: Path, ports: tuple[int, int]
) -> None:
    with member(kind, "n1", ports[0], certificates):
        assert said_to(ports[0], certificates, certificates).startswith("INFO {")
        with pytest.raises(OSError):
            said_to(ports[0], certificates, others)
        with pytest.raises(OSError):
            said_to(ports[0], certificates, None)


def said_to(port: int, authority: Path, own: Path | None) -> str:
    """The first line for who dials and shows that; it comes behind the handshake."""
    context = ssl.create_default_context(cafile=str(authority / "ca.pem"))
    if own is not None:
        context.load_cert_chain(own / "cert.pem", own / "key.pem")
    with (
        socket.create_connection((HOST, port), WAIT_S) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as secured,
        secured.makefile() as lines,
    ):
        line = lines.readline()
        if not line:
            raise ConnectionResetError("turned away")
        return line


@pytest.mark.parametrize("kind", list(KINDS))
def test_whom_others_tell_of_is_known_by_a_name(
    kind: str, ports: tuple[int, int], tmp_path: Path
) -> None:
    """Servers tell of each other as numbers; certificates that name hosts alone are shown there,
    too."""
    at = make_certificates(tmp_path, "/CN=server", names="DNS:localhost")
    with ExitStack() as stack:
        stack.enter_context(member(kind, "n1", ports[0], at))
        second = stack.enter_context(member(kind, "n2", ports[1], at, ports[0]))
        third = stack.enter_context(member(kind, "n3", -1, at, ports[0]))
        wait_for(lambda: routes(second) > 7 and routes(third) > 7, "routes to both others")
