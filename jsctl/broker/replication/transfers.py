"""The transfers under way on this server, as leader and as follower."""

from collections.abc import Callable
from dataclasses import field

from jsctl.broker.errors import BrokerError
from jsctl.broker.peers.items import ChunkKind, StateAck, StateChunk
from jsctl.broker.peers.outbox import PeerOutbox
from jsctl.broker.raft import codec
from jsctl.broker.replication.catchup import STALL_NS, Receiver, Sender
from jsctl.broker.replication.group import RaftGroup, SyncJob
from jsctl.broker.replication.groups import Groups
from jsctl.broker.turn import LogLevel, LogLine
from jsctl.dataclass import dataclass

OFFERED_NS = 10_000_000_000
"""Who did not take over a damaged leader's group is not asked to again for so long."""
LED_NS = 3_000_000_000
"""By then all have told of their damage, and it is known who has none."""
GIVEN_UP_NS = 10_000_000_000
"""What was received is removed so long after the last piece: its sender gave up before."""
SENDERS_MAX = 16
"""Transfers that one server feeds at a time; others wait their turn."""


@dataclass(slots=True)
class ImportJob:
    """The job that makes a received state durable, bound to its receiver."""

    receiver: Receiver
    peer: str
    work: SyncJob

    @property
    def index(self) -> int:
        """What the state stands for."""
        return self.work.index

    def run(self) -> None:
        """Write and sync. Raises DiskError."""
        self.work.run()


@dataclass(slots=True)
class Transfers:
    """Senders by (group, peer), receivers by group. Times in ns."""

    groups: Groups
    outbox: PeerOutbox
    logs: list[LogLine]
    is_damaged: Callable[[str, str], bool]
    """Whether a peer told of damage in its replica of a group."""
    _offered_ns: dict[str, int] = field(default_factory=dict)
    """Group -> when another one was last asked to lead it, being whole."""
    _senders: dict[tuple[str, str], Sender] = field(default_factory=dict)
    _receivers: dict[str, Receiver] = field(default_factory=dict)
    _waiting: dict[tuple[str, str], RaftGroup] = field(default_factory=dict)
    _number: int = 0

    def wanted(self, group: RaftGroup, peer: str, now_ns: int) -> None:
        """A follower needs the state of a group that this server leads."""
        key = (group.name, peer)
        if key in self._senders:
            return
        if len(self._senders) >= SENDERS_MAX:
            self._waiting[key] = group
            return
        self._number += 1
        members = codec.encode_members(group.applied_members)
        sender = Sender(
            group,
            peer,
            self._number,
            group.raft.applied,
            group.applied_term,
            members,
            group.unit.export(),
            now_ns,
        )
        self._senders[key] = sender
        group.states_sent[peer] = sender.index
        self.logs.append(LogLine(LogLevel.INFO, f"Sending state of '{group.name}' to peer {peer}"))
        self._pump(sender, now_ns)

    def _pump(self, sender: Sender, now_ns: int) -> None:
        """Send what the window allows. Who finds its own state damaged lets another one lead that
        is whole; where there is none, damage is named and the rest is sent."""
        group = sender.group
        chunks = sender.pump()
        if group.unit.is_damaged() and self._lets_lead(group, now_ns):
            why = "it is damaged here, and another server leads that has it whole"
            self._end(sender, done=False, why=why, now_ns=now_ns)
            return
        self.outbox.parcel(sender.peer).chunks.extend(chunks)

    def _lets_lead(self, group: RaftGroup, now_ns: int) -> bool:
        """Hand over to a voter that has everything, and has it whole as far as is known."""
        raft, name = group.raft, group.name
        last_ns = self._offered_ns.get(name, -OFFERED_NS)
        if now_ns < max(group.leader_since_ns + LED_NS, last_ns + OFFERED_NS):
            return False
        heirs = [
            one
            for one in raft.progress()
            if one.active and not one.learner and not one.snapshot
            if one.match >= raft.commit and not self.is_damaged(name, one.peer)
        ]
        if not any(raft.transfer(one.peer) for one in heirs):
            return False
        self._offered_ns[name] = now_ns
        return True

    def acked(self, peer: str, ack: StateAck, now_ns: int) -> None:
        """A follower answers."""
        group = self.groups.by_key(ack.key)
        if group is None:
            return
        sender = self._senders.get((group.name, peer))
        if sender is None or sender.transfer != ack.transfer:
            return
        if ack.failed:
            self._end(sender, done=False, why=ack.failed, now_ns=now_ns)
        elif ack.done:
            self._end(sender, done=True, why="", now_ns=now_ns)
        else:
            sender.ack(ack, now_ns)
            self._pump(sender, now_ns)

    def _end(self, sender: Sender, *, done: bool, why: str, now_ns: int) -> None:
        group, peer = sender.group, sender.peer
        del self._senders[(group.name, peer)]
        del group.states_sent[peer]
        if done:
            group.raft.snapshot_sent(peer, sender.index)
        else:
            text = f"Sending state of '{group.name}' to peer {peer} failed: {why}"
            self.logs.append(LogLine(LogLevel.WARNING, text))
            group.raft.snapshot_failed(peer)
        self.groups.touch(group)
        while self._waiting:
            key = next(iter(self._waiting))
            waiting = self._waiting.pop(key)
            if waiting.leading:
                self.wanted(waiting, key[1], now_ns)
                return

    def tick(self, now_ns: int) -> None:
        """Give up what does not move, and what this server does not lead any more."""
        offered = self._offered_ns.items()
        self._offered_ns = {name: at for name, at in offered if now_ns < at + OFFERED_NS}
        for sender in list(self._senders.values()):
            if not sender.group.leading or now_ns - sender.heard_ns > STALL_NS:
                why = "no progress" if sender.group.leading else "leadership moved"
                self._end(sender, done=False, why=why, now_ns=now_ns)
        for name, receiver in list(self._receivers.items()):
            if receiver.job is None and now_ns - receiver.heard_ns > GIVEN_UP_NS:
                self._forget(name, receiver)

    def _forget(self, name: str, receiver: Receiver) -> None:
        """The rest of a state does not come: another leader may have sent the log instead."""
        del self._receivers[name]
        group = self.groups.by_name.get(name)
        if group is not None and group.unit is receiver.unit:
            receiver.importer.abandon()

    def received(self, peer: str, chunk: StateChunk) -> None:
        """A piece of state from a leader."""
        group = self.groups.by_key(chunk.key)
        if group is None or group.leading:
            return
        receiver = self._receiver(group, peer, chunk)
        if receiver is None:
            return
        receiver.heard_ns = self.groups.now_ns
        if chunk.kind is ChunkKind.LAST and chunk.index <= group.raft.commit:
            # The log brought the same meanwhile.
            receiver.importer.abandon()
            del self._receivers[group.name]
            known = StateAck(chunk.key, chunk.transfer, chunk.offset, done=True)
            self.outbox.parcel(peer).acks.append(known)
            return
        try:
            ack = receiver.take(chunk)
        except BrokerError as error:
            receiver.importer.abandon()
            del self._receivers[group.name]
            ack = StateAck(chunk.key, chunk.transfer, 0, done=False, failed=str(error))
        if ack is not None:
            self.outbox.parcel(peer).acks.append(ack)
        elif receiver.job is not None:
            self.groups.checkpoints.run(group, ImportJob(receiver, peer, receiver.job))

    def _receiver(self, group: RaftGroup, peer: str, chunk: StateChunk) -> Receiver | None:
        """The receiver that a chunk is for, begun with a first one; None: not wanted.

        Each process numbers its transfers from 1: what another leader, or the same one behind a
        restart, sends under the same number is another state.
        """
        receiver = self._receivers.get(group.name)
        if receiver is not None and receiver.unit is not group.unit:
            # The group was removed and is here again: what was received is not for this one.
            receiver = None
        if chunk.kind is not ChunkKind.FIRST:
            sent = receiver is not None and (receiver.peer, receiver.transfer)
            return receiver if sent == (peer, chunk.transfer) else None
        if receiver is not None and receiver.job is not None:
            return None
        if receiver is not None:
            receiver.importer.abandon()
        receiver = Receiver(chunk.transfer, group.unit, group.unit.importer(), peer)
        self._receivers[group.name] = receiver
        return receiver

    def imported(self, group: RaftGroup, job: ImportJob) -> None:
        """A received state is durable: use it, restart the log behind it, tell the leader."""
        receiver, chunk = job.receiver, job.receiver.chunk
        assert chunk is not None
        self._receivers.pop(group.name, None)
        if group.gone:
            return  # Removed in this very turn, with its directory.
        members = codec.decode_members(chunk.members)
        if chunk.index > group.raft.commit and not group.leading:
            receiver.importer.switch()
            group.raft.restore(chunk.index, chunk.term, members)
            group.members = members
            group.applied_term = chunk.term
            group.checkpointed = max(group.checkpointed, chunk.index)
            self.groups.wal.release(group.key, chunk.index)
            group.unit.caught_up()
            self.groups.touch(group)
        else:
            # The state file speaks of what was received: another one has to follow before
            # that goes. Jobs and deletions run in order.
            group.unit.state_overtaken()
            self.groups.checkpoints.soon(group)
            self.groups.checkpoints.when_written(group, receiver.importer.abandon)
        done = StateAck(chunk.key, chunk.transfer, receiver.offset, done=True)
        self.outbox.parcel(job.peer).acks.append(done)
