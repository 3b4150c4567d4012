"""How a connection introduces itself: addresses, TLS and credentials, from `Settings`.

Files are read where the connection is made, so that a task on another machine reads its own.
"""

import base64
import re
import ssl
from dataclasses import dataclass, replace
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import unquote, urlparse

from jsctl import __version__
from jsctl.errors import NotAllowed, UsageError
from jsctl.settings import Context, Settings

DEFAULT_PORT = 4222
_SECTION = re.compile(r"-----BEGIN ([A-Z ]+)-----\s*(.*?)\s*-+END \1-+", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Address:
    """One server; credentials in its URL beat the others.

    `tls_name` is what its certificate may name instead of `host`.
    """

    host: str
    port: int
    tls: bool = False
    user: str = ""
    password: str = ""
    tls_name: str = ""

    @property
    def text(self) -> str:
        """As it may be shown: without credentials."""
        return f"{self.host}:{self.port}"


def address(url: str) -> Address:
    """A server's URL taken apart. Raises UsageError."""
    whole = url if "://" in url else f"nats://{url}"
    try:
        parts = urlparse(whole)
        port = parts.port or DEFAULT_PORT
    except ValueError:
        parts, port = urlparse(""), 0
    # A password with one of /?# that is not encoded ends the host in the middle of it.
    torn = "@" in whole.partition("//")[2].removeprefix(parts.netloc)
    if parts.scheme not in ("nats", "tls") or not parts.hostname or torn:
        shown = re.sub(r"//.*@", "//***@", whole, flags=re.DOTALL)
        raise UsageError(
            f"{shown!r} is not the URL of a server",
            hints=("nats://host:4222 or tls://host:4222; websockets are not supported",),
        )
    return Address(
        parts.hostname,
        port,
        parts.scheme == "tls",
        unquote(parts.username or ""),
        unquote(parts.password or ""),
    )


def discovered(url: str, teller: Address) -> Address:
    """A server that another one told of: credentials are those of its teller.

    Servers tell of others by number, but their certificates often have names only.
    """
    at = address(url)
    name = "" if _is_number(teller.host) else teller.host
    return replace(
        at,
        tls=teller.tls,
        user=teller.user,
        password=teller.password,
        tls_name=(teller.tls_name or name) if _is_number(at.host) else "",
    )


def _is_number(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def wants_tls(context: Context, at: Address) -> bool:
    """Whether the client insists on TLS."""
    return at.tls or bool(context.ca or context.cert or context.tls_first)


def tls_context(context: Context) -> ssl.SSLContext:
    """What TLS is done with. Raises UsageError for files that cannot be used."""
    try:
        made = ssl.create_default_context(cafile=context.ca or None)
        # Python 3.13 began to refuse an authority without key usage; `nats` takes it.
        made.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if context.cert:
            made.load_cert_chain(context.cert, context.key or None)
    except OSError as error:
        raise UsageError(f"cannot use the TLS files: {error}") from error
    return made


def connect_fields(settings: Settings, at: Address, nonce: str) -> dict[str, object]:
    """The fields of CONNECT. Raises UsageError for files that cannot be read."""
    fields: dict[str, object] = {
        "verbose": False,
        "pedantic": False,
        "lang": "python",
        "version": __version__,
        "protocol": 1,
        "headers": True,
        "no_responders": True,
        "name": settings.connection_name or "jsctl spark",
    }
    return fields | _credentials(settings.connection, at, nonce)


def _credentials(context: Context, at: Address, nonce: str) -> dict[str, object]:
    if at.user:
        if at.password:
            return {"user": at.user, "pass": at.password}
        return {"auth_token": at.user}
    if context.user and context.password:
        return {"user": context.user, "pass": context.password}
    if context.token or context.user:
        return {"auth_token": context.token or context.user}
    if context.creds:
        sections = dict(_SECTION.findall(_read(context.creds, "creds")))
        jwt = sections.get("NATS USER JWT")
        seed = sections.get("USER NKEY SEED", "")
        if not jwt or not seed:
            raise UsageError(f"option creds: {context.creds} has no user JWT and seed")
        return {"jwt": jwt, "sig": _signed(seed, nonce, context.creds)[1]}
    if context.nkey:
        public, signature = _signed(_read(context.nkey, "nkey").strip(), nonce, context.nkey)
        return {"nkey": public, "sig": signature}
    if context.user_jwt:
        return {
            "jwt": context.user_jwt,
            "sig": _signed(context.user_seed, nonce, "option seed")[1],
        }
    return {}


def _read(path: str, option: str) -> str:
    try:
        return Path(path.removeprefix("file://")).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"option {option}: cannot read {path}: {error}",
            hints=("the file must be on every machine that runs a task",),
        ) from error


def _signed(seed: str, nonce: str, where: str) -> tuple[str, str]:
    """The public key and the signature of the server's nonce."""
    import nkeys  # type: ignore[import-untyped] # has no types

    if not nonce:
        raise NotAllowed("the server does not ask for a key; it expects other credentials")
    try:
        pair = nkeys.from_seed(seed.encode())
        signature = base64.urlsafe_b64encode(pair.sign(nonce.encode())).rstrip(b"=")
        return pair.public_key.decode(), signature.decode()
    except (nkeys.NkeysError, ValueError) as error:
        raise UsageError(f"{where}: not a usable seed: {type(error).__name__}") from None
