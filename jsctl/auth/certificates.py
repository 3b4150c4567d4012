"""X.509 certificates as far as people look at them: read from their bytes, without a library.

A certificate is a tree of tags with lengths (DER). Only what `account tls` shows is read; whether
a certificate is to be trusted was decided by the TLS library.
"""

import ssl
from collections.abc import Iterator
from datetime import UTC, datetime
from ipaddress import ip_address

from jsctl.dataclass import dataclass
from jsctl.errors import JsctlError

SEQUENCE, OID, BOOLEAN, UTC_TIME = 0x30, 0x06, 0x01, 0x17
VERSION_TAG, EXTENSIONS_TAG = 0xA0, 0xA3
BASIC_CONSTRAINTS, ALTERNATIVE_NAMES = "2.5.29.19", "2.5.29.17"
_NAMES = {
    "2.5.4.3": "CN",
    "2.5.4.5": "SERIALNUMBER",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "2.5.4.17": "POSTALCODE",
}
_ORDER = ("SERIALNUMBER", "CN", "STREET", "L", "ST", "POSTALCODE", "OU", "O", "C")
_SIGNED = {
    "1.2.840.113549.1.1.5": "SHA1-RSA",
    "1.2.840.113549.1.1.11": "SHA256-RSA",
    "1.2.840.113549.1.1.12": "SHA384-RSA",
    "1.2.840.113549.1.1.13": "SHA512-RSA",
    "1.2.840.10045.4.3.2": "ECDSA-SHA256",
    "1.2.840.10045.4.3.3": "ECDSA-SHA384",
    "1.2.840.10045.4.3.4": "ECDSA-SHA512",
    "1.3.101.112": "Ed25519",
}
_KINDS = {1: "emails", 2: "dns", 6: "uris", 7: "addresses"}


@dataclass(frozen=True, slots=True)
class Certificate:
    """What is shown of one."""

    subject: str
    serial: int
    expires: datetime
    authority: bool
    signed_with: str
    dns: tuple[str, ...]
    addresses: tuple[str, ...]
    uris: tuple[str, ...]
    emails: tuple[str, ...]
    der: bytes

    @property
    def pem(self) -> str:
        """As text."""
        return ssl.DER_cert_to_PEM_cert(self.der)


def read_certificate(der: bytes) -> Certificate:
    """The parts of a certificate. Raises JsctlError for bytes that are none."""
    try:
        return _read(der)
    except (IndexError, ValueError, StopIteration):
        raise JsctlError("the server's certificate cannot be read") from None


def _read(der: bytes) -> Certificate:
    outer = next(_items(der))[1]
    body, algorithm = [content for _, content in _items(outer)][:2]
    fields = [item for item in _items(body) if item[0] != VERSION_TAG]
    serial, _, _, validity, subject = (content for _, content in fields[:5])
    extensions = dict(_extensions(fields))
    names = _alternatives(extensions.get(ALTERNATIVE_NAMES, b""))
    constraints = [*_items(extensions.get(BASIC_CONSTRAINTS, b""))]
    inner = [*_items(constraints[0][1])] if constraints else []
    signed = _oid(next(content for tag, content in _items(algorithm) if tag == OID))
    return Certificate(
        subject=_name(subject),
        serial=int.from_bytes(serial, "big"),
        expires=_time(*list(_items(validity))[1]),
        authority=any(tag == BOOLEAN and any(content) for tag, content in inner),
        signed_with=_SIGNED.get(signed, signed),
        der=der,
        **{kind: tuple(names.get(kind, ())) for kind in _KINDS.values()},
    )


def _items(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Tags and contents, one behind the other."""
    at = 0
    while at < len(data):
        tag, length, start = data[at], data[at + 1], at + 2
        if length & 0x80:
            count = length & 0x7F
            length = int.from_bytes(data[start : start + count], "big")
            start += count
        if start + length > len(data):
            raise ValueError("a length goes beyond the end")
        yield tag, data[start : start + length]
        at = start + length


def _extensions(fields: list[tuple[int, bytes]]) -> Iterator[tuple[str, bytes]]:
    for tag, content in fields:
        if tag != EXTENSIONS_TAG:
            continue
        for _, extension in _items(next(_items(content))[1]):
            parts = list(_items(extension))
            yield _oid(parts[0][1]), parts[-1][1]


def _alternatives(data: bytes) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for _, names in _items(data):
        for tag, content in _items(names):
            kind = _KINDS.get(tag & 0x1F)
            if kind == "addresses":
                found.setdefault(kind, []).append(str(ip_address(content)))
            elif kind:
                found.setdefault(kind, []).append(content.decode("ascii", "replace"))
    return found


def _name(data: bytes) -> str:
    """In the order and with the separators of RFC 2253, as Go writes it."""
    parts: dict[str, list[str]] = {}
    for _, group in _items(data):
        for _, pair in _items(group):
            (_, oid), (_, text) = list(_items(pair))[:2]
            name = _oid(oid)
            parts.setdefault(_NAMES.get(name, name), []).append(text.decode("utf-8", "replace"))
    known = [name for name in _ORDER if name in parts]
    others = [name for name in parts if name not in _ORDER]
    return ",".join(f"{name}={'+'.join(parts[name])}" for name in (*others, *known))


def _oid(data: bytes) -> str:
    numbers, value = [*divmod(data[0], 40)], 0
    for byte in data[1:]:
        value = value << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(value)
            value = 0
    return ".".join(map(str, numbers))


def _time(tag: int, data: bytes) -> datetime:
    form = "%y%m%d%H%M%SZ" if tag == UTC_TIME else "%Y%m%d%H%M%SZ"
    return datetime.strptime(data.decode("ascii"), form).replace(tzinfo=UTC)
