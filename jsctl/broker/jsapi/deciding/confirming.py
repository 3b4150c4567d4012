"""Requests at the server that decides on them: they wait until it knows that it does, and for a
turn that has room for them.

Decisions rest on reads that the group's leader had confirmed, so a leader that was cut off does not
answer from the past. Many are confirmed at once, others forward many at a time, and one may look
through all subjects of a stream or tell of hundreds of assets: they are decided on in their order,
and what a turn has no room for waits for the next one. What is confirmed stays so: a server that
leads still knows no less than it did.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import field
from functools import partial

from jsctl.broker.assets.engine import Engine
from jsctl.broker.assets.meta.group_file import META_GROUP
from jsctl.broker.assets.replicas.consumer_replica import ConsumerReplica
from jsctl.broker.assets.replicas.stream_replica import StreamReplica
from jsctl.broker.handlers.decisions import Decider
from jsctl.broker.jetstream.requests import ApiRequest
from jsctl.broker.jsapi.deciding.held import HELD_MAX, HeldRequest
from jsctl.broker.jsapi.deciding.placing import Placing
from jsctl.broker.jsapi.deciding.settling import Settling
from jsctl.broker.replication.group import RaftGroup
from jsctl.broker.sessions.request_budget import RequestBudget
from jsctl.dataclass import dataclass


@dataclass(slots=True)
class Confirming:
    """See the module."""

    engine: Engine
    placing: Placing
    settling: Settling
    budget: RequestBudget
    decide: Callable[[HeldRequest, bool], None]
    """True: what waits for a repair does so no longer."""
    hold: Callable[[HeldRequest], None]
    """Has another server decide."""
    _reading: dict[int, HeldRequest] = field(default_factory=dict)
    _next_token: int = 1
    waiting: deque[tuple[HeldRequest, bool]] = field(default_factory=deque)
    """Those that wait for a turn with room for them. Only changed here."""
    dropped: int = 0
    """How many came when too many waited. Only changed here."""

    def begin(self, group: RaftGroup, held: HeldRequest) -> None:
        """A request came to this server, as it leads the group."""
        unit, read = group.unit, partial(self._read, group, held)
        if isinstance(unit, ConsumerReplica):
            made = unit.assignment
            self.settling.behind(made.account, (made.stream,), read)
        elif isinstance(unit, StreamReplica) and b".STREAM.INFO." in held.request.subject:
            self.settling.consumed(unit, read)
        else:
            read()

    def _read(self, group: RaftGroup, held: HeldRequest) -> None:
        if len(self._reading) >= HELD_MAX:
            self.dropped += 1
            return
        unit = group.unit
        if isinstance(unit, StreamReplica) and unit.leading is not None:
            # Who published without an acknowledgement, and flushed, is to see that counted.
            unit.leading.admit()
        settled = group.name != META_GROUP
        if self.engine.groups.is_current(group, settled=settled):
            self.take(held)
            return
        token = self._next_token = self._next_token + 1
        self._reading[token] = held
        self.engine.groups.read(group, token, settled=settled)

    def go_on(self) -> bool:
        """Decide on what waited for groups that have come so far; whether there was anything."""
        some = bool(self.engine.reads) and self._confirmed()
        return (bool(self.settling.waiting) and self.settling.look()) or some

    def _confirmed(self) -> bool:
        """Decide on the requests whose reads were confirmed; whether there were any."""
        reads, self.engine.reads = self.engine.reads, []
        for token, good in reads:
            held = self._reading.pop(token, None)
            if held is None:
                continue
            if good and self._leads(held.request):
                self.take(held)
            else:
                self.hold(held)
        return bool(reads)

    def take(self, held: HeldRequest, final: bool = False) -> None:
        """Decide at once, or when it is this one's turn; `final` as in `decide`."""
        if not self.waiting and self.budget.left > 0:
            self.decide(held, final)
        elif len(self.waiting) < HELD_MAX:
            self.waiting.append((held, final))
        else:
            self.dropped += 1

    def take_dropped(self) -> int:
        """How many requests nobody decides on, since the last call, as too many wait."""
        dropped, self.dropped = self.dropped, 0
        return dropped

    def begin_turn(self) -> None:
        """Another turn: decide on those that it has room for, one at least."""
        first = True
        while self.waiting and (self.budget.left > 0 or first):
            first = False
            held, final = self.waiting.popleft()
            request = held.request
            if self.placing.target(request) is Decider.EVERY_SERVER or self._leads(request):
                self.decide(held, final)
            else:
                self.hold(held)

    def _leads(self, request: ApiRequest) -> bool:
        """Whether this server still leads who decides: a leader that was confirmed in a turn may
        have stepped down in the same turn, or while the request waited."""
        group = self.engine.groups.by_name.get(self.placing.place(request) or "")
        return group is not None and group.leading
