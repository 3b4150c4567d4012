"""The time zones of this machine, by the names that nats-server takes."""

import time
from datetime import UTC, datetime
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

ZONES_MAX = 1_000
"""There are some 600 names. Each file is read once: a server that is to know of newer rules has to
be started again."""
NAME_LENGTH_MAX = 100
_LOCAL = "Local"


def offset(name: str, at: int) -> int | None:
    """Implements `ports.ZoneOffset`."""
    if name == _LOCAL:
        return time.localtime(at).tm_gmtoff
    # A path is no name.
    if not name or len(name) > NAME_LENGTH_MAX or ".." in name or name[0] in "/\\":
        return None
    zone = _load(name)
    if zone is None:
        return None
    ahead = datetime.fromtimestamp(at, UTC).astimezone(zone).utcoffset()
    assert ahead is not None, "zones know their offset"
    return int(ahead.total_seconds())


@lru_cache(ZONES_MAX)
def _load(name: str) -> ZoneInfo | None:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None
