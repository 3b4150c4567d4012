"""Where servers and proxies are: URLs as people give them, checked, and as they may be shown."""

from collections.abc import Iterable
from urllib.parse import urlsplit

from jsctl.errors import UsageError
from jsctl.settings import Context

_SCHEMES = ("nats", "tls", "ws", "wss")
_PROXIES = ("socks5", "socks5h", "socks4", "socks4a")


def checked_url(url: str) -> str:
    """A server's URL; a bare `host:port` is one. Raises UsageError."""
    whole = url if "://" in url else f"nats://{url}"
    try:
        parts = urlsplit(whole)
        sound = parts.scheme in _SCHEMES and bool(parts.hostname) and parts.port != 0
    except ValueError:
        sound = False
    if not sound:
        raise UsageError(
            f"{shown_url(whole)!r} is not the URL of a server",
            hints=("nats://host:4222 or tls://host:4222",),
        )
    scheme, mark, rest = whole.partition("://")
    return f"{scheme.lower()}{mark}{rest}"


def is_websocket(url: str) -> bool:
    """Whether what is sent there goes in frames of its own."""
    return url.lower().startswith(("ws:", "wss:"))


def shown_url(url: str) -> str:
    """As it may be shown: without credentials."""
    before, at, host = url.rpartition("@")
    scheme, mark, _ = before.partition("://")
    return f"{scheme}://***@{host}" if mark else f"***@{host}" if at else url


def shown_urls(urls: Iterable[str]) -> str:
    """All of them, as they may be shown."""
    return ", ".join(map(shown_url, urls))


def bare_url(url: str) -> str:
    """The same server, for whoever has credentials that are not in the URL."""
    before, at, host = url.rpartition("@")
    scheme, mark, _ = before.partition("://")
    return f"{scheme}{mark}{host}" if at and mark else host


def proxy_of(context: Context) -> str:
    """The SOCKS proxy; empty when there is none. Raises UsageError."""
    proxy = context.socks_proxy
    if not proxy:
        return ""
    try:
        parts = urlsplit(proxy)
        sound = parts.scheme in _PROXIES and bool(parts.hostname) and bool(parts.port)
    except ValueError:
        sound = False
    if not sound:
        raise UsageError(
            f"{shown_url(proxy)!r} is not the URL of a SOCKS proxy",
            hints=("--socks-proxy socks5://host:1080",),
        )
    return proxy.replace("socks5h://", "socks5://").replace("socks4a://", "socks4://")
