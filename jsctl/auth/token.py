"""JWTs: signed claims as text, and back.

The payload's bytes are those that the reference implementation would write for the same claims at
the same second, identifier included.
"""

import base64
import binascii
import hashlib
import re
from dataclasses import replace
from typing import Generic as Of
from typing import TypeVar, cast

from jsctl.api import jsontext
from jsctl.api.codec import DecodeError, decode, dumps, encode
from jsctl.auth.claims import (
    BODIES,
    JWT_VERSION,
    NO_LIMIT,
    Account,
    Body,
    ClaimType,
    Generic,
    Head,
    JetStreamLimits,
    Operator,
    User,
)
from jsctl.auth.keys import KeyKind, KeyPair, KeyProblem, from_public, kind_of
from jsctl.dataclass import dataclass
from jsctl.errors import JsctlError

TOKEN_BYTES_MAX = 1024 * 1024
HEADER = '{"typ":"JWT","alg":"ed25519-nkey"}'
_DECORATED = re.compile(r"-{3,}[^\n]*-{3,}\r?\n([\w\-.=]+)\r?\n-{3,}[^\n]*-{3,}(?:\r?\n|\Z)")
_ISSUERS: dict[str, tuple[KeyKind, ...]] = {
    ClaimType.OPERATOR.value: (KeyKind.OPERATOR,),
    ClaimType.ACCOUNT.value: (KeyKind.ACCOUNT, KeyKind.OPERATOR),
    ClaimType.USER.value: (KeyKind.ACCOUNT,),
    ClaimType.ACTIVATION.value: (KeyKind.ACCOUNT, KeyKind.OPERATOR),
    ClaimType.AUTHORIZATION_REQUEST.value: (KeyKind.SERVER,),
    ClaimType.AUTHORIZATION_RESPONSE.value: (KeyKind.ACCOUNT,),
}
_WORDS = {KeyKind.OPERATOR: "operator", KeyKind.ACCOUNT: "account", KeyKind.SERVER: "server"}
B = TypeVar("B", bound=Body)
Kind = TypeVar("Kind", bound=Body, covariant=True)


class TokenProblem(JsctlError):
    """A text is no JWT, or not one to believe."""


@dataclass(frozen=True, slots=True)
class Claims(Of[Kind]):
    """What a JWT says: of whom, and what."""

    head: Head
    nats: Kind

    @property
    def kind(self) -> str:
        """The kind of claims, as it is written."""
        return self.nats.generic.type_

    def document(self) -> dict[str, object]:
        """As JSON has it."""
        return {**encode(self.head), "nats": encode(self.nats)}


def sign(claims: Claims[B], pair: KeyPair, now_s: int) -> tuple[str, Claims[B]]:
    """The JWT, and the claims as they are in it. Raises KeyProblem without a seed."""
    kind = next(kind for kind, body in BODIES.items() if isinstance(claims.nats, body))
    if pair.kind not in _ISSUERS[kind]:
        raise TokenProblem(_not_expected(kind))
    head = replace(claims.head, iss=pair.public, iat=now_s, jti="")
    digest = hashlib.new("sha512_256", dumps(head)).digest()
    head = replace(head, jti=base64.b32encode(digest).decode().rstrip("="))
    generic = replace(claims.nats.generic, type_=kind, version=JWT_VERSION)
    signed: Claims[B] = Claims(head, replace(claims.nats, generic=generic))
    text = f"{_encoded(HEADER.encode())}.{_encoded(dumps(signed.document()))}"
    return f"{text}.{_encoded(pair.sign(text.encode()))}", signed


def read(token: str) -> Claims[Body]:
    """The claims of a JWT whose signature is that of its issuer. Raises TokenProblem."""
    token = token.strip()
    if len(token) > TOKEN_BYTES_MAX:
        raise TokenProblem(
            f"token size {len(token)} exceeds maximum of {TOKEN_BYTES_MAX} bytes: token too large"
        )
    chunks = token.split(".")
    if len(chunks) != 3:
        raise TokenProblem("expected 3 chunks")
    _check_header(_json(chunks[0]))
    document = _json(chunks[1])
    kind, version = _kind(document)
    claims = _claims(document, kind, version) if kind in BODIES else None
    signature = _decoded(chunks[2])
    first = version <= 1 or claims is None
    payload = chunks[1] if first else f"{chunks[0]}.{chunks[1]}"
    issuer = claims.head.iss if claims else str(document.get("iss", ""))
    try:
        from_public(issuer).verify(payload.encode(), signature)
    except KeyProblem:
        raise TokenProblem(f"claim failed V{1 if first else 2} signature verification") from None
    if claims is None:
        raise TokenProblem(f'unsupported JWT claim type "{kind}"')
    if kind_of(issuer) not in _ISSUERS[kind]:
        raise TokenProblem(_not_expected(kind))
    return claims


def read_plain(token: str) -> tuple[Head, dict[str, object]]:
    """Who says something of whom, and what, where that is none of the known kinds: an order of an
    operator to servers is one. The signature is that of the issuer. Raises TokenProblem."""
    token = token.strip()
    if len(token) > TOKEN_BYTES_MAX:
        raise TokenProblem(f"token size {len(token)} exceeds maximum of {TOKEN_BYTES_MAX} bytes")
    chunks = token.split(".")
    if len(chunks) != 3:
        raise TokenProblem("expected 3 chunks")
    header = _json(chunks[0])
    _check_header(header)
    document = _json(chunks[1])
    said = document.get("nats")
    try:
        head = decode(Head, {key: item for key, item in document.items() if key in _HEAD_KEYS})
    except DecodeError as error:
        raise TokenProblem(str(error)) from None
    first = str(header.get("alg", "")).lower() == "ed25519"
    payload = chunks[1] if first else f"{chunks[0]}.{chunks[1]}"
    try:
        from_public(head.iss).verify(payload.encode(), _decoded(chunks[2]))
    except KeyProblem:
        raise TokenProblem(f"claim failed V{1 if first else 2} signature verification") from None
    return head, said if isinstance(said, dict) else {}


def read_as(kind: type[B], token: str) -> Claims[B]:
    """`read` of a JWT of one kind. Raises TokenProblem."""
    claims = read(token)
    if not isinstance(claims.nats, kind):
        raise TokenProblem(f"not {kind.__name__.lower()} claim")
    return cast(Claims[B], claims)


def undecorated(text: str) -> str:
    """The JWT of a credentials file; any other text as it is."""
    found = _DECORATED.search(text)
    return found.group(1) if found else text


def credentials(token: str, pair: KeyPair) -> str:
    """The credentials file of a user. Raises JsctlError if the seed is not the user's."""
    if not pair.seed:
        raise JsctlError("user private key is not available")
    if read_as(User, token).head.sub != pair.public:
        raise JsctlError("nkey seed does not match the jwt subject")
    return (
        f"-----BEGIN NATS USER JWT-----\n{token}\n------END NATS USER JWT------\n\n"
        "************************* IMPORTANT *************************\n"
        "NKEY Seed printed below can be used to sign and prove identity.\n"
        "NKEYs are sensitive and should be treated as secrets.\n\n"
        f"-----BEGIN USER NKEY SEED-----\n{pair.seed}\n------END USER NKEY SEED------\n\n"
        "*************************************************************\n"
    )


def _kind(document: dict[str, object]) -> tuple[str, int]:
    """What kind of claims, of which version. Raises TokenProblem for those that nobody reads."""
    nats = document.get("nats", {})
    if not isinstance(nats, dict):
        raise TokenProblem('"nats" of the claims is not an object')
    version = 1 if document.get("type") else nats.get("version", 0)
    if not isinstance(version, int):
        raise TokenProblem("the version of the claims is not a number")
    if version > JWT_VERSION:
        raise TokenProblem("JWT was generated by a newer version ")
    kind = str(document.get("type") or nats.get("type") or "")
    if kind in ("cluster", "server"):
        raise TokenProblem(f"{kind.title()}Claims are not supported")
    return kind, version


def _claims(document: dict[str, object], kind: str, version: int) -> Claims[Body]:
    nats = document.get("nats", {})
    assert isinstance(nats, dict), kind
    if version == 1:
        nats = _migrated(kind, document, nats)
    try:
        head = decode(Head, {key: item for key, item in document.items() if key in _HEAD_KEYS})
        body = decode(BODIES[kind], _with_lists(nats))
        if isinstance(body, Account):
            body = _settled(body)
    except DecodeError as error:
        raise TokenProblem(str(error)) from None
    return Claims(head, body)


_HEAD_KEYS = frozenset({"aud", "exp", "jti", "iat", "iss", "name", "nbf", "sub"})


def _settled(account: Account) -> Account:
    """With limits of tiers those of the account mean nothing; signing keys are read to be checked.

    Raises DecodeError.
    """
    assert account.scopes is not None
    if not all(isinstance(one, str | dict) for one in account.signing_keys):
        raise DecodeError("unexpected shape of signing_keys")
    if account.limits.tiered_limits:
        limits = replace(account.limits, jetstream=JetStreamLimits())
        return replace(account, limits=limits)
    return account


def _with_lists(nats: dict[str, object]) -> dict[str, object]:
    """Networks as a list: they were once one text."""
    src = nats.get("src")
    if isinstance(src, str):
        return {**nats, "src": [part.strip().lower() for part in src.split(",") if part.strip()]}
    return nats


def _migrated(kind: str, document: dict[str, object], nats: dict[str, object]) -> dict[str, object]:
    """Claims of the first version: some fields stood above, and a user had no limits unnamed."""
    moved: dict[str, object] = {
        key: document[key] for key in ("tags", "issuer_account") if key in document
    }
    if kind == ClaimType.USER.value:
        nats = {"subs": NO_LIMIT, "data": NO_LIMIT, "payload": NO_LIMIT, **nats}
        nats.pop("max", None)
    if kind not in (ClaimType.USER.value, ClaimType.ACTIVATION.value):
        moved.pop("issuer_account", None)
    return {**nats, **moved, "type": kind, "version": 1}


def _check_header(header: dict[str, object]) -> None:
    kind, algorithm = str(header.get("typ", "")), str(header.get("alg", ""))
    if kind.upper() != "JWT":
        raise TokenProblem(f'not supported type "{kind}"')
    if algorithm.lower() not in ("ed25519", "ed25519-nkey"):
        raise TokenProblem(f'unexpected "{algorithm}" algorithm')


def _not_expected(kind: str) -> str:
    words = " ".join(_WORDS[one] for one in _ISSUERS[kind])
    return f"unable to validate expected prefixes - [{words}]"


def _json(chunk: str) -> dict[str, object]:
    try:
        document = jsontext.parse(_decoded(chunk))
    except DecodeError as error:
        raise TokenProblem(str(error)) from None
    if not isinstance(document, dict):
        raise TokenProblem("a part of the JWT is not a JSON object")
    return document


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decoded(text: str) -> bytes:
    if not re.fullmatch(r"[\w-]*", text, re.ASCII):
        at = next(n for n, c in enumerate(text) if not re.match(r"[\w-]", c, re.ASCII))
        raise TokenProblem(f"illegal base64 data at input byte {at}")
    try:
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except binascii.Error:
        raise TokenProblem(f"illegal base64 data at input byte {len(text) - 1}") from None


__all__ = [
    "Claims",
    "Generic",
    "Operator",
    "TokenProblem",
    "credentials",
    "read",
    "read_as",
    "read_plain",
    "sign",
    "undecorated",
]
