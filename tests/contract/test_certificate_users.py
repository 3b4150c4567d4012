"""Users who are known by the certificate of a client (`verify_and_map`), on both servers."""

import ssl
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jsctl.testing import Broker
from tests.contract.conftest import KINDS
from tests.support.certificates import CURVE, make_certificates, openssl
from tests.support.login import Caller

USERS = """
  {{ user: "bob@acme.com" }}
  {{ user: "node.acme.com" }}
  {{ user: "spiffe://acme.com/worker" }}
  {{ user: "CN=plain,OU=Dev,O=Acme,C=DE" }}
  {{ user: "O=Acme,CN=turned,OU=Dev" }}
  {{ user: "cn = spaced , o=Acme\\\\, Inc." }}
  {{ user: "CN=deep,DC=acme,DC=com" }}
  {{ user: "CN=both,O=Acme" }}
  {{ user: "CN=secret,O=Acme", password: "s3cret" }}
  {{ user: "CN=leaf,O=Acme", allowed_connection_types: ["LEAFNODE"] }}
  {{ user: "nobody", password: "n" }}
"""
CONFIG = """
tls {{ cert_file: "{path}/cert.pem", key_file: "{path}/key.pem", ca_file: "{path}/ca.pem",
  timeout: 5, verify_and_map: true }}
authorization {{ users: [{users}] }}
{more}
"""
Context = Callable[[str, str], ssl.SSLContext]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An authority, and the server's certificate."""
    return make_certificates(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def shown(path: Path) -> Context:
    """What a client shows that has a certificate for a subject, with other names."""

    def make(subject: str, names: str) -> ssl.SSLContext:
        directory = path / f"{abs(hash((subject, names)))}"
        if not directory.exists():
            directory.mkdir()
            words = ("-keyout", "key.pem", "-out", "req.pem", "-subj", subject, "-multivalue-rdn")
            openssl("req", *CURVE, *words, cwd=directory)
            (directory / "ext").write_text(
                "authorityKeyIdentifier=keyid\nsubjectKeyIdentifier=hash\n"
                + (f"subjectAltName={names}\n" if names else "")
            )
            signing = ("-in", "req.pem", "-CA", "../ca.pem", "-CAkey", "../ca.key")
            signed = ("-CAcreateserial", "-days", "2", "-extfile", "ext", "-out", "cert.pem")
            openssl("x509", "-req", *signing, *signed, cwd=directory)
        context = ssl.create_default_context(cafile=str(path / "ca.pem"))
        context.load_cert_chain(directory / "cert.pem", directory / "key.pem")
        return context

    return make


@pytest.fixture(scope="module", params=list(KINDS))
def server(request: pytest.FixtureRequest, path: Path) -> Iterator[Broker]:
    """A server that looks users up by certificates."""
    config = CONFIG.format(path=path, users=USERS.format(), more="no_auth_user: nobody")
    with KINDS[str(request.param)](config=config, name="one") as running:
        yield running


CASES: dict[str, tuple[str, str, bool]] = {
    "an email": ("/CN=x", "email:eve@acme.com,email:bob@acme.com", True),
    "a host name": ("/CN=x", "DNS:other.acme.com,DNS:node.acme.com", True),
    "a URI": ("/CN=x", "URI:spiffe://acme.com/worker", True),
    "others, then the subject": ("/C=DE/O=Acme/OU=Dev/CN=plain", "email:eve@acme.com", True),
    "a subject": ("/C=DE/O=Acme/OU=Dev/CN=plain", "", True),
    "a subject in another order": ("/OU=Dev/O=Acme/CN=turned", "", True),
    "a subject with spaces": ("/O=Acme, Inc./CN=spaced", "", True),
    "domain components": ("/DC=com/DC=acme/CN=deep", "", True),
    "a part with two": ("/O=Acme+CN=both", "", True),
    "two parts": ("/O=Acme/CN=both", "", True),
    "more than the user has": ("/C=DE/O=Acme/CN=both", "", False),
    "another case": ("/O=acme/CN=both", "", False),
    "nobody": ("/O=Acme/CN=eve", "DNS:eve.acme.com", False),
    "a name that is a common name": ("/CN=nobody", "", False),
    "a user of leaf nodes": ("/O=Acme/CN=leaf", "", False),
    "a user with a password": ("/O=Acme/CN=secret", "", False),
}


@pytest.mark.parametrize("case", CASES)
def test_who_a_certificate_names(server: Broker, shown: Context, case: str) -> None:
    subject, names, expected = CASES[case]
    with Caller(server.port) as one:
        one.secure(shown(subject, names))
        assert one.login({}) is expected


def test_what_is_said_besides(server: Broker, shown: Context) -> None:
    context = shown("/O=Acme/CN=both", "")
    said: list[tuple[dict[str, object], bool]] = [
        ({"user": "nobody", "pass": "n"}, False),
        ({"user": "nobody"}, True),
        ({"pass": "n"}, False),
        ({"auth_token": "t"}, True),
    ]
    for words, expected in said:
        with Caller(server.port) as one:
            one.secure(context)
            assert one.login(words) is expected, words
    with Caller(server.port) as one:
        one.secure(shown("/O=Acme/CN=secret", ""))
        assert one.login({"pass": "s3cret"})


def test_without_a_certificate(server: Broker, path: Path) -> None:
    with Caller(server.port) as one, pytest.raises((OSError, AssertionError)):
        one.secure(ssl.create_default_context(cafile=str(path / "ca.pem")))
        assert one.login({}), "the handshake fails after the client's part of it"


@pytest.mark.parametrize("kind", list(KINDS))
def test_plain_connections_are_nobody(kind: str, path: Path, shown: Context) -> None:
    config = CONFIG.format(path=path, users=USERS.format(), more="allow_non_tls: true")
    with KINDS[kind](config=config, name="one") as server:
        for words in ({}, {"user": "CN=both,O=Acme"}, {"user": "nobody", "pass": "n"}):
            with Caller(server.port) as one:
                assert not one.login(dict(words)), words
        with Caller(server.port) as one:
            one.secure(shown("/O=Acme/CN=both", ""))
            assert one.login({})
