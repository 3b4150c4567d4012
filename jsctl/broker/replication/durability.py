"""The gate between the log and the network: what waits until a batch of the log is durable.

Records go to the log when a Ready is taken; `seal` makes one batch of all that collected, when none
is with the disk. What a Ready wants sent after the sync (votes, answers to appends), and how far
the group's log is durable then, is held under the batch's ticket until `synced`. While a batch is
with the disk the next one collects, so one sync carries whatever arrived meanwhile. Entries of
groups that live in memory do not go to the log, and wait for nothing but their group's terms and
votes, which do; on the only server, from its founding on, for nothing.

What founds a group on its only server counts before it is durable, where the assignment alone says
what it is: lost in a crash, it comes again just so. Nobody waits for its records then, and they
leave with the next batch that somebody waits for, or that of `flush`. What is acknowledged later
stands behind them in the log. The same goes for entries that nobody would miss after a crash, if
nothing before them in their group's log has to wait.

Invariant: nothing that is held leaves before the batch with that Ready's records, and all batches
before it, are durable. No other server gets anything of a group's log before its founding is.
"""

from dataclasses import field
from itertools import islice

from jsctl.broker.raft import codec
from jsctl.broker.raft.ready import Ready
from jsctl.broker.raft.types import Index, Message
from jsctl.broker.replication.group import RaftGroup
from jsctl.broker.store.wal.log import Wal
from jsctl.broker.turn import DiskBatch
from jsctl.dataclass import dataclass


@dataclass(slots=True)
class Withheld:
    """What waits for a batch: messages of one group, and how far its log is then durable."""

    group: RaftGroup
    to_persist: tuple[Index, int] | None
    messages: list[Message]


@dataclass(slots=True)
class DurabilityGate:
    """What may leave is returned; the gate sends nothing itself."""

    wal: Wal
    _held: list[Withheld] = field(default_factory=list)
    """For the batch that collects."""
    _unsealed: list[RaftGroup] = field(default_factory=list)
    """Groups that have, or may have, records in the batch that collects."""
    _patient: int = 0
    """Of those, how many from the first on nobody waits for."""
    _in_sync: dict[int, list[Withheld]] = field(default_factory=dict)
    """With the disk, by ticket."""
    _founded: list[RaftGroup] = field(default_factory=list)
    """Provisional groups with records in the batch that is with the disk."""
    _due: bool = False
    """The batch that collects leaves although nobody waits for it."""

    @property
    def idle(self) -> bool:
        """Whether no batch is with the disk."""
        return not self._in_sync

    def expect(self, group: RaftGroup) -> None:
        """There are, or may be, records of this group that no batch carries yet."""
        if not group.unsealed:
            group.unsealed = True
            self._unsealed.append(group)

    def write(self, group: RaftGroup, ready: Ready) -> Withheld | None:
        """Hand to the log what is to be durable; returned is what waits for nothing.

        Entries that only memory holds are not written: whoever restarts has lost the state that
        they led to, and believes none of them.
        """
        if group.provisional and ready.send:
            ready.send_after_sync = ready.send + ready.send_after_sync
            ready.send = []
        self._record(group, ready)
        if not ready.to_persist and not ready.send_after_sync:
            return None
        held = Withheld(group, ready.to_persist, ready.send_after_sync)
        durable = not group.unsealed and group.ticket not in self._in_sync
        founding = group.provisional and ready.hard_state is None and not ready.send_after_sync
        if group.raft.volatile and (durable or founding):
            return held
        self._held.append(held)
        group.passing = False
        self.expect(group)
        return None

    def found(self, group: RaftGroup, ready: Ready) -> Withheld:
        """As `write`, for all that founds a group on its only server, if it would come again just
        so: it waits for nothing."""
        assert not ready.send and not ready.send_after_sync, "founded on its only server"
        group.provisional = True
        self._record(group, ready)
        return Withheld(group, ready.to_persist, [])

    def pass_by(self, group: RaftGroup, ready: Ready) -> Withheld | None:
        """As `write`, for entries alone that nobody would miss, on the only server that has them:
        they wait for nothing, unless something before them does."""
        assert not ready.send and not ready.send_after_sync, "nobody else has them"
        durable = not group.unsealed and group.ticket not in self._in_sync
        if not durable and not group.passing:
            return self.write(group, ready)
        group.passing = True
        self._record(group, ready)
        return Withheld(group, ready.to_persist, [])

    def _record(self, group: RaftGroup, ready: Ready) -> None:
        assert not group.gone, group.name
        wal, key, volatile = self.wal, group.key, group.raft.volatile
        before = wal.pending_bytes
        if ready.truncate_from is not None and not volatile:
            wal.add_truncate(key, ready.truncate_from)
        if ready.base is not None:
            base = ready.base
            wal.add_base(key, base.index, base.term, codec.encode_members(base.members))
        if ready.hard_state is not None:
            term, vote = ready.hard_state
            wal.add_vote(key, term, vote.encode())
        if ready.append:
            if not volatile:
                wal.add_entries(key, [(e.index, e.term, int(e.kind), e.data) for e in ready.append])
            group.log_bytes += sum([len(e.data) for e in ready.append])
        if ready.standing is not None:
            standing = ready.standing
            wal.add_standing(key, standing.kind.name.lower(), standing.term, standing.index)
        if wal.pending_bytes > before:
            self.expect(group)

    def seal(self) -> tuple[DiskBatch | None, list[Withheld]]:
        """End of the turn: the next batch, if it is time for one, and what waits for none."""
        if self._in_sync or not (self._due or self._held or self._unsealed):
            return None, []
        if not self._wanted():
            return None, []
        self._due = False
        free: list[Withheld] = []
        held, self._held = self._held, []
        batch = self.wal.take_batch()
        if batch is None:
            free = held
        else:
            assert batch.ticket not in self._in_sync, batch.ticket
            self._in_sync[batch.ticket] = held
            for group in self._unsealed:
                group.ticket = batch.ticket
        for group in self._unsealed:
            group.unsealed = False
        self._founded = [group for group in self._unsealed if group.provisional]
        self._unsealed, self._patient = [], 0
        return batch, free

    def _wanted(self) -> bool:
        """Whether somebody waits for what collects, or may."""
        if self._due or self._held:
            return True
        # Each is looked at once, however many collect: who comes to wait for it is held.
        for group in islice(self._unsealed, self._patient, None):
            if not (group.provisional or group.passing):
                return True
            self._patient += 1
        return False

    def flush(self) -> None:
        """What collects leaves at the end of this turn, though nobody may wait for it."""
        self._due = True

    def synced(self, ticket: int) -> list[Withheld]:
        """A batch is durable: what waited for it."""
        assert ticket in self._in_sync, ticket
        self.wal.done(ticket)
        for group in self._founded:
            group.provisional = False
        return self._in_sync.pop(ticket)

    def forget(self, group: RaftGroup) -> None:
        """A group is not ours any more: nothing of it leaves with the batch that collects."""
        self._held = [held for held in self._held if held.group is not group]

    def clear(self) -> None:
        """All groups stop."""
        self._held.clear()
