"""Certificates and pins that a reload replaces, with handshakes and connections in the middle."""

import hashlib
import ssl
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from jsctl.broker.errors import ConfigError
from jsctl.broker.gateway_options import GatewayOptions, GatewayUrl, RemoteGateway
from jsctl.broker.leafnode_options import LeafNodeOptions, LeafRemote, LeafUrl
from jsctl.broker.options import ClusterOptions, MonitorOptions, Options
from jsctl.broker.server.certificates import Certificates
from jsctl.broker.server.tls import files_digest, public_key
from jsctl.broker.tls_options import TlsOptions
from jsctl.broker.turn import ConnKind, LinkDial
from tests.broker.server.harness import LOCAL, LineClient, Running, running
from tests.support.certificates import make_certificates


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An authority and a certificate."""
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def tls(path: Path) -> TlsOptions:
    """Clients show certificates."""
    return TlsOptions(
        cert_file=str(path / "cert.pem"),
        key_file=str(path / "key.pem"),
        ca_file=str(path / "ca.pem"),
        verify=True,
    )


@pytest.fixture
def pin(path: Path) -> str:
    """The key of the certificate."""
    der = ssl.PEM_cert_to_DER_cert((path / "cert.pem").read_text())
    return hashlib.sha256(public_key(der)).hexdigest()


@pytest.fixture
def context(path: Path) -> ssl.SSLContext:
    """A client that shows the certificate, and hears a refusal before the handshake ends."""
    made = ssl.create_default_context(cafile=str(path / "ca.pem"))
    made.load_cert_chain(path / "cert.pem", path / "key.pem")
    return made


def take(server: Running, options: Options) -> None:
    """A reload, as the process does it."""
    server.edge.reload(server.edge.try_out(options))


async def gone(client: LineClient) -> bool:
    """Whether the server has hung up."""
    try:
        return await client.ask("PING") == ""
    except (ConnectionError, ssl.SSLError):
        return True


async def test_who_is_not_pinned_any_more_has_to_go(
    tls: TlsOptions, pin: str, context: ssl.SSLContext
) -> None:
    options = Options(listen=LOCAL, tls=replace(tls, pinned_certs=(pin,)))
    other = replace(options, tls=replace(tls, pinned_certs=("0" * 64,)))
    async with running(options) as server:
        early, waiting = await server.client(), await server.client()
        for client in (early, waiting):
            assert "INFO" in await client.line()
        await early.writer.start_tls(context, server_hostname="localhost")
        assert await early.ask("PING") == "PONG"
        take(server, other)
        assert await gone(early)
        assert "Disconnect 1 clients due to pinned certs reload" in server.output.getvalue()
        await waiting.writer.start_tls(context, server_hostname="localhost")
        assert await gone(waiting), "its handshake began before the reload"


OTHER = "0" * 64


def secured(kind: ConnKind, path: Path, *, dialed: bool) -> Any:
    """A connection whose other side has shown the certificate."""
    der = ssl.PEM_cert_to_DER_cert((path / "cert.pem").read_text())
    shown = SimpleNamespace(getpeercert=lambda *, binary_form: der)
    dial = LinkDial(1, "h", 1, kind) if dialed else None
    transport = SimpleNamespace(get_extra_info=lambda name: shown)
    return SimpleNamespace(kind=kind, dial=dial, transport=transport)


@pytest.mark.parametrize(
    ("block", "own", "stays"),
    [(OTHER, "", False), (OTHER, "pin", True), ("", OTHER, False), ("pin", OTHER, False),
     ("pin", "", True), ("", "", True)],
)  # fmt: skip
@pytest.mark.parametrize("kind", [ConnKind.LEAF, ConnKind.GATEWAY])
def test_who_is_dialed_has_pins_of_its_own(
    kind: ConnKind, block: str, own: str, stays: bool, tls: TlsOptions, pin: str, path: Path
) -> None:
    """Those of the block are for who connects here, and for who is dialed if it has none."""
    pins = {"": (), OTHER: (OTHER,), "pin": (pin,)}
    door, way = (replace(tls, pinned_certs=pins[one]) for one in (block, own))
    hub = LeafRemote((LeafUrl("h", 1),), tls=way)
    cluster = RemoteGateway("B", (GatewayUrl("h", 1),), tls=way)
    options = Options(
        leafnodes=LeafNodeOptions(port=1, tls=door, remotes=(hub,)),
        gateway=GatewayOptions(name="A", port=1, tls=door, remotes=(cluster,)),
    )
    found = Certificates.read(options)
    assert found.unpinned(secured(kind, path, dialed=True)) is not stays
    assert found.unpinned(secured(kind, path, dialed=False)) is (block == OTHER)


async def test_plain_clients_have_nothing_that_could_be_pinned(tls: TlsOptions, pin: str) -> None:
    options = Options(listen=LOCAL, tls=tls, allow_non_tls=True)
    async with running(options) as server:
        client = await server.client()
        await client.line()
        assert await client.ask("PING") == "PONG"
        take(server, replace(options, tls=replace(tls, pinned_certs=(pin,))))
        assert await client.ask("PING") == "PONG"


async def test_files_of_no_use_leave_everything_as_it_was(
    tls: TlsOptions, context: ssl.SSLContext, tmp_path: Path
) -> None:
    (tmp_path / "bad.pem").write_text("nothing")
    bad = replace(tls, cert_file=str(tmp_path / "bad.pem"))
    options = Options(listen=LOCAL, tls=tls)
    async with running(options) as server:
        for wrong in (replace(options, tls=bad), replace(options, cluster=ClusterOptions(tls=bad))):
            with pytest.raises(ConfigError):
                server.edge.try_out(wrong)
        client = await server.client()
        assert "INFO" in await client.line()
        await client.writer.start_tls(context, server_hostname="localhost")
        assert await client.ask("PING") == "PONG"


async def test_files_that_are_gone_since_are_not_missed(path: Path, tmp_path: Path) -> None:
    """Who renews a certificate does so before a reload; hubs are dialed in between, too."""
    names = ("ca.pem", "cert.pem", "key.pem")
    for name in names:
        (tmp_path / name).write_bytes((path / name).read_bytes())
    authority, certificate, key = (str(tmp_path / name) for name in names)
    tls = TlsOptions(cert_file=certificate, key_file=key, ca_file=authority)
    hub = LeafRemote((LeafUrl("localhost", 1),), tls=replace(tls, timeout_ns=1))
    leafnodes = LeafNodeOptions(remotes=(hub,))
    options = Options(listen=LOCAL, tls=tls, allow_non_tls=True, leafnodes=leafnodes)
    async with running(options) as server:
        client = await server.client()
        await client.line()
        for name in names:
            (tmp_path / name).unlink()
        assert await client.ask(f"HUB {server.port()}") == "DIALED True"
        await client.close()


def test_what_the_log_says_of_files(tls: TlsOptions, path: Path, tmp_path: Path) -> None:
    cluster = ClusterOptions(tls=tls)
    options = Options(tls=tls, cluster=cluster, monitoring=MonitorOptions(https_port=1))
    before = Certificates.read(options)
    assert before.monitor is not None and before.changes(before) == []
    assert before.monitor.verify_mode is ssl.CERT_NONE
    (tmp_path / "ca.pem").write_text((path / "ca.pem").read_text() + "\n")
    renewed = replace(tls, ca_file=str(tmp_path / "ca.pem"))
    after = Certificates.read(replace(options, tls=renewed, cluster=ClusterOptions(tls=renewed)))
    assert after.changes(before) == ["Reloaded: tls = enabled", "Reloaded: cluster"]
    nothing = Certificates.read(Options())
    assert nothing.changes(before) == before.changes(nothing) == []
    with pytest.raises(ConfigError, match="cannot be read"):
        files_digest(replace(tls, ca_file=str(tmp_path / "none.pem")))
