"""What a connection proves itself with: user, token, credentials file, NKEY, JWT, certificates.

Invariant: what was given is used or refused. Everything is read and checked before the first
byte is sent, so that a broken file never ends in a connection without credentials; files are
read again for every new connection, because they may have been renewed.
"""

import base64
import binascii
import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import ParseResult, unquote

from jsctl.errors import UsageError
from jsctl.settings import Context

if TYPE_CHECKING:
    import ssl

FILE_BYTES_MAX = 1024 * 1024
"""No credential is larger; a device or a pipe without end is not read."""
_SECTION = re.compile(r"-----BEGIN ([A-Z ]+)-----\s*(.*?)\s*-+END \1-+", re.DOTALL)
_BARE_SEED = re.compile(r"\bS[A-Z2-7]{57}\b")
_KINDS = {
    "user": ("user",),
    "creds": ("creds",),
    "nkey": ("nkey",),
    "jwt": ("user_jwt", "user_seed"),
}
_LITERALS = ("password", "token", "user_jwt", "user_seed")
"""What stands for itself unless it names a place."""
_PLACES = ("op://", "nsc://", "env://", "file://", "data:;base64,")
HELPER_S = 60.0
"""So long a password manager may ask its owner."""
Login = Callable[[str, ParseResult | None], dict[str, object]]
"""The fields of CONNECT, from the server's nonce and its URL. Raises UsageError."""


def _refusal(problem: str, remedy: str) -> UsageError:
    """One line: people see hints on a terminal only, and this may stand in a script's log."""
    return UsageError(f"{problem}: {remedy}")


def login_of(context: Context) -> Login:
    """How to log in; what cannot work on any server is refused now. Raises UsageError."""
    _check_combination(context)
    context = _resolved(context)
    prove = _proof(context)
    if prove is not None:
        prove("")

    def fields(nonce: str, url: ParseResult | None) -> dict[str, object]:
        own = _of_url(url)
        if own:
            return own
        if prove is None:
            return _words(context)
        if context.nkey and not nonce:
            raise _refusal(
                "nats: nkeys not supported by the server",
                "connect without --nkey, or to a server that asks for one",
            )
        return {**prove(nonce), **({"auth_token": context.token} if context.token else {})}

    return fields


def _resolved(context: Context) -> Context:
    """Passwords, tokens, JWTs and seeds from where they are kept."""
    found = {
        key: read_text(text, key).rstrip("\r\n")
        for key in _LITERALS
        if (text := str(getattr(context, key))).lower().startswith(_PLACES)
    }
    return replace(context, **found) if found else context  # type: ignore[arg-type] # texts


def _check_combination(context: Context) -> None:
    given = [kind for kind, keys in _KINDS.items() if any(getattr(context, key) for key in keys)]
    if len(given) > 1:
        raise _refusal(
            f"{' and '.join(given)} cannot be used together",
            "give one of --user, --creds, --nkey, and --jwt with --seed",
        )
    if context.password and not context.user:
        raise _refusal("a password was given without a user", "add --user")
    if context.token and context.user:
        raise _refusal("user and token cannot be used together", "give --user or --token")
    if bool(context.user_jwt) != bool(context.user_seed):
        given_one, other = ("jwt", "seed") if context.user_jwt else ("seed", "jwt")
        raise _refusal(f"a {given_one} was given without a {other}", f"add --{other}")


def _words(context: Context) -> dict[str, object]:
    """User and password, or a token; a user alone is one."""
    if context.user and context.password:
        return {"user": context.user, "pass": context.password}
    token = context.token or context.user
    return {"auth_token": token} if token else {}


def _of_url(url: ParseResult | None) -> dict[str, object]:
    """What stands in a server's URL; it beats everything else, as in other clients."""
    if url is None or url.username is None:
        return {}
    user = unquote(url.username)
    if url.password is None:
        return {"auth_token": user}
    return {"user": user, "pass": unquote(url.password)}


def _proof(context: Context) -> Callable[[str], dict[str, object]] | None:
    """Signs a nonce; None where words are enough."""
    if context.creds:
        return lambda nonce: _by_creds(context.creds, nonce)
    if context.nkey:
        return lambda nonce: _by_nkey(context.nkey, nonce)
    if context.user_jwt:
        return lambda nonce: _by_jwt(context.user_jwt, context.user_seed, nonce, "--seed")
    return None


def _by_creds(where: str, nonce: str) -> dict[str, object]:
    sections = dict(_SECTION.findall(read_text(where, "credentials")))
    jwt, seed = sections.get("NATS USER JWT", ""), sections.get("USER NKEY SEED", "")
    if not jwt or not seed:
        missing = "user JWT" if not jwt else "seed"
        raise _refusal(
            f"credentials file {_shown(where)} has no {missing}",
            "--creds takes the file that `nsc generate creds` writes",
        )
    return _by_jwt(jwt, seed, nonce, f"credentials file {_shown(where)}")


def _by_nkey(where: str, nonce: str) -> dict[str, object]:
    content = read_text(where, "nkey")
    found = _BARE_SEED.search(content)
    public, signature = _signed(found.group() if found else "", nonce, f"nkey file {where}")
    return {"nkey": public, "sig": signature}


def _by_jwt(jwt: str, seed: str, nonce: str, where: str) -> dict[str, object]:
    public, signature = _signed(seed, nonce, where)
    subject = _subject_of(jwt)
    if subject != public:
        raise _refusal(
            f"{where}: the seed does not belong to the user JWT",
            f"the JWT is for {subject or 'nobody'}, the seed for {public}",
        )
    return {"jwt": jwt, "sig": signature}


def _subject_of(jwt: str) -> str:
    """Whom a JWT is for. Raises UsageError for what is none."""
    parts = jwt.strip().split(".")
    try:
        if len(parts) != 3:
            raise ValueError("not three parts")
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
        return str(claims["sub"])
    except (ValueError, KeyError, TypeError, RecursionError):
        raise _refusal(
            "the user JWT cannot be read", "--jwt takes the token itself, not a file"
        ) from None


def _signed(seed: str, nonce: str, where: str) -> tuple[str, str]:
    """The public key and the signature of the server's nonce. Raises UsageError."""
    import nkeys  # type: ignore[import-untyped] # has no types

    try:
        pair = nkeys.from_seed(bytearray(seed.strip().encode()))
        public = pair.public_key.decode()
        signature = base64.urlsafe_b64encode(pair.sign(nonce.encode())).rstrip(b"=").decode()
    except (nkeys.NkeysError, ValueError, binascii.Error, IndexError, AssertionError):
        raise _refusal(f"{where}: not a usable seed", "a seed of a user starts with SU") from None
    if not public.startswith("U"):
        raise _refusal(f"{where}: not the seed of a user", "it starts with SU")
    return public, signature


def read_text(where: str, what: str) -> str:
    """A credential's file, or what a `data:` URL holds. Raises UsageError."""
    scheme, mark, rest = where.partition("://")
    kept = _KEEPERS.get(scheme.lower()) if mark else None
    if kept is not None:
        return kept(f"{scheme.lower()}://{rest}", what)
    try:
        if where.startswith("data:"):
            return base64.b64decode(where.partition(",")[2], validate=True).decode()
        with Path(where.removeprefix("file://")).open("rb") as file:
            content = file.read(FILE_BYTES_MAX + 1)
        if len(content) > FILE_BYTES_MAX:
            raise UsageError(f"{what} file {where} is too large")
        return content.decode()
    except OSError as error:
        raise UsageError(f"cannot read {what} file {where}: {error.strerror}") from None
    except ValueError:  # also Unicode and base64
        raise UsageError(f"{what} file {_shown(where)} is not text") from None


def _from_environment(where: str, what: str) -> str:
    name = where.partition("://")[2]
    found = os.environ.get(name, "") if name else ""
    if not found:
        raise _refusal(f"cannot read {what} {where}", f"the environment has no {name or 'name'}")
    return found


def _from_store(where: str, _what: str) -> str:
    from jsctl.auth.nsc import credentials_of

    return credentials_of(where, os.environ)


def _from_password_manager(where: str, what: str) -> str:
    import subprocess  # few logins need it, and a completion waits for what is loaded

    try:
        done = subprocess.run(
            ["op", "read", where], capture_output=True, text=True, check=False, timeout=HELPER_S
        )
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError) as error:
        raise _refusal(f"cannot read {what} {where}", f"op read failed: {error}") from None
    if done.returncode:
        raise _refusal(f"cannot read {what} {where}", f"op read failed: {done.stderr.strip()}")
    return done.stdout


_KEEPERS: Mapping[str, Callable[[str, str], str]] = {
    "env": _from_environment,
    "nsc": _from_store,
    "op": _from_password_manager,
}


def _shown(where: str) -> str:
    """Embedded credentials are not for the screen."""
    return "(embedded)" if where.startswith("data:") else where


def tls_of(context: Context, urls: list[str]) -> "ssl.SSLContext | None":
    """What TLS is done with; None when nobody asked for it. Raises UsageError."""
    if context.key and not context.cert:
        raise _refusal("a TLS key was given without a certificate", "add --tlscert")
    wanted = context.cert or context.ca or context.tls_first
    if not wanted and not any(url.startswith(("tls:", "wss:")) for url in urls):
        return None
    import ssl  # takes as long to load as half of a command

    made = ssl.create_default_context(cafile=_authority(context.ca))
    # Python 3.13 began to refuse an authority without key usage; `nats` takes it.
    made.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if context.cert:
        _load_certificate(made, context.cert, context.key)
    return made


def _authority(path: str) -> str | None:
    if not path:
        return None
    import ssl

    read_text(path, "TLS authority")
    try:
        ssl.create_default_context(cafile=path)
    except OSError:
        raise _refusal(f"{path} holds no certificate", "name a PEM file of an authority") from None
    return path


def _load_certificate(made: "ssl.SSLContext", cert: str, key: str) -> None:
    import ssl

    read_text(cert, "TLS certificate")
    if key:
        read_text(key, "TLS key")

    def refuse() -> str:
        raise _refusal(f"the TLS key {key or cert} is encrypted", "store it without a password")

    try:
        made.load_cert_chain(cert, key or None, password=refuse)
    except ssl.SSLError as error:
        mismatch = "MISMATCH" in str(error.reason)
        problem = "do not belong together" if mismatch else "are no certificate and key"
        raise _refusal(
            f"cannot use the TLS files: {cert} and {key or 'no key'} {problem}",
            "--tlscert and --tlskey take PEM files",
        ) from None
