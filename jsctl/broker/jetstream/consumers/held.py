"""What a consumer's leader has said, and nobody may hear before an entry is committed."""

from collections import deque
from collections.abc import Iterable

from jsctl.broker.protocol.deliveries import OutgoingMessage


class Held:
    """By the ticket of the entry that is waited for; what is said later waits behind it."""

    __slots__ = ("_last", "_waiting", "deliveries_wait")

    def __init__(self) -> None:
        self.deliveries_wait = False
        """Whether deliveries do, too, and not only answers to acks."""
        self._last = 0
        self._waiting: deque[tuple[int, list[OutgoingMessage]]] = deque()

    def entry(self) -> int:
        """The ticket of an entry that is written now."""
        self._last += 1
        self._waiting.append((self._last, []))
        return self._last

    def passed(
        self, answers: Iterable[OutgoingMessage], said: list[OutgoingMessage]
    ) -> list[OutgoingMessage]:
        """What may be published at once of answers to acks, and of all else that a turn said."""
        if not self._waiting:
            return [*said, *answers]
        last = self._waiting[-1][1]
        if not self.deliveries_wait:
            last.extend(answers)
            return said
        last.extend(said)
        last.extend(answers)
        return []

    def committed(self, ticket: int) -> list[OutgoingMessage]:
        """What may be published now that this entry was applied."""
        out: list[OutgoingMessage] = []
        while self._waiting and self._waiting[0][0] <= ticket:
            out += self._waiting.popleft()[1]
        return out

    def drop(self) -> None:
        """Nobody will hear of it: the next leader delivers again what its log does not know."""
        self._waiting.clear()
