"""Ports of this machine, for servers that have to be told theirs."""

from jsctl.testing import ReservedPort

_HELD: list[ReservedPort] = []


def free_port() -> int:
    """One that nobody else is given for as long as this process lives.

    A socket stays bound to it without listening. One that is closed again is up to the next who
    asks the kernel, also in another process, before the server listens.
    """
    _HELD.append(ReservedPort())
    return _HELD[-1].number
