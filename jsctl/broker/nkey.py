"""Public nkeys: Ed25519 keys as text, and whether somebody holds the seed of one.

An nkey is the base32 form, without padding, of a byte that says what kind it is, 32 bytes of key
and a CRC16 (XMODEM, little endian). Knows nothing of users and connections.
"""

import base64
import binascii
from enum import IntEnum

CRC_BYTES = 2
SIGNATURE_BYTES = 64
TEXT_LENGTH = 56
SEED_LENGTH = 58
SEED_MARK = 18 << 3
SIGNATURE_TEXT_MAX = 88
"""The length of a signature in the longer of its two forms."""


class KeyKind(IntEnum):
    """What an nkey belongs to; the value is its first byte."""

    ACCOUNT = 0
    OPERATOR = 14 << 3
    USER = 20 << 3


def decode(text: str, kind: KeyKind) -> bytes | None:
    """The 32 bytes of a public nkey; None if the text is none of that kind."""
    if len(text) != TEXT_LENGTH or not text.isascii():
        return None
    try:
        raw = base64.b32decode(text)
    except binascii.Error:
        return None
    body, checksum = raw[:-CRC_BYTES], raw[-CRC_BYTES:]
    sound = binascii.crc_hqx(body, 0).to_bytes(CRC_BYTES, "little") == checksum
    return body[1:] if sound and body[0] == kind else None


def is_seed(text: str, kind: KeyKind) -> bool:
    """Whether a text is the seed of such an nkey: it has the kind behind the mark of a seed."""
    if len(text) != SEED_LENGTH or not text.isascii():
        return False
    try:
        raw = base64.b32decode(text + "=" * (-len(text) % 8))
    except binascii.Error:
        return False
    body, checksum = raw[:-CRC_BYTES], raw[-CRC_BYTES:]
    sound = binascii.crc_hqx(body, 0).to_bytes(CRC_BYTES, "little") == checksum
    inner = (body[0] & 7) << 5 | body[1] >> 3
    return sound and body[0] & 0xF8 == SEED_MARK and inner == kind


def public_of(seed: str) -> str:
    """The public nkey of a user's seed, which `is_seed` has looked at."""
    from nacl.signing import SigningKey  # loaded late, as for `verify`

    body = bytes([KeyKind.USER]) + SigningKey(_secret(seed)).verify_key.encode()
    checksum = binascii.crc_hqx(body, 0).to_bytes(CRC_BYTES, "little")
    return base64.b32encode(body + checksum).decode()


def sign(seed: str, message: bytes) -> bytes:
    """What shows that one holds a seed."""
    from nacl.signing import SigningKey

    return SigningKey(_secret(seed)).sign(message).signature


def _secret(seed: str) -> bytes:
    raw = base64.b32decode(seed + "=" * (-len(seed) % 8))
    return raw[2:-CRC_BYTES]


def encode_signature(signature: bytes) -> str:
    """In base64 of URLs without padding."""
    return base64.urlsafe_b64encode(signature).decode().rstrip("=")


def decode_signature(text: str) -> bytes | None:
    """The 64 bytes of a signature in base64: of URLs without padding, or the standard form.

    Clients write either. None for anything else.
    """
    if len(text) > SIGNATURE_TEXT_MAX or not text.isascii():
        return None
    if not text.endswith("="):
        if "+" in text or "/" in text:
            return None
        text = text.replace("-", "+").replace("_", "/") + "=" * (-len(text) % 4)
    try:
        raw = base64.b64decode(text, validate=True)
    except binascii.Error:
        return None
    return raw if len(raw) == SIGNATURE_BYTES else None


def verify(public: bytes, message: bytes, signature: bytes) -> bool:
    """Whether the holder of a key's seed signed a message. `public` comes from `decode`."""
    from nacl.exceptions import CryptoError  # loaded late: a broker without nkey users needs none
    from nacl.signing import VerifyKey

    try:
        VerifyKey(public).verify(message, signature)
    except CryptoError:
        return False
    return True
