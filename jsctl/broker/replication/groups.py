"""All raft groups of this server, driven together over one write-ahead log.

Theory of operation. Inputs make groups dirty (`schedule`). `drain` empties the Ready of each dirty
group: records go to the log, messages that may leave at once go to the outbox, committed entries
are applied. `seal` ends the turn: what collected for the disk leaves, in one batch of the log
(`durability`) and in jobs beside it (`checkpoints`, `removals`). `synced` takes them back.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count
from typing import Protocol

from jsctl.broker.raft.core import Raft
from jsctl.broker.raft.ready import Ready
from jsctl.broker.raft.types import EntryKind, Index, Message, PeerId, Role, StandingKind
from jsctl.broker.replication.checkpoints import Checkpointer, GroupLimits
from jsctl.broker.replication.durability import DurabilityGate, Withheld
from jsctl.broker.replication.group import GroupKind, LeaderChange, RaftGroup, Waiter
from jsctl.broker.replication.group_reads import Reads
from jsctl.broker.replication.registry import GroupRegistry
from jsctl.broker.replication.removals import DirectoryRemover
from jsctl.broker.replication.schedule import Schedule
from jsctl.broker.replication.side_jobs import SideJobs
from jsctl.broker.store.wal.log import Wal
from jsctl.broker.turn import DiskBatch

TELL_NS = 20_000_000
"""How long followers wait at most to hear what is committed, where nobody waits for them."""


class Outbox(Protocol):
    """Where messages to peers collect during a turn."""

    def raft(self, peer: PeerId, key: bytes, messages: Sequence[Message]) -> None:
        """Queue messages of one group for a peer."""


class Groups:
    """The one place that moves the Ready of groups."""

    def __init__(self, wal: Wal, outbox: Outbox, limits: GroupLimits) -> None:
        tickets = count(-1, -1)  # Those of the log are positive
        self.wal = wal
        self.outbox = outbox
        self.limits = limits
        self.now_ns = 0
        """The time of the turn."""
        self._sync_began_ns: int | None = None
        """When the batch of the log went to the disk that is there now."""
        self.registry = GroupRegistry()
        self.schedule = Schedule()
        self.durability = DurabilityGate(wal)
        self.checkpoints = Checkpointer(wal, self.schedule, limits, tickets)
        self.removals = DirectoryRemover(tickets)
        self.side_jobs = SideJobs(tickets)
        self.reads = Reads()
        self._untold: dict[str, tuple[int, RaftGroup]] = {}
        """(when, whose followers are to be told what is committed), in order of time."""
        self.changes: list[LeaderChange] = []
        self.needs_state: list[tuple[RaftGroup, PeerId]] = []
        """(group, follower) whose next entry this leader does not keep any more."""
        self.put_off: dict[str, tuple[RaftGroup, Ready]] = {}
        """What is committed, and all that anybody waits for is said of it: it is applied when
        that has left, or before anything else is done that might tell the difference."""

    @property
    def by_name(self) -> Mapping[str, RaftGroup]:
        """All groups that are here."""
        return self.registry.by_name

    def add(self, group: RaftGroup) -> None:
        """Take a group in; it runs from the next drain on."""
        self.registry.add(group)
        self.durability.expect(group)
        self.schedule.wake(group)

    def remove(self, group: RaftGroup) -> None:
        """Forget a group that is not ours any more; its part of the log is whoever started it."""
        self.apply_rest()
        self._unlead(group)
        group.fail_waiting()
        group.part()
        self.registry.remove(group)
        self.schedule.forget(group)
        self.durability.forget(group)
        self.checkpoints.forget(group)
        self._untold.pop(group.name, None)
        self.reads.fail(group)

    def park(self) -> None:
        """Stop all groups and keep what they have on the disk: their files are closed, so that
        nothing reaches them any more that the disk has yet to finish."""
        for group in self.registry:
            self._unlead(group)
            group.fail_waiting()
            group.gone = True
            self.checkpoints.forget(group)
        self.reads.fail()
        self.registry.clear()
        self.schedule.clear()
        self.durability.clear()
        self._untold.clear()

    def by_key(self, key: bytes) -> RaftGroup | None:
        """The group that peers name by this key."""
        return self.registry.of_key(key)

    def touch(self, group: RaftGroup) -> None:
        """The group has something to do."""
        self.schedule.touch(group)

    def step(self, key: bytes, messages: Sequence[Message]) -> bool:
        """Messages of a peer for a group; False when the group is not here."""
        group = self.registry.of_key(key)
        if group is None:
            return False
        group.raft.step(messages)
        self.schedule.wake(group)
        return True

    def propose(
        self, group: RaftGroup, entries: Sequence[bytes], waiter: Waiter | None
    ) -> Index | None:
        """Put entries into the log; `waiter` is told the last one's result. None: not leading."""
        assert entries, group.name
        index = group.raft.propose(entries)
        if index is None:
            return None
        last = index + len(entries) - 1
        if waiter is not None:
            group.waiting[last] = waiter
        self.schedule.wake(group)
        return index

    def is_current(self, group: RaftGroup, *, settled: bool = False) -> bool:
        """Whether a read at this leader is answered without asking: it is the only member, so that
        nobody else can have committed anything, and all is applied that would be waited for."""
        raft = group.raft
        if not group.leading or raft.members.voters != (raft.me,):
            return False
        log = raft.log
        return raft.role is Role.LEADER and raft.applied >= (
            log.last_index if settled else log.commit
        )

    def read(self, group: RaftGroup, token: int, *, settled: bool = False) -> None:
        """Ask whether a read at this leader is current; `reads` gets the answer.

        `settled`: what is in the log by now is applied first, if this server leads until then.
        """
        self.reads.asked(group, token, group.raft.last_index if settled else 0)
        group.raft.read_index(token)
        self.schedule.wake(group)

    def ask(self, group: RaftGroup) -> None:
        """Somebody waits to hear whether all that this follower has is committed."""
        group.raft.ask()
        if group.raft.dirty:
            self.schedule.wake(group)

    def tick(self, ticks: int, later: int = 0) -> None:
        """Time went on by `ticks` for every group that is not asleep. It went on by `later` more,
        which `catch_up` tells when the messages that waited meanwhile are taken."""
        self.schedule.tick(ticks)
        if later:
            self.schedule.fell_behind(later)

    def catch_up(self) -> None:
        """The rest of the time comes, for those that it went by for."""
        self.schedule.catch_up()

    def peer_down(self, peer: PeerId) -> None:
        """A server is not reachable: wake what slept in trust of it."""
        for group in self.registry:
            if self._concerns(group, peer):
                group.raft.peer_down(peer)
                self.schedule.wake(group)

    def peer_up(self, peer: PeerId) -> None:
        """A server is reachable again."""
        for group in self.registry:
            # It may have left the group since it went down, and is to come back later.
            if peer in group.raft.down or self._concerns(group, peer):
                group.raft.peer_up(peer)
                self.schedule.wake(group)

    @property
    def disk_silent_ns(self) -> int:
        """How long the disk has not answered; 0 when nothing is asked of it."""
        return 0 if self._sync_began_ns is None else self.now_ns - self._sync_began_ns

    def hand_over_all(self) -> None:
        """Others are to lead what is on disks here; where nobody can, it stays."""
        for group in self.registry:
            if group.leading and not group.raft.volatile and group.raft.transfer():
                self.schedule.wake(group)

    def forget_memory_of(self, has_lost_memory: Callable[[PeerId], bool]) -> None:
        """Now and then: tell groups in memory that have no leader whom not to wait for."""
        for group in self.registry:
            raft = group.raft
            if raft.volatile and raft.leader is None:
                raft.lost_memory(frozenset(filter(has_lost_memory, raft.members.voters)))

    def go_on_without(self, is_removed: Callable[[PeerId], bool]) -> None:
        """Now and then: of two servers that have a group one was removed from the cluster. The
        other one has all that was acknowledged, and goes on alone."""
        for group in self.registry:
            raft = group.raft
            if (
                group.kind is GroupKind.META
                or raft.leader is not None
                or len(raft.members.voters) != 2
            ):
                continue
            others = [peer for peer in raft.members.voters if peer != raft.me]
            whole = raft.standing.kind is StandingKind.WHOLE
            if whole and all(map(is_removed, others)) and not raft.rescue(1):
                self.schedule.wake(group)

    @staticmethod
    def _concerns(group: RaftGroup, peer: PeerId) -> bool:
        members = group.raft.members
        return peer in members.voters or peer in members.learners or group.raft.leader == peer

    def synced(self, ticket: int) -> None:
        """A batch or a job ran: release what waited for it."""
        if self.removals.done(ticket) or self.checkpoints.done(ticket):
            return
        if self.side_jobs.done(ticket):
            return
        self._sync_began_ns = None
        self.removals.synced(ticket)
        self.side_jobs.synced(ticket)
        for held in self.durability.synced(ticket):
            self._release(held)

    def _release(self, held: Withheld) -> None:
        group = held.group
        if group.gone:
            return
        if held.to_persist is not None:
            group.raft.persisted(*held.to_persist)
        if held.messages:
            self._send(group, held.messages)
        if group.raft.dirty:
            self.touch(group)

    def _send(self, group: RaftGroup, messages: Iterable[Message]) -> None:
        by_peer: dict[PeerId, list[Message]] = {}
        for message in messages:
            by_peer.setdefault(message.to, []).append(message)
        for peer, batch in by_peer.items():
            self.outbox.raft(peer, group.key, batch)

    @property
    def tell_due_ns(self) -> int | None:
        """When `tell` has something to do."""
        return next(iter(self._untold.values()))[0] if self._untold else None

    def tell(self) -> None:
        """Tell followers what is committed, where they have not heard it with the next entry."""
        for name, (due_ns, group) in list(self._untold.items()):
            if due_ns > self.now_ns:
                break
            del self._untold[name]
            group.raft.tell()
            self.touch(group)

    def drain(self) -> None:
        """Move every dirty group's Ready until nothing is left to do in this turn."""
        for _ in range(self.limits.drain_rounds):
            if not self.schedule.busy:
                return
            for group in self.schedule.take():
                # An entry of the meta group may just have removed it.
                if not group.gone:
                    self._drain_one(group)

    def _drain_one(self, group: RaftGroup) -> None:
        raft = group.raft
        regained = raft.founding and group.unit.founded() and raft.members.voters == (raft.me,)
        if raft.send_dirty and raft.peers:
            raft.patient = group.patient is not None and group.patient()
        ready = raft.ready()
        if not ready:
            return
        if ready.untold:
            self._untold.pop(group.name, None)
            self._untold[group.name] = self.now_ns + TELL_NS, group
        free = self._write(group, ready, regained)
        if free is not None:
            self._release(free)
        if ready.send:
            self._send(group, ready.send)
        # Invariant: who waits for an entry of this leader is told before entries of another one
        # are applied, which may stand at the same indexes.
        if group.leading and not self._still_leads(group):
            self._unlead(group)
        if ready.committed:
            self._commit(group, ready)
        if ready.needs_snapshot:
            self.needs_state.extend((group, peer) for peer in ready.needs_snapshot)
        self.reads.take(group, ready)
        self._follow_role(group)

    def _write(self, group: RaftGroup, ready: Ready, regained: bool) -> Withheld | None:
        """What waits for nothing."""
        # Strangers may be answered, too: who has left, or does not know yet that it has not come.
        if not ready.send and not ready.send_after_sync:
            if regained:
                return self.durability.found(group, ready)
            if _passes(group, ready):
                return self.durability.pass_by(group, ready)
        return self.durability.write(group, ready)

    def _commit(self, group: RaftGroup, ready: Ready) -> None:
        """Apply what is committed, now or later."""
        if self._is_foretold(group, ready):
            self.put_off[group.name] = group, ready
            return
        if self.put_off:
            self.apply_rest()
        self._apply(group, ready)

    def _is_foretold(self, group: RaftGroup, ready: Ready) -> bool:
        """Whether these entries may be applied later, as what follows from them is said by now."""
        if group.foretell is None or group.name in self.put_off:
            return False
        if group.waiting or self.reads.waiting:
            return False
        return group.foretell(ready.committed)

    @property
    def is_ahead(self) -> bool:
        """Whether a leader has told of what is not applied yet."""
        return any([group.leading for group, _ in self.put_off.values()])

    def apply_rest(self) -> None:
        """Apply what was put off."""
        while self.put_off:
            put_off, self.put_off = self.put_off, {}
            for group, ready in put_off.values():
                if not group.gone:
                    self._apply(group, ready)

    def _apply(self, group: RaftGroup, ready: Ready) -> None:
        unit, waiting = group.unit, group.waiting
        for entry in ready.committed:
            result = 0
            if entry.kind is EntryKind.DATA:
                result = unit.apply(entry.index, entry.data)
            elif entry.kind is EntryKind.CONFIG:
                group.members = group.raft.membership.at(entry.index)
            group.applied_term = entry.term
            if waiting:
                waiter = waiting.pop(entry.index, None)
                if waiter is not None:
                    waiter(result)
        group.raft.applied_to(ready.committed[-1].index)
        self.checkpoints.applied(group)
        unit.caught_up()
        if group.raft.dirty:
            self.touch(group)

    @staticmethod
    def _serves(raft: Raft) -> bool:
        """Whether this server leads, and has applied all that came before it.

        A quorum may have committed the leader's first own entry before this server's own disk
        is done with it: until then its state lacks what it holds, and nothing may be decided.
        """
        return raft.role is Role.LEADER and raft.serving and raft.applied >= raft.own_term_index

    def _still_leads(self, group: RaftGroup) -> bool:
        return self._serves(group.raft) and group.led_term == group.raft.term

    def _follow_role(self, group: RaftGroup) -> None:
        raft = group.raft
        serving = self._serves(raft)
        if group.leading and not (serving and group.led_term == raft.term):
            self._unlead(group)
        leader = raft.leader or ""
        if raft.role is Role.LEADER and not serving:
            leader = ""
        if leader != group.leader or (serving and not group.leading):
            group.leader = leader
            self.changes.append(LeaderChange(group, leader, raft.term))
        if serving and not group.leading:
            group.leading = True
            group.led_term = raft.term
            group.leader_since_ns = self.now_ns
            group.unit.lead(raft.term)
            self.touch(group)

    def _unlead(self, group: RaftGroup) -> None:
        if group.leading:
            group.leading = False
            group.unit.unlead()
            group.fail_waiting()

    def relieve(self) -> None:
        """Now and then: what nobody waits for becomes durable, too, and the oldest part of the
        log is freed of groups that alone keep it."""
        self.durability.flush()
        self.checkpoints.rest()
        if self.checkpoints.is_behind:
            return
        for key, index in self.wal.pinned():
            group = self.registry.of_key(key)
            if group is None:
                continue
            # Behind a restart the log does not know it of groups that stand still.
            self.wal.release(key, group.checkpointed)
            if group.checkpointed < index:
                self.checkpoints.in_turn(group)
            elif group.raft.base_index < index <= group.checkpointed:
                wanted = group.raft.applied
                if group.states_sent:
                    wanted = self.checkpoints.wanted_behind(group, wanted)
                group.raft.compact(min(group.checkpointed, wanted))
                self.touch(group)

    def seal(self) -> list[DiskBatch]:
        """End of the turn: what the disk has to do now."""
        batch, free = self.durability.seal()
        for held in free:
            self._release(held)
        batches: list[DiskBatch] = []
        if batch is not None:
            batches.append(batch)
            self._sync_began_ns = self.now_ns
            self.removals.sealed(batch.ticket)
            self.side_jobs.sealed(batch.ticket)
        batches += self.checkpoints.seal()
        nothing_to_write = self.durability.idle and not self.wal.pending_bytes
        batches += self.removals.seal(log_idle=nothing_to_write)
        batches += self.side_jobs.seal()
        return batches

    @property
    def idle(self) -> bool:
        """Whether the disk has nothing of ours to do."""
        return not self.checkpoints.running and self.removals.idle and self.durability.idle


def _passes(group: RaftGroup, ready: Ready) -> bool:
    """Whether all that is to be written are entries of this server alone that may be lost."""
    raft = group.raft
    if group.passes is None or not ready.append or raft.peers or raft.role is not Role.LEADER:
        return False
    more = (ready.hard_state, ready.base, ready.standing, ready.truncate_from)
    return all(one is None for one in more) and group.passes(ready.append)
