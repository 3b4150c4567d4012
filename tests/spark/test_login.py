"""Credentials and TLS of the blocking connection, on both servers; wrong ones are explained."""

import base64
import hashlib
import json
import os
import socket
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nkeys  # type: ignore[import-untyped] # has no types
import pytest

from jsctl.errors import JsctlError, NotAllowed, Unreachable, UsageError
from jsctl.spark.connection.jetstream import JetStream
from jsctl.spark.connection.login import address, discovered
from jsctl.spark.connection.wire import open_wire
from jsctl.spark.options import source_options
from jsctl.testing import HOST, Broker, BrokerFactory
from tests.spark.conftest import KINDS
from tests.support.certificates import make_certificates

LOGINS = 24
"""So often that servers in random order have all been taken."""


@pytest.fixture(params=list(KINDS))
def start(request: pytest.FixtureRequest, jsctl_broker: BrokerFactory) -> Callable[[str], Broker]:
    """Starts a server with a configuration."""
    kind = KINDS[str(request.param)]
    return lambda config: jsctl_broker("-js", server=kind, config=config)


def connect(url: str, **options: str) -> None:
    """Log in and be answered. Raises what a read would raise."""
    given = source_options({"servers": url, "stream": "S", "timeout": "3s", **options})
    with JetStream(given.connection) as js:
        assert js.names() == []


def log_in(url: str, **options: str) -> None:
    """The same without asking anything."""
    given = source_options({"servers": url, "stream": "S", "timeout": "3s", **options})
    open_wire(given.connection.settings).close()


def seed(kind: int) -> bytes:
    """A new key's seed."""
    return bytes(nkeys.encode_seed(os.urandom(32), kind))


def token(claims: Mapping[str, object], issuer: bytes) -> str:
    """A signed JWT as servers read it."""
    pair = nkeys.from_seed(issuer)
    full = {"iss": pair.public_key.decode(), "iat": 1_700_000_000, **claims}
    full["jti"] = base64.b32encode(hashlib.sha256(json.dumps(full).encode()).digest()).decode()
    parts = [
        base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=")
        for part in ({"typ": "JWT", "alg": "ed25519-nkey"}, full)
    ]
    signed = b".".join(parts)
    signature = base64.urlsafe_b64encode(pair.sign(signed)).rstrip(b"=")
    return (signed + b"." + signature).decode()


def test_user_and_password(start: Callable[[str], Broker]) -> None:
    broker = start('authorization { user: ann, password: "s3cret-word" }')
    connect(broker.url, user="ann", password="s3cret-word")
    connect(broker.url.replace("//", "//ann:s3cret-word@"))
    with pytest.raises(NotAllowed) as caught:
        connect(broker.url, user="ann", password="not-the-w0rd")
    assert "not-the-w0rd" not in str(caught.value)
    assert "password" in caught.value.hints[0]
    with pytest.raises(NotAllowed):
        connect(broker.url)


def test_token(start: Callable[[str], Broker]) -> None:
    broker = start('authorization { token: "t0ken-of-ours" }')
    connect(broker.url, token="t0ken-of-ours")
    with pytest.raises(NotAllowed):
        connect(broker.url, token="another")


def test_nkey(jsctl_broker: BrokerFactory, tmp_path: Path) -> None:
    mine = seed(nkeys.PREFIX_BYTE_USER)
    public = nkeys.from_seed(mine).public_key.decode()
    config = f"authorization {{ users: [ {{ nkey: {public} }} ] }}"
    broker = jsctl_broker("-js", server=KINDS["nats-server"], config=config)
    path = tmp_path / "user.nk"
    path.write_bytes(mine + b"\n")
    connect(broker.url, nkey=str(path))
    path.write_bytes(seed(nkeys.PREFIX_BYTE_USER))
    with pytest.raises(NotAllowed):
        connect(broker.url, nkey=str(path))
    path.write_text("no seed")
    with pytest.raises(UsageError, match=r"user\.nk: not a usable seed"):
        connect(broker.url, nkey=str(path))
    with pytest.raises(UsageError, match="option nkey: cannot read"):
        connect(broker.url, nkey=str(tmp_path / "gone"))


def test_creds_of_an_operator(jsctl_broker: BrokerFactory, tmp_path: Path) -> None:
    operator, account = seed(nkeys.PREFIX_BYTE_OPERATOR), seed(nkeys.PREFIX_BYTE_ACCOUNT)
    user = seed(nkeys.PREFIX_BYTE_USER)
    keys = [nkeys.from_seed(one).public_key.decode() for one in (operator, account, user)]
    limits = dict.fromkeys(
        ("subs", "data", "payload", "imports", "exports", "conn", "leaf", "mem_storage",
         "disk_storage", "streams", "consumer"), -1,
    )  # fmt: skip
    about = {"version": 2}
    operator_jwt = token(
        {"sub": keys[0], "name": "O", "nats": {"type": "operator"} | about}, operator
    )
    account_jwt = token(
        {"sub": keys[1], "name": "A", "nats": {"type": "account", "limits": limits} | about},
        operator,
    )
    free = dict.fromkeys(("subs", "data", "payload"), -1)
    user_jwt = token(
        {"sub": keys[2], "name": "U", "nats": {"type": "user"} | free | about}, account
    )
    preload = f"resolver_preload {{ {keys[1]}: {account_jwt} }}"
    config = f"operator: {operator_jwt}\nresolver: MEMORY\n{preload}\n"
    broker = jsctl_broker(server=KINDS["nats-server"], config=config)
    path = tmp_path / "user.creds"
    path.write_text(
        f"-----BEGIN NATS USER JWT-----\n{user_jwt}\n------END NATS USER JWT------\n\n"
        f"-----BEGIN USER NKEY SEED-----\n{user.decode()}\n------END USER NKEY SEED------\n"
    )
    log_in(broker.url, creds=str(path))
    log_in(broker.url, jwt=user_jwt, seed=user.decode())
    with pytest.raises(NotAllowed):
        log_in(broker.url, jwt=user_jwt, seed=seed(nkeys.PREFIX_BYTE_USER).decode())
    path.write_text("nothing of that kind")
    with pytest.raises(UsageError, match="has no user JWT and seed"):
        connect(broker.url, creds=str(path))


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """ca.pem, and cert.pem with key.pem for this machine, signed by it."""
    return make_certificates(tmp_path_factory.mktemp("tls"), "/CN=u")


@pytest.mark.parametrize("first", [False, True], ids=["info first", "handshake first"])
def test_tls_with_a_client_certificate(
    start: Callable[[str], Broker], certificates: Path, first: bool
) -> None:
    files = {name: str(certificates / f"{name}.pem") for name in ("ca", "cert", "key")}
    lines = f'cert_file: "{files["cert"]}", key_file: "{files["key"]}", ca_file: "{files["ca"]}"'
    more = ", handshake_first: true" if first else ""
    broker = start(f"tls {{ {lines}, verify: true{more} }}")
    own = {"tlsca": files["ca"], "tlscert": files["cert"], "tlskey": files["key"]}
    connect(broker.url, **own, tlsfirst=str(first).lower())
    with pytest.raises(JsctlError, match="TLS fails"):
        connect(broker.url.replace("nats:", "tls:"), tlsfirst=str(first).lower())
    with pytest.raises(JsctlError):
        connect(broker.url, tlsca=files["ca"], tlsfirst=str(first).lower())
    with pytest.raises(UsageError, match="cannot use the TLS files"):
        connect(broker.url, tlsca=str(certificates / "gone.pem"), tlsfirst=str(first).lower())


def test_nobody_there_is_said_at_once() -> None:
    with pytest.raises(Unreachable, match=r"127\.0\.0\.1:1\b.*refused"):
        connect("nats://127.0.0.1:1")
    with pytest.raises(UsageError, match="is not the URL of a server"):
        connect("wss://user:pw@example.test:443")


def test_a_server_without_jetstream_is_said_at_once(jsctl_broker: BrokerFactory) -> None:
    broker = jsctl_broker(server=KINDS["nats-server"])
    with pytest.raises(Unreachable, match="nobody answers"):
        connect(broker.url, outageTimeout="30s")


def test_any_of_several_servers_will_do(start: Callable[[str], Broker]) -> None:
    broker = start("")
    connect(f"nats://127.0.0.1:1,{broker.url}")
    given = source_options({"servers": f"{broker.url},127.0.0.1:1", "stream": "S"})
    open_wire(given.connection.settings).close()


@pytest.mark.parametrize(
    "url",
    [
        "wss://user:p@ss@host:4222",
        "nats://user:p/ss@host:4222",
        "nats://user:p?ss@host:4222",
        "nats://user:p#ss@host:4222",
        "nats://user:7/p@ss@host:4222",
        "nats://p/ss@host:4222",
        "user:p/ss@host:4222",
    ],
)
def test_a_url_that_cannot_be_used_is_shown_without_its_password(url: str) -> None:
    with pytest.raises(UsageError, match=r"'\w+://\*\*\*@host:4222' is not the URL of a server"):
        address(url)


def test_servers_that_another_one_told_of_take_its_credentials() -> None:
    """The server tells of itself by number: another address of the same."""
    with socket.create_server((HOST, 0)) as server, ThreadPoolExecutor(1) as threads:
        port = server.getsockname()[1]
        told = json.dumps({"connect_urls": [f"{HOST}:{port}"]}).encode()

        def log_in_all() -> list[dict[str, object]]:
            found = []
            for _ in range(LOGINS):
                with server.accept()[0] as peer:
                    peer.sendall(b"INFO " + told + b"\r\n")
                    lines = peer.makefile("rb")
                    found.append(json.loads(lines.readline().removeprefix(b"CONNECT ")))
                    lines.readline()
                    peer.sendall(b"PONG\r\n")
            return found

        logins = threads.submit(log_in_all)
        url = f"nats://ann:secret@localhost:{port}"
        with JetStream(source_options({"servers": url, "stream": "S"}).connection) as js:
            seen = set()
            for _ in range(LOGINS):
                seen.add(js.wire.address.host)
                js.drop()
        assert seen == {"localhost", HOST}
        assert {(one.get("user"), one.get("pass")) for one in logins.result()} == {
            ("ann", "secret")
        }


def test_certificates_of_servers_told_of_may_name_the_teller() -> None:
    teller = address("tls://ann:pw@nats.example.test:4222")
    told = discovered("10.0.0.7:4223", teller)
    assert (told.text, told.tls, told.user, told.password) == ("10.0.0.7:4223", True, "ann", "pw")
    assert told.tls_name == "nats.example.test"
    assert discovered("[::1]:4224", told).tls_name == "nats.example.test"
    assert discovered("b.example.test:4222", teller).tls_name == ""
    assert discovered("10.0.0.7:4223", address("tls://10.0.0.6")).tls_name == ""


def test_a_server_that_ends_in_a_handshake_may_be_back_soon() -> None:
    """It is no fault of certificates, and another try may succeed."""
    with socket.create_server((HOST, 0)) as server:

        def greet() -> None:
            with server.accept()[0] as peer:
                peer.sendall(b'INFO {"tls_required":true}\r\n')
                peer.recv(1 << 16)

        with ThreadPoolExecutor(1) as threads:
            threads.submit(greet)
            with pytest.raises(Unreachable, match="ended the TLS handshake"):
                log_in(f"nats://{HOST}:{server.getsockname()[1]}")
