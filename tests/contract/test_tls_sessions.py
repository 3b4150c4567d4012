"""A session of TLS that goes on is no way around an expired certificate, on both servers."""

import socket
import ssl
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from jsctl.testing import Broker
from tests.contract.conftest import KINDS
from tests.support.certificates import CURVE, make_certificates, openssl
from tests.support.waiting import wait_for

CONFIG = """
tls {{ cert_file: "{path}/cert.pem", key_file: "{path}/key.pem", ca_file: "{path}/ca.pem",
  timeout: 5, verify: true }}
"""
AUTHORITY = """
[ca]
default_ca = own
[own]
database = index
new_certs_dir = .
serial = serial
default_md = sha256
policy = any
[any]
commonName = supplied
"""
EXTENSIONS = "authorityKeyIdentifier=keyid\nsubjectKeyIdentifier=hash\n"
LIFE = timedelta(seconds=8)
"""So long there is for the first connection."""
WAIT_S = 10.0
DEADLINE_S = LIFE.total_seconds() + 20.0
GREETING = b'CONNECT {"verbose":false}\r\nPING\r\n'


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An authority, and the server's certificate."""
    return make_certificates(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module", params=list(KINDS))
def server(request: pytest.FixtureRequest, path: Path) -> Iterator[Broker]:
    """A server that asks for certificates."""
    with KINDS[str(request.param)](config=CONFIG.format(path=path), name="one") as running:
        yield running


def short_lived(path: Path, directory: Path) -> ssl.SSLContext:
    """What shows a certificate that is good for a few seconds from now on."""
    openssl("req", *CURVE, "-keyout", "key.pem", "-out", "req.pem", "-subj", "/CN=x", cwd=directory)
    for name, text in {"ca.cnf": AUTHORITY, "index": "", "serial": "01", "ext": EXTENSIONS}.items():
        (directory / name).write_text(text)
    end = datetime.now(UTC) + LIFE
    signing = ("-cert", str(path / "ca.pem"), "-keyfile", str(path / "ca.key"), "-extfile", "ext")
    times = ("-enddate", f"{end:%Y%m%d%H%M%SZ}", "-notext", "-out", "cert.pem")
    openssl("ca", "-batch", "-config", "ca.cnf", "-in", "req.pem", *signing, *times, cwd=directory)
    context = ssl.create_default_context(cafile=str(path / "ca.pem"))
    context.load_cert_chain(directory / "cert.pem", directory / "key.pem")
    return context


def connected(
    server: Broker, context: ssl.SSLContext, session: ssl.SSLSession | None
) -> ssl.SSLSession | None:
    """The session of a connection that was let in, which there need not be.

    Raises OSError if it was not.
    """
    with socket.create_connection(("127.0.0.1", server.port), timeout=WAIT_S) as plain:
        plain.recv(1 << 16)
        with context.wrap_socket(plain, server_hostname="localhost", session=session) as secure:
            secure.sendall(GREETING)
            if b"PONG" not in secure.recv(1 << 16):
                raise ConnectionResetError("closed without a word")
            session = secure.session
            with suppress(OSError):
                secure.unwrap()  # A session whose connection just breaks off is forgotten.
            return session


@pytest.mark.parametrize("tickets", [True, False], ids=["tickets", "no tickets"])
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_an_expired_certificate_has_no_session(
    server: Broker, path: Path, tmp_path: Path, version: ssl.TLSVersion, tickets: bool
) -> None:
    context = short_lived(path, tmp_path)
    context.minimum_version = context.maximum_version = version
    context.options |= ssl.Options(0) if tickets else ssl.OP_NO_TICKET
    session = connected(server, context, None)

    def refused() -> bool:
        with suppress(OSError):
            connected(server, context, session)
            return False
        return True

    wait_for(refused, "the end of the certificate", DEADLINE_S)
    with pytest.raises(OSError):
        connected(server, context, session)
