"""Passwords as a configuration has them: plain, or bcrypt hashes.

What begins like a hash is never compared as plain text: whoever has read it could log in with it.
"""

import re

_PREFIX = re.compile(r"\$2[abxy]\$\d\d\$")
_HASH = re.compile(r"\$2[abxy]\$(\d\d)\$[./A-Za-z0-9]{53}", re.ASCII)
COST_MIN, COST_MAX = 4, 31


def looks_hashed(password: str) -> bool:
    """Whether a configured password begins like a bcrypt hash."""
    return _PREFIX.match(password) is not None


def parse_hash(password: str) -> int | None:
    """The cost of a bcrypt hash, 4 to 31; None if it is none that a password could match."""
    found = _HASH.fullmatch(password)
    cost = int(found[1]) if found is not None else 0
    return cost if COST_MIN <= cost <= COST_MAX else None
