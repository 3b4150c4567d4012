"""What a server has of accounts' JWTs, and how servers tell each other what they have.

A server asks one of the others now and then (`PACK`) with a hash over all that it has. One that
has the same answers with an empty message; any other sends all it has, a line of `account|JWT`
each, and an empty message at the end. Nothing else of the text counts, so that nats-servers of the
same cluster take part.
"""

from collections.abc import Iterator, Mapping
from hashlib import sha256

from jsctl.broker.claims.verifying import NotBelieved, account_said
from jsctl.broker.login_options.operators import ResolverOptions

HASH_BYTES = 32
LINE_PARTS = 2


class KnownTokens:
    """The JWTs of accounts as the options have them."""

    def __init__(self) -> None:
        self._read: tuple[tuple[str, str], ...] | None = None
        self._tokens: dict[str, str] = {}

    def of(self, options: ResolverOptions) -> Mapping[str, str]:
        """By account, of use or not."""
        if options.known is not self._read:
            self._read, self._tokens = options.known, dict(options.known)
        return self._tokens


def lasting(tokens: Mapping[str, str], now_s: int) -> Iterator[tuple[str, str]]:
    """Those that others may have: what cannot be read, or has expired, is nobody's."""
    for name, token in tokens.items():
        try:
            head = account_said(token).claims.head
        except NotBelieved:
            continue
        if head.sub == name and not 0 < head.exp < now_s:
            yield name, token


def hash_of(tokens: Mapping[str, str], now_s: int) -> bytes:
    """The same for the same JWTs, in whatever order."""
    found = 0
    for _, token in lasting(tokens, now_s):
        found ^= int.from_bytes(sha256(token.encode()).digest(), "big")
    return found.to_bytes(HASH_BYTES, "big")


def packed(tokens: Mapping[str, str], theirs: bytes, now_s: int) -> list[bytes]:
    """The messages for a server whose hash is `theirs`."""
    if theirs == hash_of(tokens, now_s):
        return [b""]
    return [*(f"{name}|{token}".encode() for name, token in lasting(tokens, now_s)), b""]


def unpacked(payload: bytes) -> Iterator[tuple[str, str]]:
    """The (account, JWT) of such a message; lines that are none are passed over."""
    for line in payload.decode("utf-8", "replace").split("\n"):
        parts = line.split("|")
        if len(parts) == LINE_PARTS:
            yield parts[0], parts[1]
