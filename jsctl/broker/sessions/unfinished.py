"""What clients have begun to send and not finished: counted for all of them, and bounded.

Every client may begin a message of the maximum size, so all together could take any amount of
memory by stopping half-way. At the limit whoever holds the most lets go: connections are counted
together by user and address, and of those with the largest sum the ones close that have been
silent for longest, until a quarter of the limit is free again. Who sends what he begins is the
last to be hit, and a user who floods the server is hit before all others.
"""

from collections.abc import Iterable

from jsctl.broker.sessions.session import ClientSession

TOO_MUCH = "Too Much Unfinished Input"
RELIEF_BYTES = 16 << 20

Sender = tuple[str, str, str]
"""(account, user, address): who is meant to fill the server's memory alone."""


class Unfinished:
    """The sum of what sessions hold. `bytes_max` is the limit for all of them."""

    __slots__ = ("_high", "bytes_max", "total")

    def __init__(self, bytes_max: int) -> None:
        self.bytes_max = bytes_max
        self.total = 0
        self._high = 0

    def note(self, session: ClientSession) -> bool:
        """What a session holds has changed; whether all together hold too much now."""
        size = session.intake.size
        self.total += size - session.held
        session.held = size
        return self.total > self.bytes_max

    def forget(self, session: ClientSession) -> None:
        """A session is gone."""
        self._high = max(self._high, self.total)
        self.total -= session.held
        session.held = 0

    def take_relief(self) -> bool:
        """Whether so much was let go of since the last time that the system may want it."""
        if self._high - self.total < RELIEF_BYTES:
            return False
        self._high = self.total
        return True

    def excess(self, sessions: Iterable[ClientSession]) -> list[ClientSession]:
        """Who has to go. Looks at all of them, and is not asked again before a quarter of the
        limit has come in anew."""
        by_sender: dict[Sender, list[ClientSession]] = {}
        for session in sessions:
            if session.held and not session.closing:
                by_sender.setdefault(sender_of(session), []).append(session)
        sums = {sender: sum(one.held for one in held) for sender, held in by_sender.items()}
        for held in by_sender.values():
            held.sort(key=lambda one: -one.last_in_ns)
        rest = self.total - self.bytes_max * 3 // 4
        level = _level(list(sums.values()), rest)
        found: list[ClientSession] = []
        for sender, held in by_sender.items():
            while held and sums[sender] > level:
                session = held.pop()
                sums[sender] -= session.held
                found.append(session)
        return found


def sender_of(session: ClientSession) -> Sender:
    """Whom a session counts for."""
    return (session.account.name, session.user, session.remote.remote_host)


def _level(sums: list[int], rest: int) -> int:
    """The sum that nobody may exceed so that at least `rest` becomes free."""
    sums.sort(reverse=True)
    above = 0
    for count, (size, following) in enumerate(zip(sums, [*sums[1:], 0], strict=True), 1):
        above += size
        if above - count * following >= rest:
            return max((above - rest) // count, 0)
    return 0
