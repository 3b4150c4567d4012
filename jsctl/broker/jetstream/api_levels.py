"""Which level of the API a request, a publish or a pull needs, and whether this server has it."""

import re

from jsctl.broker.options import COMPATIBLE_API_LEVEL
from jsctl.broker.protocol.headers import get

REQUIRED_LEVEL = b"Nats-Required-Api-Level"
_NUMBER = re.compile(rb"([+-]?)0*([0-9]{1,19})")
"""Of 64 bits; the interpreter converts no text of thousands of digits."""
_LEAST = -(2**63)


def exceeded(level: bytes | None) -> bool:
    """Whether a level is beyond this server's, or is none. Nothing, or an empty one, is not."""
    if not level:
        return False
    found = _NUMBER.fullmatch(level)
    if found is None:
        return True
    return not _LEAST <= int(b"".join(found.groups())) <= COMPATIBLE_API_LEVEL


def level_exceeded(headers: bytes) -> bool:
    """The same of a block of headers."""
    return bool(headers) and exceeded(get(headers, REQUIRED_LEVEL))
