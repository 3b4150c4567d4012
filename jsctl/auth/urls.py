"""URLs as the Go parser of servers and tools takes them: what is one, its parts, how it is written.

Python's own parser takes nearly every text. What it takes and servers do not must not stand in
claims, which are written with the URL in its normal form.
"""

import re
from dataclasses import replace
from ipaddress import IPv6Address
from urllib.parse import quote, unquote_to_bytes

from jsctl.dataclass import dataclass

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2}).{0,2}", re.DOTALL)
_PLAIN_ESCAPE = re.compile(r"%(?!25)[0-7][0-9A-Fa-f]")
_BAD_IN_HOST = re.compile(r"[^A-Za-z0-9\-_.~!$&'()*+,;=:\[\]<>\"%\x80-\U0010ffff]")
_USER = re.compile(r"[A-Za-z0-9\-._:~!$&'()*+,;=%@]*")
_PORT = re.compile(r"(?::[0-9]*)?")
_WRITTEN = re.compile(r"[A-Za-z0-9\-_.~!$&'()*+,;=:@\[\]%/]*")
_SAFE = "/$&+,:;=@"
_HOST_SAFE = "!$&'()*+,;=:[]<>\""
_STRICT_SCHEMES = ("http", "https")
"""A host of these has one colon, that of the port."""


class UrlProblem(ValueError):
    """A text is no URL."""


@dataclass(frozen=True, slots=True)
class Url:
    """The parts of a URL. `rest` is what begins with `?` or `#`; `opaque` has no host."""

    scheme: str = ""
    user: str | None = None
    host: str = ""
    path: str = ""
    opaque: str = ""
    rest: str = ""
    hostless: bool = False
    """There is a scheme and a path, and not even an empty host."""

    @property
    def hostname(self) -> str:
        """The host without its port."""
        if self.host.startswith("["):
            return self.host[1:].partition("]")[0]
        return self.host.rpartition(":")[0] if ":" in self.host else self.host

    def __str__(self) -> str:
        start = f"{self.scheme}:" if self.scheme else ""
        if self.opaque:
            return f"{start}{self.opaque}{self.rest}"
        if self.host or self.user is not None or (self.scheme and self.path and not self.hostless):
            user = "" if self.user is None else f"{self.user}@"
            start += f"//{user}{quote(self.host, safe=_HOST_SAFE)}"
        return f"{start}{_escaped(self.path)}{self.rest}"


def parse_url(text: str) -> Url:
    """The parts of a URL. Raises UrlProblem that says what is wrong, and not of what."""
    before, _, fragment = text.partition("#")
    found = _parsed(before)
    _check_escapes(fragment)
    behind = f"#{_escaped(fragment, more='?', safe='?!()*')}" if fragment else ""
    return replace(found, rest=found.rest + behind)


def _parsed(before: str) -> Url:
    if any(letter < " " or letter == "\x7f" for letter in before):
        raise UrlProblem("net/url: invalid control character in URL")
    if before.startswith(":"):
        raise UrlProblem("missing protocol scheme")
    found = _SCHEME.match(before)
    scheme = found[1].lower() if found else ""
    body, question, query = before[found.end() if found else 0 :].partition("?")
    rest = question + query
    if not body.startswith("/"):
        if scheme:
            return Url(scheme, opaque=body, rest=rest)
        if ":" in body.partition("/")[0]:
            raise UrlProblem("first path segment in URL cannot contain colon")
    if not body.startswith("//") or (not scheme and body.startswith("///")):
        _check_escapes(body)
        return Url(scheme, path=body, rest=rest, hostless=bool(scheme and body))
    authority, slash, path = body[2:].partition("/")
    user, host = _authority(scheme, authority)
    _check_escapes(slash + path)
    return Url(scheme, user, host, slash + path, rest=rest)


def _authority(scheme: str, text: str) -> tuple[str | None, str]:
    user, at, host = text.rpartition("@")
    host = _host(scheme, host)
    if not at:
        return None, host
    if not _USER.fullmatch(user):
        raise UrlProblem("net/url: invalid userinfo")
    _check_escapes(user)
    return user, host


def _host(scheme: str, host: str) -> str:
    if "[" in host[1:]:
        raise UrlProblem("invalid IP-literal")
    if host.startswith("["):
        name, bracket, port = host[1:].rpartition("]")
        if not bracket:
            raise UrlProblem("missing ']' in host")
        _check_port(port)
        return f"[{_address(name)}]{port}"
    colon = host.find(":") if scheme in _STRICT_SCHEMES else host.rfind(":")
    if colon >= 0:
        _check_port(host[colon:])
    _check_escapes(host)
    plain = _PLAIN_ESCAPE.search(host)
    if plain:
        raise UrlProblem(f'invalid URL escape "{plain[0]}"')
    bad = _BAD_IN_HOST.search(host)
    if bad:
        raise UrlProblem(f'invalid character "{bad[0]}" in host name')
    return _unquoted(host).decode("utf-8", "replace")


def _address(name: str) -> str:
    _check_escapes(name)
    address = _unquoted(name).decode("utf-8", "replace")
    try:
        IPv6Address(address)
    except ValueError:
        raise UrlProblem(f'invalid host: ParseAddr("{address}"): unable to parse IP') from None
    return address


def _check_port(text: str) -> None:
    if not _PORT.fullmatch(text):
        raise UrlProblem(f'invalid port "{text}" after host')


def _check_escapes(text: str) -> None:
    bad = _BAD_ESCAPE.search(text)
    if bad:
        raise UrlProblem(f'invalid URL escape "{bad[0]}"')


def _escaped(text: str, *, more: str = "", safe: str = "") -> str:
    """As it stands if nothing in it has to be escaped, else all but what is safe."""
    if _WRITTEN.fullmatch(text.translate({ord(letter): None for letter in more})):
        return text
    return quote(_unquoted(text), safe=_SAFE + safe)


def _unquoted(text: str) -> bytes:
    """What the escapes mean. Bytes of the command line that are no text stay what they are."""
    return unquote_to_bytes(text.encode("utf-8", "surrogateescape"))
