"""Which user a client is by its certificate (`verify_and_map`).

Looked up in the order of the real server: emails, host names and URIs of the certificate as they
are, then its subject: as a distinguished name (RFC 4514), in its order and in any, then as text.
"""

import string
from collections.abc import Iterable, Iterator, Sequence

from jsctl.broker.turn import PeerCertificate

Rdn = tuple[tuple[str, str], ...]
"""Attributes (type, value) that belong together."""
Rdns = tuple[Rdn, ...]

_TYPES = {
    "commonName": "CN",
    "serialNumber": "SERIALNUMBER",
    "countryName": "C",
    "localityName": "L",
    "stateOrProvinceName": "ST",
    "streetAddress": "STREET",
    "organizationName": "O",
    "organizationalUnitName": "OU",
    "postalCode": "POSTALCODE",
    "domainComponent": "DC",
}
_TEXT_ORDER = ("SERIALNUMBER", "CN", "POSTALCODE", "STREET", "ST", "L", "OU", "O", "C")
_SPECIAL = frozenset(' "#+,;<=>\\')


class Holders:
    """Users that certificates may name, taken apart once: all clients may come at the same time."""

    __slots__ = ("_any_order", "_names", "_ordered")

    def __init__(self, names: Sequence[str]) -> None:
        self._names = frozenset(names)
        self._ordered: dict[tuple[frozenset[tuple[str, str]], ...], str] = {}
        self._any_order: dict[Rdns, str] = {}
        for name in names:
            given = parse_dn(name)
            if given is not None:
                self._ordered.setdefault(tuple(given), name)
                self._any_order.setdefault(_sorted(given), name)

    def named_by(self, certificate: PeerCertificate) -> str | None:
        """The one that a certificate names; None if it names nobody."""
        names = [*certificate.emails, *certificate.hosts, *certificate.uris]
        found = next((name for name in names if name in self._names), None)
        if found is None:
            found = self._by_subject(certificate.subject)
        if found is None:
            texts = _texts(certificate.subject)
            found = next((text for text in texts if text in self._names), None)
        return found

    def _by_subject(self, subject: Sequence[Rdn]) -> str | None:
        shown = [[(_TYPES.get(kind), value) for kind, value in rdn] for rdn in subject]
        if any(kind is None for rdn in shown for kind, _ in rdn):
            return None
        wanted = [frozenset((str(kind), value) for kind, value in rdn) for rdn in reversed(shown)]
        return self._ordered.get(tuple(wanted)) or self._any_order.get(_sorted(wanted))


def _sorted(rdns: Iterable[Iterable[tuple[str, str]]]) -> Rdns:
    return tuple(sorted(tuple(sorted(rdn)) for rdn in rdns))


def parse_dn(text: str) -> list[frozenset[tuple[str, str]]] | None:
    """The parts of a distinguished name in their order, types in capitals; None if it is none."""
    found: list[frozenset[tuple[str, str]]] = []
    rdn: list[tuple[str, str]] = []
    for kind, value, more in _attributes(text):
        if kind is None:
            return None
        rdn.append((kind.upper(), value))
        if not more:
            found.append(frozenset(rdn))
            rdn = []
    return found


def _attributes(text: str) -> Iterator[tuple[str | None, str, bool]]:
    """(type, value, whether the next one belongs to it); the type is None for what is wrong."""
    at = 0
    while at < len(text):
        kind, at, end = _word(text, at, "=")
        if end != "=" or not kind or text[at : at + 1] == "#":
            yield None, "", False
            return
        value, at, end = _word(text, at, ",+")
        if value is None:
            yield None, "", False
            return
        yield kind, value, end == "+"


def _word(text: str, at: int, ends: str) -> tuple[str | None, int, str]:
    """A word without the spaces around it, where the next one begins, and what ended it; the word
    is None where it is not escaped well."""
    found = bytearray()
    spaces = 0
    while at < len(text):
        one = text[at]
        if one in ends:
            break
        if one == "\\":
            one, at = _unescaped(text, at + 1)
            if not one:
                return None, at, ""
            spaces = 0
            found += one.encode("latin-1") if ord(one[0]) < 256 else one.encode()
            continue
        at += 1
        if one == " " and not found:
            continue
        spaces = spaces + 1 if one == " " else 0
        found += one.encode()
    word = bytes(found[: len(found) - spaces]).decode("utf-8", "replace")
    return word, at + 1, text[at : at + 1]


def _unescaped(text: str, at: int) -> tuple[str, int]:
    """What follows a backslash, and where it ends; nothing if that is wrong."""
    if text[at : at + 1] in _SPECIAL and at < len(text):
        return text[at], at + 1
    digits = text[at : at + 2]
    if len(digits) < 2 or any(digit not in string.hexdigits for digit in digits):
        return "", at
    return chr(int(digits, 16)), at + 2


def _texts(subject: Sequence[Rdn]) -> Iterator[str]:
    """How Go writes a subject: one part for each type, in a fixed order; with its domain
    components, and without."""
    values: dict[str, list[str]] = {}
    for kind, value in (attribute for rdn in subject for attribute in rdn):
        values.setdefault(_TYPES.get(kind, kind), []).append(value)
    parts = [
        "+".join(f"{kind}={_escaped(value)}" for value in values[kind])
        for kind in _TEXT_ORDER
        if kind in values
    ]
    text = ",".join(parts)
    domain = [f"DC={value}" for value in values.get("DC", ())]
    if domain:
        yield ",".join([text, *domain])
    yield text


def _escaped(value: str) -> str:
    shown = "".join("\\" + one if one in ',+"\\<>;' else one for one in value)
    if value[:1] in ("#", " "):
        shown = "\\" + shown
    return shown[:-1] + "\\ " if len(value) > 1 and value.endswith(" ") else shown
