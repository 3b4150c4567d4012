"""Which twin runs: the compiled one where it was built, unless the environment says otherwise."""

import os
from dataclasses import dataclass
from functools import cache

from jsctl.broker.accel import pure
from jsctl.broker.accel.contract import TableType

PURE_VARIABLE = "JSCTL_PURE"
"""Set to anything but 0 it has the loops in Python run."""


@dataclass(frozen=True, slots=True)
class Twin:
    """One of them, by the name that operators see."""

    name: str
    table: TableType


PURE = Twin("pure", pure.PureTable)


@cache
def compiled() -> Twin | None:
    """The compiled one; None where it was not built."""
    try:
        from jsctl.broker.accel import _lane
    except ImportError:
        return None
    return Twin("compiled", _lane.Table)


def chosen() -> Twin:
    """The one to use."""
    if os.environ.get(PURE_VARIABLE, "0") not in ("", "0"):
        return PURE
    return compiled() or PURE
