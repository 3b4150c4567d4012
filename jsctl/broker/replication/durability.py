"""The gate between the log and the network: what waits until a batch of the log is durable.

Records go to the log when a Ready is taken; `seal` makes one batch of all that collected, when none
is with the disk. What a Ready wants sent after the sync (votes, answers to appends), and how far
the group's log is durable then, is held under the batch's ticket until `synced`. While a batch is
with the disk the next one collects, so one sync carries whatever arrived meanwhile. Entries of
groups that live in memory do not go to the log, and wait for nothing but their group's terms and
votes, which do.

Invariant: nothing that is held leaves before the batch with that Ready's records, and all batches
before it, are durable.
"""

from dataclasses import dataclass, field

from jsctl.broker.raft import codec
from jsctl.broker.raft.ready import Ready
from jsctl.broker.raft.types import Index, Message
from jsctl.broker.replication.group import RaftGroup
from jsctl.broker.store.wal.log import Wal
from jsctl.broker.turn import DiskBatch


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
    _in_sync: dict[int, list[Withheld]] = field(default_factory=dict)
    """With the disk, by ticket."""

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
        if not ready.to_persist and not ready.send_after_sync:
            return None
        held = Withheld(group, ready.to_persist, ready.send_after_sync)
        if volatile and not group.unsealed and group.ticket not in self._in_sync:
            return held
        self._held.append(held)
        self.expect(group)
        return None

    def seal(self) -> tuple[DiskBatch | None, list[Withheld]]:
        """End of the turn: the next batch, if it is time for one, and what waits for none."""
        if self._in_sync:
            return None, []
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
        self._unsealed = []
        return batch, free

    def synced(self, ticket: int) -> list[Withheld]:
        """A batch is durable: what waited for it."""
        assert ticket in self._in_sync, ticket
        self.wal.done(ticket)
        return self._in_sync.pop(ticket)

    def forget(self, group: RaftGroup) -> None:
        """A group is not ours any more: nothing of it leaves with the batch that collects."""
        self._held = [held for held in self._held if held.group is not group]

    def clear(self) -> None:
        """All groups stop."""
        self._held.clear()
