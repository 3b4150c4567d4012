"""Names in certificates: which user they are, and what is no name."""

from time import perf_counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jsctl.broker.accounts import certificates
from jsctl.broker.accounts.certificates import Holders, parse_dn
from jsctl.broker.turn import PeerCertificate
from tests.support.quick import examples

LONG = {"C": "countryName", "O": "organizationName", "OU": "organizationalUnitName"}
LONG |= {"CN": "commonName", "DC": "domainComponent", "UID": "userId"}


def subject(text: str) -> PeerCertificate:
    """What is in a certificate for `/C=DE/O=Acme+CN=x`."""
    parts = [part.split("+") for part in text.split("/")[1:]]
    rdns = [[one.split("=", 1) for one in part] for part in parts]
    return PeerCertificate(
        subject=tuple(tuple((LONG[kind], value) for kind, value in rdn) for rdn in rdns)
    )


def found(certificate: PeerCertificate, *users: str) -> str | None:
    """Who it is of these users."""
    return Holders(users).named_by(certificate)


def test_other_names_come_first() -> None:
    shown = PeerCertificate(("e@x",), ("h.x",), ("u://x",), ((("commonName", "c"),),))
    users = ["CN=c", "u://x", "h.x", "e@x"]
    for expected in reversed(users):
        assert found(shown, *users) == expected
        users.remove(expected)
    assert found(shown) is None


def test_only_those_who_are_allowed() -> None:
    shown = subject("/O=Acme/CN=x")
    assert found(shown, "CN=x,O=Acme") == "CN=x,O=Acme"
    assert found(shown) is None


@pytest.mark.parametrize(
    ("shown", "user", "fits"),
    [
        ("/C=DE/O=Acme/CN=x", "CN=x,O=Acme,C=DE", True),
        ("/C=DE/O=Acme/CN=x", "cn = x , o=Acme,c=DE", True),
        ("/C=DE/O=Acme/CN=x", "C=DE,O=Acme,CN=x", True),
        ("/C=DE/O=Acme/CN=x", "CN=x,O=Acme", False),
        ("/C=DE/O=Acme/CN=x", "CN=x,O=acme,C=DE", False),
        ("/O=Acme+CN=x", "CN=x+O=Acme", True),
        ("/O=Acme+CN=x", "O=Acme+CN=x", True),
        ("/OU=a/OU=b/CN=x", "CN=x,OU=b,OU=a", True),
        ("/OU=a/OU=b/CN=x", "CN=x,OU=a+OU=b", True),
        ("/OU=a/OU=a/CN=x", "CN=x,OU=a,OU=b", False),
        ("/DC=com/DC=acme/CN=x", "CN=x,DC=acme,DC=com", True),
        ("/DC=com/DC=acme/CN=x", "CN=x", True),
        ("/DC=com/DC=acme/UID=u/CN=x", "CN=x,DC=com,DC=acme", True),
        ("/UID=u/CN=x", "CN=x", True),
        ("/O=A, B/CN=x", r"CN=x,O=A\, B", True),
        ("/O=A, B/CN=x", r"CN=x,O=A\2c B", True),
        ("/O=#a/UID=u", r"O=\#a", True),
        ("/O=a /UID=u", "O=a\\ ", True),
    ],
)
def test_subjects(shown: str, user: str, fits: bool) -> None:
    assert (found(subject(shown), user) == user) is fits


@pytest.mark.parametrize(
    "text", ["a", "=x", "CN", "CN=x,O", "CN=x,=y", "CN=#04", r"CN=\x", r"CN=x\0", "CN=x\\"]
)
def test_what_is_no_name(text: str) -> None:
    assert parse_dn(text) is None


def test_parts_are_read() -> None:
    assert parse_dn("") == []
    assert parse_dn(r" cn=a\ ,o=b + ou= c  ") == [
        frozenset({("CN", "a ")}),
        frozenset({("O", "b"), ("OU", "c")}),
    ]
    assert parse_dn(r"CN=\c3\a4") == [frozenset({("CN", "ä")})]


@given(st.text(alphabet=' ,+=\\#"aC0ä', max_size=40))
@settings(max_examples=examples(300))
def test_whatever_somebody_calls_himself(text: str) -> None:
    parts = parse_dn(text)
    assert parts is None or all(kind for part in parts for kind, _ in part)


def test_names_of_users_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of clients come at the same time when a server starts, and again at a reload."""
    users = Holders([f"CN=u{number},O=Acme" for number in range(100)])
    monkeypatch.delattr(certificates, "parse_dn")
    assert users.named_by(subject("/O=Acme/CN=u99")) == "CN=u99,O=Acme"
    assert users.named_by(subject("/CN=u7/O=Acme")) == "CN=u7,O=Acme"


def test_long_names_are_read_in_no_time() -> None:
    began = perf_counter()
    for text in ("CN=x," * 20_000, "\\" * 100_000, "=" * 100_000, "CN=" + " " * 100_000):
        parse_dn(text)
    assert perf_counter() - began < 2
