"""Which level of the API a request, a publish or a pull needs, and whether this server has it."""

import re

from jsctl.broker.options import COMPATIBLE_API_LEVEL
from jsctl.broker.protocol.headers import get

REQUIRED_LEVEL = b"Nats-Required-Api-Level"
_NUMBER = re.compile(rb"[+-]?[0-9]+")
_LEAST = -(2**63)


def exceeded(level: bytes | None) -> bool:
    """Whether a level is beyond this server's, or is none. Nothing, or an empty one, is not."""
    if not level:
        return False
    if _NUMBER.fullmatch(level) is None:
        return True
    return not _LEAST <= int(level) <= COMPATIBLE_API_LEVEL


def level_exceeded(headers: bytes) -> bool:
    """The same of a block of headers."""
    return bool(headers) and exceeded(get(headers, REQUIRED_LEVEL))
