"""TLS on the edge: INFO first, handshake first, verified clients, pinned keys, routes."""

import asyncio
import gc
import hashlib
import ssl
import weakref
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from jsctl.broker.errors import ConfigError
from jsctl.broker.options import ClusterOptions, MonitorOptions, Options
from jsctl.broker.server.tls import public_key, server_context
from jsctl.broker.tls_options import HandshakeFirst, TlsOptions
from tests.broker.server.harness import LOCAL, LineClient, Running, let_go, looking, running
from tests.support.certificates import make_certificates, openssl
from tests.support.waiting import eventually


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """ca.pem, and cert.pem with key.pem for localhost, signed by it."""
    return make_certificates(tmp_path_factory.mktemp("tls"))


def block(path: Path) -> TlsOptions:
    return TlsOptions(
        cert_file=str(path / "cert.pem"),
        key_file=str(path / "key.pem"),
        ca_file=str(path / "ca.pem"),
    )


def client_context(path: Path, *, own: bool = False) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(path / "ca.pem"))
    if own:
        context.load_cert_chain(path / "cert.pem", path / "key.pem")
    return context


async def upgraded(server: Running, context: ssl.SSLContext) -> LineClient:
    """A client that reads INFO in plain text and shakes hands then."""
    client = await server.client()
    assert "INFO" in await client.line()
    await client.writer.start_tls(context, server_hostname="localhost")
    return client


@looking
async def test_info_comes_first_then_the_handshake(certificates: Path) -> None:
    async with running(Options(listen=LOCAL, tls=block(certificates))) as server:
        client = await upgraded(server, client_context(certificates))
        assert await client.ask("PING") == "PONG"
        assert server.node.seen[1].accepted[0].tls or server.node.seen[0].accepted[0].tls
        assert not server.shared.plain
        await client.close()


@looking
async def test_a_connection_that_ended_holds_nothing(certificates: Path) -> None:
    """Not even itself: what TLS has of it is 300 KB, and the collector is not needed to let go."""
    async with running(Options(listen=LOCAL, tls=block(certificates))) as server:
        gc.disable()
        try:
            client = await upgraded(server, client_context(certificates))
            assert await client.ask("PING") == "PONG"
            (served,) = server.shared.by_id.values()
            assert served.transport is not None
            ended = weakref.ref(served.transport.get_extra_info("ssl_object"))
            del served
            await client.close()
            await let_go(ended)
        finally:
            gc.enable()


@looking
async def test_a_close_comes_after_what_was_written(certificates: Path) -> None:
    flood = 20_000_000
    async with running(Options(listen=LOCAL, tls=block(certificates))) as server:
        client = await upgraded(server, client_context(certificates))
        transport = client.writer.transport
        transport.pause_reading()  # type: ignore[attr-defined]  # a real transport
        client.writer.write(b"FLOOD %d\r\nQUIT\r\n" % flood)

        async def closing() -> bool:
            (served,) = server.shared.by_id.values()
            return served.transport is not None and served.transport.is_closing()

        await eventually(closing, "the node has closed it")
        transport.resume_reading()  # type: ignore[attr-defined]  # as above
        heard = await client.reader.read()
        assert len(heard) > flood and heard.endswith(b"BYE\r\n")


async def test_a_plain_client_is_turned_away(certificates: Path) -> None:
    async with running(Options(listen=LOCAL, tls=block(certificates))) as server:
        client = await server.client()
        await client.line()
        client.writer.write(b"PING\r\n" * 10)
        async with asyncio.timeout(30):
            rest = await client.reader.read()
        assert b"PONG" not in rest
        await client.close()
    assert "TLS handshake error" in server.output.getvalue()


async def test_clients_are_verified(certificates: Path) -> None:
    tls = replace(block(certificates), verify=True)
    async with running(Options(listen=LOCAL, tls=tls)) as server:
        client = await upgraded(server, client_context(certificates, own=True))
        assert await client.ask("PING") == "PONG"
        await client.close()
        with pytest.raises((ssl.SSLError, ConnectionError, AssertionError)):
            stranger = await upgraded(server, client_context(certificates))
            assert await stranger.ask("PING") == "PONG"


@pytest.mark.parametrize(
    ("version", "first", "told"),
    [
        (ssl.TLSVersion.TLSv1_3, HandshakeFirst.NEVER, "CERTIFICATE_REQUIRED"),
        (ssl.TLSVersion.TLSv1_3, HandshakeFirst.ALWAYS, "CERTIFICATE_REQUIRED"),
        (ssl.TLSVersion.TLSv1_2, HandshakeFirst.NEVER, "HANDSHAKE_FAILURE"),
    ],
)
async def test_who_is_refused_is_told_why(
    certificates: Path, version: ssl.TLSVersion, first: HandshakeFirst, told: str
) -> None:
    """As by nats-server: a connection that only ends may have any reason."""
    tls = replace(block(certificates), verify=True, handshake_first=first)
    async with running(Options(listen=LOCAL, tls=tls)) as server:
        context = client_context(certificates)
        context.maximum_version = version
        with pytest.raises(ssl.SSLError, match=told):
            if first is HandshakeFirst.ALWAYS:
                client = await server.client(context=context)
            else:
                client = await upgraded(server, context)
            await client.ask("PING")


@pytest.mark.parametrize("first", [HandshakeFirst.ALWAYS, HandshakeFirst.AUTO])
async def test_the_handshake_may_come_first(certificates: Path, first: HandshakeFirst) -> None:
    tls = replace(block(certificates), handshake_first=first)
    async with running(Options(listen=LOCAL, tls=tls)) as server:
        client = await server.client(context=client_context(certificates))
        assert "INFO" in await client.line()
        assert await client.ask("PING") == "PONG"
        await client.close()


async def test_auto_sends_info_to_a_client_that_waits(certificates: Path) -> None:
    tls = replace(block(certificates), handshake_first=HandshakeFirst.AUTO)
    async with running(Options(listen=LOCAL, tls=tls)) as server:
        client = await upgraded(server, client_context(certificates))
        assert await client.ask("PING") == "PONG"
        await client.close()


@looking
async def test_plain_clients_may_be_allowed(certificates: Path) -> None:
    options = Options(listen=LOCAL, tls=block(certificates), allow_non_tls=True)
    async with running(options) as server:
        plain = await server.client()
        await plain.line()
        assert await plain.ask("PING") == "PONG"
        secure = await upgraded(server, client_context(certificates))
        assert await secure.ask("PING") == "PONG"
        assert not server.shared.plain
        await plain.close()
        await secure.close()


async def test_keys_may_be_pinned(certificates: Path) -> None:
    der = ssl.PEM_cert_to_DER_cert((certificates / "cert.pem").read_text())
    pin = hashlib.sha256(public_key(der)).hexdigest()
    tls = replace(block(certificates), verify=True, pinned_certs=(pin,))
    async with running(Options(listen=LOCAL, tls=tls)) as server:
        client = await upgraded(server, client_context(certificates, own=True))
        assert await client.ask("PING") == "PONG"
        await client.close()
    tls = replace(tls, pinned_certs=("0" * 64,))
    async with running(Options(listen=LOCAL, tls=tls)) as server:
        with pytest.raises((ConnectionError, AssertionError)):
            client = await upgraded(server, client_context(certificates, own=True))
            assert await client.ask("PING") == "PONG"
    assert "certificate not pinned" in server.output.getvalue()


async def in_one_flight(server: Running, context: ssl.SSLContext, said: bytes) -> LineClient:
    """A client that says something together with the end of its handshake, as TLS 1.3 lets it."""
    client = await server.client()
    await client.line()
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(incoming, outgoing, server_hostname="localhost")
    while True:
        try:
            tls.do_handshake()
            break
        except ssl.SSLWantReadError:
            client.writer.write(outgoing.read())
            incoming.write(await client.reader.read(1 << 16))
    tls.write(said)
    client.writer.write(outgoing.read())
    return client


@pytest.mark.parametrize("pinned", [False, True])
async def test_who_is_not_pinned_is_not_heard(certificates: Path, pinned: bool) -> None:
    """What comes with the end of a handshake is there before its certificate was looked at."""
    der = ssl.PEM_cert_to_DER_cert((certificates / "cert.pem").read_text())
    pin = hashlib.sha256(public_key(der)).hexdigest() if pinned else "0" * 64
    tls = replace(block(certificates), verify=True, map_users=True, pinned_certs=(pin,))
    async with running(Options(listen=LOCAL, tls=tls)) as server:
        context = client_context(certificates, own=True)
        client = await in_one_flight(server, context, b"QUIT\r\n")

        async def over() -> bool:
            return any(one.chunks or one.closed for one in server.node.seen)

        await eventually(over, "the end")
        await client.close()
        shown = [bool(one.secured) for one in server.node.seen if one.secured or one.chunks]
        said = [said for one in server.node.seen for _, said in one.chunks]
    assert (shown, said) == (([True], [b"QUIT\r\n"]) if pinned else ([], []))


async def test_the_public_key_is_what_openssl_finds(certificates: Path) -> None:
    der = ssl.PEM_cert_to_DER_cert((certificates / "cert.pem").read_text())
    openssl("x509", "-in", "cert.pem", "-noout", "-pubkey", "-out", "pub.pem", cwd=certificates)
    openssl("pkey", "-pubin", "-in", "pub.pem", "-outform", "DER", "-out", "pub.der",
            cwd=certificates)  # fmt: skip
    assert public_key(der) == (certificates / "pub.der").read_bytes()


async def test_routes_are_secured_on_both_sides(certificates: Path) -> None:
    cluster = ClusterOptions(name="c", host="127.0.0.1", port=-1, tls=block(certificates))
    async with running(Options(listen=LOCAL, cluster=cluster)) as server:
        client = await server.client()
        await client.line()
        assert await client.ask(f"DIAL {server.port('cluster')}") == "DIALED True"
        await client.close()


async def test_a_peer_that_is_no_tls_server_is_not_dialed(certificates: Path) -> None:
    tls = replace(block(certificates), timeout_ns=300_000_000)
    cluster = ClusterOptions(name="c", host="127.0.0.1", port=-1, tls=tls)
    async with running(Options(listen=LOCAL, cluster=cluster)) as server:
        client = await server.client()
        await client.line()
        assert await client.ask(f"DIAL {server.port()}") == "NOT DIALED"
        await client.close()


@pytest.mark.parametrize(
    ("said", "outcome"),
    [
        (b'INFO {"tls_required":true}\r\n', "DIALED True"),
        (b'INFO {"tls_required":true}\r\nLMSG foo 2\r\nhi\r\n', "NOT DIALED"),
    ],
)
async def test_what_came_in_front_of_the_handshake_is_not_taken_for_the_hubs(
    certificates: Path, said: bytes, outcome: str
) -> None:
    """Somebody in between can add to what is said in plain text."""
    context = server_context(block(certificates))

    async def welcome(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(said)
        await writer.start_tls(context)
        await reader.read()
        writer.close()

    hub = await asyncio.start_server(welcome, "127.0.0.1", 0)
    port = hub.sockets[0].getsockname()[1]
    async with hub, running(Options(listen=LOCAL, tls=block(certificates))) as server:
        client = await upgraded(server, client_context(certificates))
        assert await client.ask(f"HUB {port}") == outcome
        await client.close()


async def test_half_a_handshake_of_the_monitoring_port_is_not_waited_for(
    certificates: Path,
) -> None:
    monitoring = MonitorOptions(https_port=-1, header_ns=300_000_000)
    options = Options(listen=LOCAL, monitoring=monitoring, tls=block(certificates))
    async with running(options) as server:
        client = await server.client("monitor")
        client.writer.write(b"\x16\x03\x01")
        assert await client.line() == ""
        await client.close()


async def test_a_peer_of_the_monitoring_port_that_does_not_agree_to_an_end_is_not_waited_for(
    certificates: Path,
) -> None:
    """It is told of the end inside of TLS, says nothing, and keeps its side open."""
    monitoring = MonitorOptions(https_port=-1, header_ns=300_000_000)
    options = Options(listen=LOCAL, monitoring=monitoring, tls=block(certificates))
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = client_context(certificates).wrap_bio(incoming, outgoing, server_hostname="localhost")
    async with running(options) as server, asyncio.timeout(15):
        client = await server.client("monitor")

        async def exchange(step: Callable[[], object]) -> None:
            while True:
                try:
                    step()
                except ssl.SSLWantReadError:
                    client.writer.write(outgoing.read())
                    incoming.write(await client.reader.read(1 << 16))
                else:
                    client.writer.write(outgoing.read())
                    return

        await exchange(tls.do_handshake)
        tls.write(b"GET / HTTP/1.0\r\n\r\n")
        await exchange(lambda: tls.read(1 << 16))
        while await client.reader.read(1 << 16):
            pass
        await client.close()


def test_files_of_no_use_are_named(tmp_path: Path) -> None:
    missing = TlsOptions(cert_file=str(tmp_path / "c"), key_file=str(tmp_path / "k"))
    with pytest.raises(ConfigError, match="No such file"):
        server_context(missing)


def test_nobody_is_asked_for_the_password_of_a_key(certificates: Path, tmp_path: Path) -> None:
    """OpenSSL would ask the terminal, and the server would stand still until that answers."""
    words = ("-in", str(certificates / "key.pem"), "-aes256", "-passout", "pass:secret")
    openssl("ec", *words, "-out", "locked.pem", cwd=tmp_path)
    locked = replace(block(certificates), key_file=str(tmp_path / "locked.pem"))
    with pytest.raises(ConfigError, match=r"locked.pem: the private key is encrypted \(store it"):
        server_context(locked)


def test_cipher_suites_go_by_their_go_names(certificates: Path) -> None:
    good = ("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "TLS_AES_128_GCM_SHA256")
    context = server_context(replace(block(certificates), ciphers=good))
    names = {suite["name"] for suite in context.get_ciphers()}
    assert "ECDHE-ECDSA-AES128-GCM-SHA256" in names
    assert "ECDHE-RSA-AES128-GCM-SHA256" not in names
    for bad in ("BAD", "TLS_RSA_WITH_AES_128_CBC_SHA", "TLS_ECDHE_RSA_WITH_NOTHING"):
        with pytest.raises(ConfigError, match="cipher"):
            server_context(replace(block(certificates), ciphers=(good[0], bad)))


async def test_suites_of_one_version_leave_the_other_none(certificates: Path) -> None:
    """As with nats-server: TLS 1.2 would have all of OpenSSL's, which nobody has allowed."""
    tls = replace(block(certificates), ciphers=("TLS_AES_256_GCM_SHA384",))
    async with running(Options(listen=LOCAL, tls=tls)) as server:
        older = client_context(certificates)
        older.maximum_version = ssl.TLSVersion.TLSv1_2
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await upgraded(server, older)
        client = await upgraded(server, client_context(certificates))
        assert await client.ask("PING") == "PONG"
        await client.close()


@pytest.mark.parametrize(("name", "other"), [("CURVEP384", "prime256v1"), ("X25519", "secp384r1")])
def test_only_the_chosen_curve_is_spoken(certificates: Path, name: str, other: str) -> None:
    server = server_context(replace(block(certificates), curves=(name,)))
    assert shaken(server, client_context(certificates))
    strange = client_context(certificates)
    strange.set_ecdh_curve(other)
    with pytest.raises(ssl.SSLError):
        shaken(server, strange)


def shaken(server: ssl.SSLContext, client: ssl.SSLContext) -> bool:
    """Whether both come to an end of their handshake, without a socket between them."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        client.wrap_bio(to_client, to_server, server_hostname="localhost"),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    for _ in range(10):
        for end in tuple(ends):
            try:
                end.do_handshake()
                ends.remove(end)
            except ssl.SSLWantReadError:
                continue
    return not ends


async def test_a_client_that_says_nothing_is_let_go_when_the_node_closes(
    certificates: Path,
) -> None:
    options = Options(listen=LOCAL, tls=block(certificates), allow_non_tls=True)
    async with running(options) as server:
        silent = await server.client()
        await silent.line()
    async with asyncio.timeout(30):
        assert await silent.reader.read() == b""
