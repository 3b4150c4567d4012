"""Requests are worked off in portions: what many of them need does not keep everybody else waiting.

A turn serves requests up to a number of units; what is left waits in order for the next turn,
which follows at once and takes what arrived meanwhile as well. A request that is larger than a
turn's units is served alone. Those beyond `waiting_max` are dropped, as nats-server does.
"""

from jsctl.broker.interest.targets import Captured, Sink
from jsctl.broker.jsapi.direct_responder import DirectGetResponder
from jsctl.broker.sessions.request_budget import REQUEST_UNITS, may_search

LOOKUP_UNITS = 1
"""Of a direct get of one message."""
BATCH_UNITS = 48
"""Of a direct get of many messages more, for the first of them."""
SUBJECTS_PER_UNIT = 64
"""It may look through all subjects of its stream."""
UNIT_BYTES = 512
"""A body counts one unit more for each of these."""
LOOKUP_BYTES_MAX = 128


class Portions:
    """See the module."""

    def __init__(self, waiting_max: int) -> None:
        self._waiting_max = waiting_max
        self._left = 0
        self._waiting: list[Sink] = []
        self._passed_over: list[Sink] = []
        """Those of which the turn served nothing: they come first in the next one."""
        self._rests: dict[int, list[Captured]] = {}
        self._dropped = 0

    @property
    def waiting(self) -> bool:
        """Whether the next turn has something to go on with."""
        return bool(self._waiting or self._passed_over)

    def take_dropped(self) -> int:
        """How many requests nobody answers, since the last call, because too many waited."""
        dropped, self._dropped = self._dropped, 0
        return dropped

    def begin(self, units: int) -> list[Sink]:
        """A turn with so many units begins: the sinks that go on, with what is left in them."""
        self._left = units
        if not self._waiting and not self._passed_over:
            return []
        going = [*self._passed_over, *self._waiting]
        self._passed_over.clear()
        self._waiting.clear()
        for sink in going:
            sink.messages[:0] = self._rests.pop(id(sink))
        return going

    def cut(self, sink: Sink) -> None:
        """Leave in a sink what this turn serves of it."""
        messages = sink.messages
        rest = self._rests.get(id(sink))
        count = 0 if rest is not None else self._count(sink.owner, messages)
        if count == len(messages) and rest is None:
            return
        sink.messages = messages[:count]
        if rest is None:
            (self._waiting if count else self._passed_over).append(sink)
            rest = self._rests[id(sink)] = []
        room = self._waiting_max - len(rest)
        rest += messages[count : count + room]
        self._dropped += max(0, len(messages) - count - room)

    def _count(self, owner: object, messages: list[Captured]) -> int:
        for count, captured in enumerate(messages):
            if self._left <= 0:
                return count
            payload = captured[3]
            units = REQUEST_UNITS + len(payload) // UNIT_BYTES
            if isinstance(owner, DirectGetResponder):
                is_lookup = _is_lookup(payload)
                units = LOOKUP_UNITS if is_lookup else units + BATCH_UNITS
                if not is_lookup or may_search(payload) or may_search(captured[0]):
                    units += owner.replica.store.subject_count // SUBJECTS_PER_UNIT
            self._left -= units
        return len(messages)


def _is_lookup(payload: bytes) -> bool:
    return len(payload) <= LOOKUP_BYTES_MAX and b"multi" not in payload and b"batch" not in payload
