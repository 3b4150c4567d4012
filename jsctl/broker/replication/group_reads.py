"""Linearizable reads that groups were asked for, until their leaders confirm or refuse them."""

from dataclasses import field

from jsctl.broker.raft.ready import Ready
from jsctl.broker.raft.types import Index, Role
from jsctl.broker.replication.group import RaftGroup
from jsctl.dataclass import dataclass


@dataclass(slots=True)
class Reads:
    """The reads of all groups; tokens are the caller's."""

    answers: list[tuple[RaftGroup, int, bool]] = field(default_factory=list)
    """(group, token, whether the read may be served)."""
    _asked: dict[int, tuple[RaftGroup, Index]] = field(default_factory=dict)
    """Reads that are not answered yet, by token, and what is to be applied first in any case."""
    _confirmed: dict[str, list[tuple[int, Index]]] = field(default_factory=dict)
    """Name of a group -> (token, entry that has to be applied first)."""

    @property
    def waiting(self) -> bool:
        """Whether there are some."""
        return bool(self._asked)

    def asked(self, group: RaftGroup, token: int, index: Index = 0) -> None:
        """A group's raft was asked, for a read behind `index`."""
        self._asked[token] = group, index

    def take(self, group: RaftGroup, ready: Ready) -> None:
        """What a group's raft says, behind what it had to apply."""
        for token in ready.reads_failed:
            self._answer(token, False)
        confirmed = self._confirmed.pop(group.name, [])
        for token, index in ready.reads:
            if token in self._asked:
                least = self._asked[token][1]
                confirmed.append((token, max(index, least)))
        if confirmed and (left := [one for one in confirmed if not self._is_over(group, *one)]):
            self._confirmed[group.name] = left

    def _is_over(self, group: RaftGroup, token: int, index: Index) -> bool:
        """Whether a read that was confirmed is answered by now."""
        raft = group.raft
        if raft.applied >= index:
            self._answer(token, True)
        elif index > raft.log.commit and raft.role is not Role.LEADER:
            # The log up to there was this leader's: another one may never have it.
            self._answer(token, False)
        return token not in self._asked

    def fail(self, gone: RaftGroup | None = None) -> None:
        """Nobody is left to confirm the reads of a group, or (None) of all."""
        if gone is None:
            self._confirmed.clear()
        else:
            self._confirmed.pop(gone.name, None)
        for token, (group, _) in list(self._asked.items()):
            if gone is None or group is gone:
                self._answer(token, False)

    def _answer(self, token: int, good: bool) -> None:
        asked = self._asked.pop(token, None)
        if asked is not None:
            self.answers.append((asked[0], token, good))
