"""Values that NATS writes as text: durations, sizes, addresses, URLs.

Each function returns None for text that is not of its kind; the caller knows the place.
"""

import re
from ipaddress import ip_address
from urllib.parse import unquote, urlsplit

from jsctl.broker.options import GIB, HOUR_NS, KIB, MIB, MINUTE_NS, SECOND_NS, Url

UNITS_NS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "μs": 1_000,
    "ms": 1_000_000,
    "s": SECOND_NS,
    "m": MINUTE_NS,
    "h": HOUR_NS,
}
DURATION_MAX_NS = (1 << 63) - 1
DURATION_CHARACTERS_MAX = 200
DURATION_PART = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)")
SIZE = re.compile(r"(-?[0-9]{1,15})([KMGT]?)B?", re.IGNORECASE)
SIZES = {"": 1, "K": KIB, "M": MIB, "G": GIB, "T": 1024 * GIB}
SIZE_MAX = (1 << 63) - 1
PORT_MAX = 65535
ANY_HOSTS = ("0.0.0.0", "::", "")
"""Hosts that mean all interfaces."""


def duration_ns(text: str) -> int | None:
    """Nanoseconds of a Go duration such as `1h30m`, `1.5s`, `-2ms`."""
    sign = -1 if text.startswith("-") else 1
    rest = text[1:] if text[:1] in ("+", "-") else text
    if rest == "0":
        return 0
    if len(rest) > DURATION_CHARACTERS_MAX:
        return None
    total, at = 0.0, 0
    while at < len(rest):
        part = DURATION_PART.match(rest, at)
        if part is None:
            return None
        number, unit = part.groups()
        exact = int(number) if number.isdecimal() else float(number)
        total += exact * UNITS_NS[unit]
        if total > DURATION_MAX_NS:
            return None
        at = part.end()
    return sign * round(total) if rest else None


def size_bytes(text: str) -> int | None:
    """Bytes of `100`, `64K`, `1G`, `10MB`; powers of 1024, and no more than 64 bits hold."""
    found = SIZE.fullmatch(text.strip())
    if found is None:
        return None
    size = int(found.group(1)) * SIZES[found.group(2).upper()]
    return size if abs(size) <= SIZE_MAX else None


def host_port(text: str) -> tuple[str, int] | None:
    """`host:port`, `[::1]:port` or `:port`; the port may be -1."""
    host, colon, port = text.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    if not colon or (":" in host and not bracketed):
        return None
    number = port_number(port)
    return None if number is None else (host.strip("[]"), number)


def advertised(text: str, listening: int) -> tuple[str, int] | None:
    """`host` or `host:port` as others are told; without a port, or any, the one listened on."""
    found = host_port(text if ":" in text.rpartition("]")[2] else f"{text}:-1")
    if found is None or not found[0]:
        return None
    host, port = found
    return host, port if port > 0 else listening


def port_number(text: str) -> int | None:
    """A port, -1 (any) included."""
    if not re.fullmatch(r"-?\d{1,5}", text, re.ASCII):
        return None
    number = int(text)
    return number if -1 <= number <= PORT_MAX else None


def route_url(text: str) -> Url | None:
    """`nats://user:password@host:port`, or `host:port`."""
    text = text.strip()
    if "://" not in text:
        text = f"nats://{text}"
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        return None
    if parts.scheme not in ("nats", "nats-route", "tls") or not parts.hostname or port is None:
        return None
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    return Url(parts.hostname, port, user, password, parts.scheme == "tls")


def host_text(host: str, port: int) -> str:
    """`host:port`, with brackets round an IPv6 address."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def is_address(host: str) -> bool:
    """Whether a host is a number, and no name."""
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def size_text(size: int) -> str:
    """Bytes as the start-up log shows them."""
    for unit, factor in (("TB", 1024 * GIB), ("GB", GIB), ("MB", MIB), ("KB", KIB)):
        if size >= factor:
            return f"{size / factor:.2f} {unit}"
    return f"{size} B"
