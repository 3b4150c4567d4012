"""A step-down is answered when the leader that was asked to go has gone.

Whoever asks for the leader right behind the answer finds the next one, unless nobody takes over.
"""

from collections.abc import Callable, Sequence
from dataclasses import field

from jsctl.broker.assets.engine import Engine
from jsctl.broker.handlers.decisions import StepDown
from jsctl.broker.jetstream.requests import ApiRequest
from jsctl.broker.jsapi.deciding.held import LEADERLESS_NS
from jsctl.broker.jsapi.live_view import ApiView
from jsctl.broker.replication.group import RaftGroup
from jsctl.dataclass import dataclass

LOOK_NS = 10_000_000


@dataclass(slots=True)
class Leaving:
    """A leader that was asked to step down, and is about to."""

    group: RaftGroup
    term: int
    request: ApiRequest
    reply: bytes
    until_ns: int

    def is_over(self, now_ns: int) -> bool:
        """Whether somebody else leads as far as known here, or that takes too long."""
        group = self.group
        moved = not group.leading and group.raft.term > self.term and bool(group.leader)
        return moved or group.gone or now_ns >= self.until_ns


@dataclass(slots=True)
class StepDowns:
    """See the module."""

    view: ApiView
    engine: Engine
    answer: Callable[[ApiRequest, bytes], None]
    waiting: list[Leaving] = field(default_factory=list)
    """Leaders that are about to go. Only changed here."""

    def begin(self, request: ApiRequest, decision: StepDown) -> None:
        """Have the leader go that this server is."""
        group = self.engine.groups.by_name.get(decision.group)
        candidates: Sequence[str | None] = decision.candidates or [None]
        if group is None or not any(group.raft.transfer(peer) for peer in candidates):
            self.answer(request, decision.reply)
            return
        self.engine.groups.touch(group)
        until_ns = self.view.now_ns + LEADERLESS_NS
        self.waiting.append(Leaving(group, group.led_term, request, decision.reply, until_ns))

    def tick(self) -> None:
        """Answer for those that have gone."""
        waiting, self.waiting = self.waiting, []
        for one in waiting:
            if one.is_over(self.view.now_ns):
                self.answer(one.request, one.reply)
            else:
                self.waiting.append(one)

    def next_due_ns(self) -> int | None:
        """When `tick` has something to do."""
        return self.view.now_ns + LOOK_NS if self.waiting else None
