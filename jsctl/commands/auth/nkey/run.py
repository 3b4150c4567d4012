"""`auth nkey`: keys, signatures and sealed files."""

import base64
import binascii
import os
from collections.abc import Callable
from pathlib import Path

from jsctl.auth.keys import KeyKind, KeyPair, KeyProblem, from_seed, generate, kind_of
from jsctl.commands.auth.reading import existing, pair_of_file, read_key_file
from jsctl.commands.toolkit.content.bodies import write_bytes
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.errors import JsctlError, UsageError, prefixed
from jsctl.files import read_bytes, write_whole

_KINDS = {**{kind.name.lower(): kind for kind in KeyKind}, "x25519": KeyKind.CURVE}


def gen(call: Call) -> None:
    """A new seed and, if asked for, its public key."""
    pair = _made(_KINDS[call.text("type")], _entropy(call))
    lines = f"{pair.seed}\n" + (f"{pair.public}\n" if call.flag("public") else "")
    if call.text("output"):
        write_whole(Path(call.text("output")), lines)
        return
    if call.as_data:
        call.output.json({"seed": pair.seed, "public": pair.public})
        return
    call.output.stdout.write(lines)


def _made(kind: KeyKind, entropy: Callable[[int], bytes]) -> KeyPair:
    try:
        return generate(kind, entropy)
    except KeyProblem as error:
        word = "x25519" if kind is KeyKind.CURVE else kind.name.lower()
        raise prefixed(error, f'could not create "{word}"') from None


def _entropy(call: Call) -> Callable[[int], bytes]:
    if not call.text("entropy"):
        return os.urandom
    path = existing(call.text("entropy"))

    def read(count: int) -> bytes:
        try:
            with path.open("rb", buffering=0) as source:
                return source.read(count) or b""
        except OSError as error:
            raise JsctlError(f"could not use custom entropy source: {error.strerror}") from None

    return read


def show(call: Call) -> None:
    """The public key of a seed."""
    existing(call.text("key"))
    public = from_seed(read_key_file(call.text("key"))).public
    call.output.tell(public, {"public": public})


def sign(call: Call) -> None:
    """A file's signature, in base64 for URLs."""
    data, key = existing(call.text("file")), existing(call.text("key"))
    pair = from_seed(read_key_file(str(key)))
    signature = pair.sign(read_bytes(data))
    text = base64.urlsafe_b64encode(signature).rstrip(b"=").decode()
    call.output.tell(text, {"signature": text})


def verify(call: Call) -> None:
    """Whether a signature is of a key, over a file."""
    data, written = existing(call.text("file")), existing(call.text("signature"))
    pair = pair_of_file(str(existing(call.text("key"))))
    text = read_bytes(written).strip().rstrip(b"=")
    try:
        signature = base64.b64decode(text + b"=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except binascii.Error:
        raise UsageError(f"{written} holds no signature in base64") from None
    pair.verify(read_bytes(data), signature)
    call.output.tell("Verified OK", {"verified": True})


def seal(call: Call) -> None:
    """A file for the holder of another curve key."""
    data = existing(call.text("file"))
    pair = pair_of_file(str(existing(call.text("key"))))
    recipient = _curve(call.text("recipient"))
    sealed = pair.seal(read_bytes(data), recipient)
    if call.flag("b64"):
        sealed = base64.b64encode(sealed)
    _write(call, sealed)


def unseal(call: Call) -> None:
    """What a file that was sealed for a key holds."""
    data = existing(call.text("file"))
    pair = pair_of_file(str(existing(call.text("key"))))
    content = read_bytes(data)
    if call.flag("b64"):
        try:
            content = base64.b64decode(b"".join(content.split()), validate=True)
        except binascii.Error:
            raise UsageError(
                f"{data} is not in base64", hints=("--no-b64 reads it as it is",)
            ) from None
    _write(call, pair.open(content, _curve(call.text("sender"))))


def _curve(public: str) -> str:
    if kind_of(public) is not KeyKind.CURVE:
        raise UsageError("invalid public key provided")
    return public


def _write(call: Call, data: bytes) -> None:
    if call.text("output"):
        write_whole(Path(call.text("output")), data)
    else:
        write_bytes(call, data + b"\n")
