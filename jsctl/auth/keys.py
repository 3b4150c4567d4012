"""nkeys: keys as text, who may sign and seal with them. Ed25519, and X25519 for sealing.

An nkey is the base32 form, without padding, of a byte that says what kind it is, 32 bytes of key
and a CRC16 (XMODEM, little endian); a seed has the kind behind the mark of a seed.
"""

import base64
import binascii
import os
from collections.abc import Callable
from enum import IntEnum
from typing import TYPE_CHECKING

from jsctl.dataclass import dataclass
from jsctl.errors import JsctlError

if TYPE_CHECKING:
    from nacl.public import Box

CRC_BYTES = 2
KEY_BYTES = 32
NONCE_BYTES = 24
SEED_MARK = 18 << 3
PRIVATE_MARK = 15 << 3
SEALED_MARK = b"xkv1"
"""The version in front of what is sealed; the nonce follows."""
TEXT_MAX = 128
"""No nkey is longer."""


class KeyKind(IntEnum):
    """What a key belongs to; the value is its first byte."""

    OPERATOR = 14 << 3
    ACCOUNT = 0
    USER = 20 << 3
    SERVER = 13 << 3
    CLUSTER = 2 << 3
    CURVE = 23 << 3


class KeyProblem(JsctlError):
    """A text is no key, or the key cannot do what was asked."""


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A public key and, if it is known, its seed."""

    public: str
    seed: str = ""

    def __repr__(self) -> str:
        return f"KeyPair({self.public!r})"  # a seed is not for logs

    @property
    def kind(self) -> KeyKind:
        """What it belongs to."""
        kind = kind_of(self.public)
        assert kind is not None, self.public
        return kind

    def sign(self, data: bytes) -> bytes:
        """64 bytes. Raises KeyProblem without a seed and for curve keys."""
        if self.kind is KeyKind.CURVE:
            raise KeyProblem("nkeys: curve key is not valid for sign/verify")
        if not self.seed:
            raise KeyProblem("nkeys: can not sign, no private key available")
        from nacl.signing import SigningKey

        return SigningKey(_raw_seed(self.seed)[1]).sign(data).signature

    def verify(self, data: bytes, signature: bytes) -> None:
        """Raises KeyProblem unless the signature is of this key over these bytes."""
        if self.kind is KeyKind.CURVE:
            raise KeyProblem("nkeys: curve key is not valid for sign/verify")
        from nacl.exceptions import BadSignatureError
        from nacl.signing import VerifyKey

        try:
            VerifyKey(_decoded(self.public)[1:]).verify(data, signature)
        except (BadSignatureError, ValueError):
            raise KeyProblem("nkeys: signature verification failed") from None

    def seal(self, data: bytes, recipient: str) -> bytes:
        """The data for the holder of another curve key only. Raises KeyProblem."""
        box = self._box(recipient, "cannot seal", "not a valid recipient public curve key")
        return SEALED_MARK + bytes(box.encrypt(data, os.urandom(NONCE_BYTES)))

    def open(self, data: bytes, sender: str) -> bytes:
        """What the holder of another curve key sealed for this one. Raises KeyProblem."""
        box = self._box(sender, "cannot open", "not a valid sender public curve key")
        if len(data) <= len(SEALED_MARK) + NONCE_BYTES:
            raise KeyProblem("nkeys: encrypted input is not valid")
        if not data.startswith(SEALED_MARK):
            raise KeyProblem("nkeys: encrypted input wrong version")
        from nacl.exceptions import CryptoError

        try:
            return bytes(box.decrypt(data[len(SEALED_MARK) :]))
        except CryptoError:
            raise KeyProblem("nkeys: could not decrypt input") from None

    def _box(self, other: str, what: str, not_a_key: str) -> "Box":
        from nacl.public import Box, PrivateKey, PublicKey

        if self.kind is not KeyKind.CURVE:
            raise KeyProblem("nkeys: only curve key can seal/open")
        if not self.seed:
            raise KeyProblem(f"nkeys: {what} no private curve key available")
        if kind_of(other) is not KeyKind.CURVE:
            raise KeyProblem(f"nkeys: {not_a_key}")
        return Box(PrivateKey(_raw_seed(self.seed)[1]), PublicKey(_decoded(other)[1:]))


def generate(kind: KeyKind, entropy: Callable[[int], bytes] = os.urandom) -> KeyPair:
    """A new pair from as many bytes of chance as a key has. Raises KeyProblem for too few."""
    raw = entropy(KEY_BYTES)
    if len(raw) != KEY_BYTES:
        raise KeyProblem("unexpected EOF" if raw else "EOF")
    head = bytes((SEED_MARK | kind >> 5, (kind & 31) << 3))
    return from_seed(_text(head + raw))


def from_seed(text: str) -> KeyPair:
    """The pair of a seed. Raises KeyProblem."""
    kind, raw = _raw_seed(text)
    if kind is KeyKind.CURVE:
        from nacl.public import PrivateKey

        public = bytes(PrivateKey(raw).public_key)
    else:
        from nacl.signing import SigningKey

        public = bytes(SigningKey(raw).verify_key)
    return KeyPair(_text(bytes((kind,)) + public), text)


def from_public(text: str) -> KeyPair:
    """A pair without a seed, which can verify. Raises KeyProblem."""
    raw = _decoded(text)
    if len(raw) != KEY_BYTES + 1 or raw[0] not in list(KeyKind):
        raise KeyProblem("nkeys: invalid public key")
    return KeyPair(text)


def from_text(text: str, *kinds: KeyKind) -> KeyPair:
    """A pair from a seed or a public key, of one of the kinds. Raises KeyProblem."""
    if not text:
        raise KeyProblem("invalid key - empty string")
    pair = from_seed(text) if text.startswith("S") else from_public(text)
    if kinds and pair.kind not in kinds:
        raise KeyProblem("nkeys: incompatible key")
    return pair


def kind_of(text: str) -> KeyKind | None:
    """The kind of a public key; None for any other text."""
    try:
        raw = _decoded(text)
    except KeyProblem:
        return None
    sound = len(raw) == KEY_BYTES + 1 and raw[0] in list(KeyKind)
    return KeyKind(raw[0]) if sound else None


def is_encoded(text: str) -> bool:
    """Whether a text is a key of any kind, public or not."""
    try:
        return bool(_decoded(text))
    except KeyProblem:
        return False


def _raw_seed(text: str) -> tuple[KeyKind, bytes]:
    raw = _decoded(text)
    kind = (raw[0] & 7) << 5 | raw[1] >> 3
    if raw[0] & 248 != SEED_MARK or len(raw) != KEY_BYTES + 2 or kind not in list(KeyKind):
        raise KeyProblem("nkeys: invalid seed")
    return KeyKind(kind), raw[2:]


def _decoded(text: str) -> bytes:
    """The bytes without their checksum."""
    if len(text) > TEXT_MAX or not text.isascii():
        raise KeyProblem("nkeys: invalid encoded key")
    try:
        raw = base64.b32decode(text + "=" * (-len(text) % 8))
    except binascii.Error:
        raise KeyProblem("nkeys: invalid encoded key") from None
    if len(raw) < CRC_BYTES + 2:
        raise KeyProblem("nkeys: invalid encoded key")
    body, checksum = raw[:-CRC_BYTES], raw[-CRC_BYTES:]
    if binascii.crc_hqx(body, 0).to_bytes(CRC_BYTES, "little") != checksum:
        raise KeyProblem("nkeys: invalid checksum")
    return body


def _text(body: bytes) -> str:
    checksum = binascii.crc_hqx(body, 0).to_bytes(CRC_BYTES, "little")
    return base64.b32encode(body + checksum).decode().rstrip("=")
