"""`server check credential`: whether a credentials file is still good, and how long."""

import base64
import binascii
import json
import re
from pathlib import Path
from time import time_ns

from jsctl.api.times import SECOND_NS
from jsctl.commands.server.check.run import checked, seconds
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.render.humanize import duration, go_moment_ns
from jsctl.render.reports.server.check import CheckResult

FILE_BYTES_MAX = 1024 * 1024
_TOKEN = re.compile(r"-+BEGIN [A-Z ]*JWT-+\s*([\w.-]+)\s*-+END")
_PUBLIC_BYTES = 32


async def credential(call: Call) -> int:
    """Checks a file."""
    return await checked(call, "credential", "Credential", body)


async def body(call: Call, result: CheckResult) -> None:
    """The check itself."""
    path = Path(call.text("credential"))
    if not call.text("credential"):
        result.critical("credential not accessible: stat : no such file or directory")
        return
    try:
        with path.open("rb") as file:
            text = file.read(FILE_BYTES_MAX).decode("utf-8", "replace")
    except OSError as error:
        reason = (error.strerror or "cannot be read").lower()
        verb = "stat" if not path.exists() else "open"
        where = "" if path.is_dir() else f"{verb} {path}: "
        result.critical(f"credential not accessible: {where}{reason}")
        return
    try:
        expires = _expiry(text)
    except ValueError as error:
        result.critical(f"invalid credential: {error}")
        return
    _judge(call, result, expires, time_ns() // SECOND_NS)


def _expiry(text: str) -> int:
    """Unix seconds, 0 for never. Raises ValueError for what no server would take."""
    found = _TOKEN.search(text)
    token = found[1] if found else text.strip()
    parts = token.split(".")
    if len(parts) != 3:
        raise ValueError("expected 3 chunks")
    try:
        claims = json.loads(_unpacked(parts[1]))
        issuer, expires = claims["iss"], claims.get("exp", 0)
        if not isinstance(issuer, str) or not isinstance(expires, int):
            raise ValueError
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ValueError("its claims cannot be read") from None
    _verify(issuer, f"{parts[0]}.{parts[1]}".encode(), _unpacked(parts[2]))
    return expires


def _unpacked(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _verify(issuer: str, signed: bytes, signature: bytes) -> None:
    from nacl.exceptions import CryptoError
    from nacl.signing import VerifyKey

    try:
        raw = base64.b32decode(issuer + "=" * (-len(issuer) % 8))
        VerifyKey(raw[1 : 1 + _PUBLIC_BYTES]).verify(signed, signature)
    except (CryptoError, ValueError, TypeError, binascii.Error):
        raise ValueError("claim failed V2 signature verification") from None


def _judge(call: Call, result: CheckResult, expires: int, now: int) -> None:
    left = expires - now
    warn, critical = seconds(call, "validity-warn"), seconds(call, "validity-critical")
    result.measure(
        "expiry",
        left,
        warning=warn,
        critical=critical,
        unit="s",
        help="Expiry time in seconds",
    )
    if not expires and call.flag("require-expiry"):
        result.critical("never expires")
    elif not expires:
        result.ok("never expires")
    elif critical > 0 and left <= critical:
        result.critical(f"expires sooner than {duration(round(critical * SECOND_NS))}")
    elif warn > 0 and left <= warn:
        result.warn(f"expires sooner than {duration(round(warn * SECOND_NS))}")
    else:
        result.ok(f"expires in {go_moment_ns(expires * SECOND_NS)}")
