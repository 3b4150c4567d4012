"""Certificates that are replaced while the server runs: what new connections are shown, which
clients are taken, and what becomes of those that are here. The same on both servers."""

import hashlib
import shutil
import socket
import ssl
from collections.abc import Callable, Iterator
from http.client import HTTPSConnection
from pathlib import Path

import pytest

from jsctl.broker.server.tls import public_key
from jsctl.testing import HOST, ReservedPort
from tests.support.certificates import make_certificates
from tests.support.login import Caller
from tests.support.reloading import KINDS, Reloading
from tests.support.waiting import wait_for

FILES = ("cert.pem", "key.pem", "ca.pem")
TLS = "cert_file: '@DIR/cert.pem', key_file: '@DIR/key.pem', ca_file: '@DIR/ca.pem', timeout: 5"
PLAIN = f"tls {{ {TLS} }}"
VERIFIED = f"tls {{ {TLS}, verify: true }}"
HTTPS = f'https: "{HOST}:@HTTP"\n'
ENABLED = "Reloaded: tls = enabled"
"""nats-server says so at every reload where an authority is given."""


class Identity:
    """An authority, and a certificate that it signed."""

    def __init__(self, path: Path) -> None:
        self.path = make_certificates(path)
        self.shown = ssl.PEM_cert_to_DER_cert((path / "cert.pem").read_text())

    def context(self, own: "Identity | None" = None) -> ssl.SSLContext:
        """For a client that trusts the authority; `own` is what it shows itself."""
        context = ssl.create_default_context(cafile=str(self.path / "ca.pem"))
        if own is not None:
            context.load_cert_chain(own.path / "cert.pem", own.path / "key.pem")
        return context

    def install(self, directory: Path) -> None:
        """Put the files where a configuration looks for them."""
        for name in FILES:
            shutil.copy(self.path / name, directory / name)


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Identity:
    """What the servers begin with."""
    return Identity(tmp_path_factory.mktemp("one"))


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Identity:
    """What it is replaced by."""
    return Identity(tmp_path_factory.mktemp("two"))


Start = Callable[[str], Reloading]


@pytest.fixture(params=list(KINDS))
def start(request: pytest.FixtureRequest, one: Identity) -> Iterator[Start]:
    """Starts a server of a kind with the files of the first identity."""
    started: list[Reloading] = []

    def begin(config: str) -> Reloading:
        server = Reloading(request.param, config, one.install)
        started.append(server)
        return server

    yield begin
    for server in started:
        server.broker.close()


def renew(server: Reloading, config: str) -> None:
    """Reload, which has to say that TLS has changed."""
    assert ENABLED in server.must_reload(config)


def shown_to(server: Reloading, context: ssl.SSLContext) -> bytes:
    """The certificate that a client is shown, which is served then."""
    with Caller(server.port) as caller:
        shown = caller.secure(context)
        assert caller.login({})
        return shown


def refused(server: Reloading, context: ssl.SSLContext) -> bool:
    """Whether a client does not get as far as a PONG."""
    with Caller(server.port) as caller:
        try:
            caller.secure(context)
            return not caller.login({})
        except OSError:
            return True


def test_a_new_certificate_in_the_same_files(start: Start, one: Identity, two: Identity) -> None:
    server = start(PLAIN)
    with Caller(server.port) as early:
        assert early.secure(one.context()) == one.shown
        assert early.login({})
        early.ask(b"SUB x 1\r\n")
        two.install(server.broker.directory)
        assert shown_to(server, one.context()) == one.shown, "the files are read by a reload"
        renew(server, PLAIN)
        assert shown_to(server, two.context()) == two.shown
        assert refused(server, one.context())
        assert early.ask(b"PUB x 1\r\na\r\n") == ["MSG x 1 1", "a"]
    assert server.kind == "nats-server" or server.must_reload(PLAIN) == []


def test_files_that_do_not_fit_change_nothing(start: Start, one: Identity, two: Identity) -> None:
    server = start(PLAIN)
    directory = server.broker.directory
    shutil.copy(two.path / "cert.pem", directory / "cert.pem")
    assert "error parsing X509 certificate/key pair" in server.must_refuse(PLAIN)
    one.install(directory)
    (directory / "ca.pem").write_text("nothing")
    server.must_refuse(PLAIN)
    assert shown_to(server, one.context()) == one.shown
    two.install(directory)
    renew(server, PLAIN)
    assert shown_to(server, two.context()) == two.shown


def test_another_authority_of_clients(start: Start, one: Identity, two: Identity) -> None:
    server = start(VERIFIED)
    with Caller(server.port) as early:
        early.secure(one.context(one))
        assert early.login({})
        assert refused(server, one.context()) and refused(server, one.context(two))
        shutil.copy(two.path / "ca.pem", server.broker.directory / "ca.pem")
        renew(server, VERIFIED)
        assert refused(server, one.context(one)) and refused(server, one.context())
        assert shown_to(server, one.context(two)) == one.shown
        assert early.ask(b"") == []
    renew(server, PLAIN)
    assert shown_to(server, one.context()) == one.shown
    renew(server, VERIFIED)
    assert refused(server, one.context())


def login_times(server: Reloading) -> tuple[object, object]:
    """How long a login and a handshake may take."""
    page = server.broker.monitor("/varz")
    assert isinstance(page, dict)
    return page["auth_timeout"], page["tls_timeout"]


def test_tls_comes_and_goes(start: Start, one: Identity) -> None:
    server = start("debug: false")
    with Caller(server.port) as plain:
        assert plain.login({})
        assert login_times(server) == (2, 2)
        lines = server.must_reload(PLAIN)
        assert ENABLED in lines and "Reloaded: authorization timeout = 6" in lines
        assert login_times(server) == (6, 5)
        assert shown_to(server, one.context()) == one.shown
        with Caller(server.port) as stranger:
            assert stranger.info["tls_required"] is True
            stranger.send(b"CONNECT {}\r\nPING\r\n" * 10)
            assert "PONG" not in iter(stranger.line, "")
        assert plain.ask(b"") == []
    server.must_reload("debug: false")
    with Caller(server.port) as plain:
        assert "tls_required" not in plain.info and plain.login({})


def monitor(server: Reloading, context: ssl.SSLContext) -> HTTPSConnection:
    """A connection to the monitoring port that was used."""
    port = int(server.broker.monitor_url.rpartition(":")[2])
    connection = HTTPSConnection(HOST, port, timeout=30, context=context)
    assert ok(connection)
    return connection


def ok(connection: HTTPSConnection) -> bool:
    """Whether a page comes."""
    connection.request("GET", "/varz")
    answer = connection.getresponse()
    answer.read()
    return answer.status == 200


def test_the_monitoring_port(start: Start, one: Identity, two: Identity) -> None:
    server = start(HTTPS + VERIFIED)
    early = monitor(server, one.context())
    two.install(server.broker.directory)
    renew(server, HTTPS + VERIFIED)
    with pytest.raises(ssl.SSLCertVerificationError):
        monitor(server, one.context())
    later = monitor(server, two.context())
    assert later.sock.getpeercert(binary_form=True) == two.shown
    later.close()
    assert ok(early), "who is there stays"
    early.close()
    older = two.context()
    older.maximum_version = ssl.TLSVersion.TLSv1_2
    monitor(server, older).close()
    server.must_reload(HTTPS + VERIFIED.replace("verify", 'min_version: "1.3", verify'))
    with pytest.raises(OSError):
        monitor(server, older)
    monitor(server, two.context()).close()


def member(name: str, port: int, route: int = 0) -> str:
    """A member of a cluster."""
    routes = f'routes: ["nats://localhost:{route}"]' if route else ""
    return f"""server_name: {name}
cluster {{
    name: c
    listen: "{HOST}:{port}"
    tls {{ {TLS} }}
    {routes}
}}
"""


def linked(server: Reloading) -> bool:
    """Whether a route is there."""
    page = server.broker.monitor("/routez")
    assert isinstance(page, dict)
    return bool(page["num_routes"])


def shown_to_routes(port: int, context: ssl.SSLContext) -> bytes:
    """What another server is shown that dials in: the handshake comes before INFO.

    With TLS 1.2 a refusal is heard before the handshake ends.
    """
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    with (
        socket.create_connection((HOST, port), 30) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as secured,
    ):
        shown = secured.getpeercert(binary_form=True)
        assert shown is not None
        return shown


def test_routes(start: Start, one: Identity, two: Identity) -> None:
    ports = ReservedPort(), ReservedPort()
    first_port, second_port = (port.number for port in ports)
    configs = member("n1", first_port), member("n2", second_port, first_port)
    servers = [start(config) for config in configs]
    first, second = servers
    wait_for(lambda: linked(first) and linked(second), "the route")
    assert shown_to_routes(first_port, one.context(one)) == one.shown
    for server, config in zip(servers, configs, strict=True):
        two.install(server.broker.directory)
        assert server.must_reload(config) == ["Reloaded: cluster"]
    assert linked(first) and linked(second), "a route that is there stays"
    assert shown_to_routes(first_port, two.context(two)) == two.shown
    with pytest.raises(OSError):
        shown_to_routes(first_port, two.context(one))
    second.must_reload(member("n2", second_port))
    wait_for(lambda: not linked(first) and not linked(second), "the end of the route")
    second.must_reload(configs[1])
    wait_for(lambda: linked(first) and linked(second), "a route with the new certificates")
    for port in ports:
        port.release()


def pin(identity: Identity) -> str:
    """The digest of its key."""
    return hashlib.sha256(public_key(identity.shown)).hexdigest()


def pinned(*identities: Identity) -> str:
    """A block that takes these alone."""
    pins = ", ".join(f'"{pin(identity)}"' for identity in identities)
    return f"tls {{ {TLS}, verify: true, pinned_certs: [{pins}] }}"


def test_keys_that_are_pinned(start: Start, one: Identity, two: Identity) -> None:
    both = (one.path / "ca.pem").read_text() + (two.path / "ca.pem").read_text()
    server = start(VERIFIED)
    (server.broker.directory / "ca.pem").write_text(both)
    assert "Reloaded: 2 pinned_certs" in server.must_reload(pinned(one, two))
    with Caller(server.port) as first, Caller(server.port) as second:
        first.secure(one.context(one))
        second.secure(one.context(two))
        assert first.login({}) and second.login({})
        assert "Reloaded: 1 pinned_certs" in server.must_reload(pinned(two))
        assert refused(server, one.context(one)) and not refused(server, one.context(two))
        assert second.ask(b"") == []
        if server.kind == "jsctl":  # nats-server compares those that are here with the old pins.
            assert first.line() == ""
