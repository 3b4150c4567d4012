"""Which twin runs: the compiled one where it was built, unless the environment says otherwise."""

import os
import sys
from functools import cache

from jsctl.broker.accel.contract import ArchiveLoops, ColumnLoops, RouteEach, SocketLoops, TableType
from jsctl.broker.ports import Syncer
from jsctl.dataclass import dataclass

PURE_VARIABLE = "JSCTL_PURE"
"""Set to anything but 0 it has the loops in Python run."""


@dataclass(frozen=True, slots=True)
class Twin:
    """One of them, by the name that operators see."""

    name: str
    table: TableType
    columns: ColumnLoops
    each: RouteEach | None = None
    """None where it would save nothing."""


@cache
def interpreted() -> Twin:
    """The one in Python, which is loaded when it is to run."""
    from jsctl.broker.accel import columns
    from jsctl.broker.accel.pure import PureTable

    return Twin("pure", PureTable, columns)


@cache
def compiled() -> Twin | None:
    """The compiled one; None where it was not built."""
    try:
        from jsctl.broker.accel import _columns, _lane
    except ImportError:
        return None
    return Twin("compiled", _lane.Table, _columns, _lane.Table.route_each)


def chosen() -> Twin:
    """The one to use."""
    if os.environ.get(PURE_VARIABLE, "0") not in ("", "0"):
        return interpreted()
    return compiled() or interpreted()


def socket_loops() -> SocketLoops | None:
    """The compiled ones, where they are and are to be used; they are for Linux."""
    if sys.platform != "linux" or chosen() is not compiled():
        return None
    try:
        from jsctl.broker.accel import _sockets
    except ImportError:
        return None
    return _sockets


def made_syncer() -> Syncer | None:
    """Somebody who syncs beside the interpreter, where that is compiled, and to be used."""
    if sys.platform != "linux" or chosen() is not compiled():
        return None
    try:
        from jsctl.broker.accel._syncs import Syncer as Compiled

        return Compiled()
    except (ImportError, OSError):  # not built, or no thread is to be had
        return None


@cache
def column_loops() -> ColumnLoops:
    """Those of the twin that this process uses; asked for with each batch."""
    return chosen().columns


def archive_loops() -> ArchiveLoops:
    """Those of that twin for archives, which are loaded with the first one."""
    twin = compiled()
    if twin is not None and chosen() is twin:
        from jsctl.broker.accel import _columns

        return _columns
    from jsctl.backups import entries

    return entries
