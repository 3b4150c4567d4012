"""Damaged messages of this server's replicas are fetched from peers, and made durable.

Theory of operation. A store knows which messages it has lost. For each replica with such ones an
agent says whom to ask for what (`agent`). An answer speaks of the stream as of one entry; it waits
here until this replica has come as far: then what is missing in it is removed, and what it has and
lives here is put back, if it is the very message that was here. That can be read at once; the
segments that it belongs to are written anew by a checkpoint, a portion at a time.

Nothing depends on who leads, and nothing is remembered beyond the process: a repair that is
interrupted begins again with what is still lost.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field

from jsctl.broker.assets.repair.agent import RepairAgent, common, without
from jsctl.broker.assets.repair.own_log import from_own_log
from jsctl.broker.assets.repair.range_server import RangeServer
from jsctl.broker.assets.repair.records import clipped, records_of, runs, told_range
from jsctl.broker.assets.replicas.facts import DamageNews, ReplicaDamageChanged
from jsctl.broker.assets.replicas.replica_context import ReplicaContext
from jsctl.broker.assets.replicas.stream_replica import StreamReplica
from jsctl.broker.errors import Damaged
from jsctl.broker.peers.items import RangeAnswer, RangeRequest
from jsctl.broker.peers.outbox import PeerOutbox
from jsctl.broker.store import record
from jsctl.broker.store.seqset import SeqSet
from jsctl.broker.turn import LogLevel
from jsctl.dataclass import dataclass

LOOK_NS = 1_000_000_000
"""How often is looked for damage that nobody has met."""
STEP_NS = 50_000_000
"""How often a repair that waits for something looks for it."""
UNSAVED_BYTES_MAX = 16 * 1024 * 1024
"""What was put back and is not durable yet; more is not asked for."""
EXAMINED_BYTES = 8 * 1024 * 1024
EXAMINED_STEP_BYTES = 1024 * 1024
LOST_BYTES = 128
"""What one that is damaged counts among them, as it is not known what it was."""
EXAMINE_NS = 10_000_000
"""How soon the next step of reading follows."""
SAVED_FILES_MAX = 2
"""Segments that are written anew by one checkpoint: what the log has to sync waits for that."""
ASKING_MAX = 4
"""Replicas that wait for answers at a time."""
LOOK_AGAIN_NS = 250_000_000
LOOK_AGAIN_NS_MAX = 60_000_000_000
"""How soon what the disk did not give is read once more; each time twice as long passes. A disk
that fails takes its time for that, in which nothing else is done."""
READ_AGAIN_MAX, FAILURES_MAX = 512, 2
"""Messages of one such look, and how many of them may fail."""
PATIENCE_NS = 5_000_000_000
"""So long what the disk did not give is not lost for good: consumers would go past it."""
RANGES_TOLD = 8
"""Ranges that a line of the log names."""


@dataclass(slots=True)
class Again:
    """When what the disk did not give is read once more, and whether that is waited for."""

    next_ns: int = 0
    pause_ns: int = LOOK_AGAIN_NS
    until_ns: int = 0
    """Up to then that is not lost for good; 0: nothing of it is waited for."""
    given_up: SeqSet = field(default_factory=SeqSet)

    def waited_for(self, unread: SeqSet, now_ns: int) -> SeqSet:
        """What of it is not lost for good."""
        fresh = without(unread, self.given_up)
        if fresh and not self.until_ns:
            self.until_ns, self.pause_ns = now_ns + PATIENCE_NS, LOOK_AGAIN_NS
            self.next_ns = min(self.next_ns, now_ns)
        elif not fresh or now_ns >= self.until_ns:
            self.given_up, self.until_ns, fresh = unread.copy(), 0, SeqSet()
        return fresh

    def is_due(self, now_ns: int) -> bool:
        """Whether it is time to look; the next time is later then."""
        if now_ns < self.next_ns:
            return False
        self.next_ns = now_ns + self.pause_ns
        self.pause_ns = min(2 * self.pause_ns, LOOK_AGAIN_NS_MAX)
        return True


@dataclass(slots=True)
class Repair:
    """The repair of one replica."""

    replica: StreamReplica
    agent: RepairAgent = field(default_factory=RepairAgent)
    held: tuple[RangeAnswer, str, list[tuple[int, int]]] | None = None
    """An answer that speaks of entries which are not applied here yet, of whom, and to what."""
    unsaved: int = 0
    """Bytes that were put back since the last checkpoint."""
    saving: bool = False
    looked_at: SeqSet = field(default_factory=SeqSet)
    """What the own log was asked for."""
    told: SeqSet = field(default_factory=SeqSet)
    """What of it was told to be damaged."""
    back: int = 0
    """Messages that were put back, and not told of yet."""
    examine: tuple[int, int] = (0, 0)
    """A sequence, and how many bytes behind it are to be read, as damage seldom comes alone."""
    unread: SeqSet = field(default_factory=SeqSet)
    """What is to be read whole, as a check that came upon damage there went no further."""
    again: "Again" = field(default_factory=lambda: Again())

    @property
    def examining(self) -> bool:
        """Whether something is still to be read."""
        seq, left = self.examine
        return bool(self.unread) or (left > 0 and seq <= self.replica.store.last_seq)

    @property
    def lost(self) -> SeqSet:
        """What is lost now."""
        return self.replica.store.lost


class Repairs:
    """Of all replicas of this server. `online`: whether a peer can be reached."""

    def __init__(
        self,
        context: ReplicaContext,
        outbox: PeerOutbox,
        online: Callable[[str], bool],
        streams: Mapping[tuple[str, str], StreamReplica],
    ) -> None:
        self._context = context
        self._outbox = outbox
        self._online = online
        self._streams = streams
        self._server = RangeServer(context, outbox)
        self.repaired: dict[str, int] = {}
        """Messages that were put back since the start of the process, by the name of the group."""
        self._repairs: dict[str, Repair] = {}
        """By the name of the group."""
        self._look_ns = 0

    # What peers say

    def asked(self, peer: str, request: RangeRequest) -> None:
        """A peer has lost messages."""
        self._server.asked(peer, request)

    def told(self, peer: str, answer: RangeAnswer) -> None:
        """A peer answers."""
        group = self._context.groups.by_key(answer.key)
        repair = None if group is None else self._repairs.get(group.name)
        question = None if repair is None else repair.agent.answered(answer.token, peer)
        if repair is None or question is None:
            return
        repair.held = answer, peer, question.ranges
        self._go_on(repair)

    def came_up(self, peer: str) -> None:
        """A peer can be reached."""
        for repair in self._repairs.values():
            repair.agent.came_up(peer)

    def look_at(self, replica: StreamReplica, first: int, last: int) -> None:
        """What rests of a replica is damaged: find out which messages of a range are concerned,
        and have what is sound written anew."""
        repair = self._repairs.setdefault(replica.group.name, Repair(replica))
        repair.unsaved += 1
        if first <= last:
            repair.unread.add_range(first, last)

    def at_work(self, name: str) -> bool:
        """Whether more of a group's messages may be found to be damaged, or come back, soon."""
        repair = self._repairs.get(name)
        return repair is not None and not (self._is_done(repair) and not repair.unsaved)

    # In a turn

    def tick(self, now_ns: int) -> None:
        """Answer, look for damage, and go on with repairs."""
        self._server.work(now_ns)
        damaged, self._context.damaged = self._context.damaged, {}
        if now_ns >= self._look_ns or damaged:
            self._look_ns = now_ns + LOOK_NS
            self._look()
        for name, seq in damaged.items():
            if name in self._repairs:
                self._repairs[name].agent.urgent = seq
        for name, repair in list(self._repairs.items()):
            if self._is_over(repair):
                del self._repairs[name]
            else:
                self._go_on(repair)

    def _look(self) -> None:
        for replica in self._streams.values():
            name = replica.group.name
            for first, last in replica.store.take_suspects():
                self.look_at(replica, first, last)
            replica.store.recount()
            if not replica.store.lost and name not in self._repairs:
                continue
            repair = self._repairs.setdefault(name, Repair(replica))
            repair.told = common(repair.told, repair.lost)
            self._tell_found(repair, repair.lost.copy())

    def _tell_found(self, repair: Repair, fresh: SeqSet) -> None:
        """Tell of what of these was not told of yet."""
        for first, last in common(repair.told, fresh).ranges():
            fresh.remove_range(first, last)
        for first, last in fresh.ranges():
            repair.told.add_range(first, last)
        if fresh:
            self._tell(repair.replica, DamageNews.FOUND, fresh, "damaged on this server")

    def _is_over(self, repair: Repair) -> bool:
        replica = repair.replica
        if replica.group.gone:
            return True
        if repair.lost or repair.unsaved or repair.saving or repair.examining:
            return False
        replica.hopeless = SeqSet()
        # What was consumed meanwhile could not be told from its subject.
        replica.consumed_anew()
        self._tell_back(repair)
        return True

    def _tell_back(self, repair: Repair) -> None:
        """What was put back is durable: say so."""
        count, repair.back = repair.back, 0
        if not count:
            return
        account, name = repair.replica.key
        text = f"Stream '{account} > {name}': {count} damaged messages are whole again"
        self._context.log(LogLevel.INFO, text)
        fact = ReplicaDamageChanged(account, name, DamageNews.REPAIRED, count)
        self._context.facts.append(fact)

    def next_due_ns(self) -> int | None:
        """When `tick` has something to do."""
        if self._context.damaged:
            return self._context.now_ns
        due_ns = self._server.next_due_ns()
        if self._repairs:
            examining = any(one.examining for one in self._repairs.values())
            soon_ns = self._context.now_ns + (EXAMINE_NS if examining else STEP_NS)
            due_ns = soon_ns if due_ns is None else min(due_ns, soon_ns)
        return due_ns

    # One repair

    def _go_on(self, repair: Repair) -> None:
        replica = repair.replica
        if replica.group.gone:
            return
        self._take_held(repair)
        self._look_again(repair)
        self._examine(repair)
        self._look_into_log(repair)
        self._judge(repair)
        if repair.unsaved >= UNSAVED_BYTES_MAX or (repair.unsaved and self._is_done(repair)):
            self._save(repair)
        if not repair.unsaved and self._is_done(repair):
            self._tell_back(repair)
        busy = repair.held is not None or repair.unsaved >= UNSAVED_BYTES_MAX
        if repair.lost and not busy and self._may_ask(repair):
            self._ask(repair)

    def _may_ask(self, repair: Repair) -> bool:
        asking = sum(one.agent.asked is not None for one in self._repairs.values())
        return repair.agent.asked is not None or asking < ASKING_MAX

    def _is_done(self, repair: Repair) -> bool:
        """Whether nothing more is to be expected for a while."""
        if repair.held is not None or repair.examining:
            return False
        return len(repair.agent.hopeless) == len(repair.lost)

    def _ask(self, repair: Repair) -> None:
        replica = repair.replica
        members = replica.group.raft.members.all()
        me = self._context.me
        peers = [peer for peer in members if peer != me and self._online(peer)]
        question = repair.agent.ask(repair.lost, peers, self._context.now_ns)
        if question is not None:
            request = RangeRequest(replica.group.key, question.token, question.ranges)
            self._outbox.parcel(question.peer).wanted.append(request)

    def _judge(self, repair: Repair) -> None:
        replica = repair.replica
        voters = [one for one in replica.group.raft.members.voters if one != self._context.me]
        waited_for = repair.again.waited_for(replica.store.unread, self._context.now_ns)
        fresh = repair.agent.judge(without(repair.lost, waited_for), voters)
        replica.hopeless = repair.agent.hopeless
        if fresh:
            self._tell(replica, DamageNews.LOST, fresh, "lost: no replica has them")
            replica.mended()

    def _look_again(self, repair: Repair) -> None:
        """Read once more what the disk did not give."""
        store = repair.replica.store
        if not store.unread or not repair.again.is_due(self._context.now_ns):
            return
        back = store.look_again(READ_AGAIN_MAX, FAILURES_MAX)
        if back:
            self._count_back(repair, back)
            # There may be more, and no reason to wait for it.
            repair.again.next_ns = self._context.now_ns
            repair.replica.mended()

    def _examine(self, repair: Repair) -> None:
        """Read a little of what lies behind damage that was just found: what is damaged there is
        asked for together, not one by one as somebody meets it."""
        store, known = repair.replica.store, repair.looked_at
        fresh = next((one for one, _ in repair.lost.ranges() if one not in known), 0)
        seq, left = (fresh, EXAMINED_BYTES) if fresh else repair.examine
        if left > 0 and seq <= store.last_seq:
            read = store.excerpt(seq, store.last_seq, EXAMINED_STEP_BYTES)
            spent = sum(map(len, read.frames)) + LOST_BYTES * len(read.lost)
            repair.examine = read.up_to + 1, left - max(spent, 1)
            repair.unread.remove_range(seq, read.up_to)
        elif repair.unread:
            first, last = next(iter(repair.unread.ranges()))
            up_to = last
            if store.first_seq <= last and first <= store.last_seq:
                up_to = store.excerpt(first, last, EXAMINED_STEP_BYTES).up_to
            repair.unread.remove_range(first, max(first, up_to))

    def _look_into_log(self, repair: Repair) -> None:
        """What the own log has needs no peer."""
        fresh = repair.lost.copy()
        for first, last in repair.looked_at.ranges():
            fresh.remove_range(first, last)
        if fresh:
            repair.looked_at = repair.lost.copy()
            found = from_own_log(repair.replica.group.raft, fresh)
            self._put_back(repair, found, runs(found))

    def _take_held(self, repair: Repair) -> None:
        """Use an answer as soon as this replica has applied what it speaks of."""
        if repair.held is None:
            return
        answer, peer, ranges = repair.held
        replica, agent = repair.replica, repair.agent
        if answer.index > replica.standing_index:
            return
        repair.held = None
        told = clipped(ranges, answer.up_to)
        if not told:
            agent.rest(peer, self._context.now_ns)
            return
        lacking = clipped(answer.lost, answer.up_to)
        agent.lacks(peer, lacking)
        sound = SeqSet(told)
        for first, last in lacking:
            sound.remove_range(first, last)
        try:
            self._put_back(repair, records_of(answer.frames), sound.ranges())
        except Damaged as error:
            agent.lacks(peer, told)
            account, name = replica.key
            text = f"Stream '{account} > {name}': an answer of {peer} is refused: {error}"
            self._context.log(LogLevel.WARNING, text)

    def _put_back(
        self, repair: Repair, found: Mapping[int, bytes], ranges: Iterable[tuple[int, int]]
    ) -> None:
        """Make what is lost in these ranges what was found. Raises Damaged."""
        store = repair.replica.store
        seqs, concerned = sorted(found), common(SeqSet(ranges), store.lost)
        lost = list(concerned.ranges())
        # It may be back before it is looked for the next time.
        self._tell_found(repair, concerned)
        for first, last in lost:
            raws = [found[seq] for seq in seqs[bisect_left(seqs, first) : bisect_right(seqs, last)]]
            count = store.restore(first, last, [record.frame_of_raw(raws)] if raws else [])
            self._count_back(repair, count)
            # What was removed is to be made durable as well.
            repair.unsaved += sum(map(len, raws)) + 1
        if lost:
            repair.replica.mended()

    def _count_back(self, repair: Repair, count: int) -> None:
        repair.back += count
        name = repair.replica.group.name
        self.repaired[name] = self.repaired.get(name, 0) + count

    # Durability

    def _save(self, repair: Repair) -> None:
        if repair.saving:
            return
        repair.saving, size = True, repair.unsaved
        replica = repair.replica
        replica.state_overtaken()
        # Others have what a crash takes back; a lone replica has it from its log, if at all.
        alone = len(replica.group.raft.members.voters) == 1
        replica.store.restorations_max = 0 if alone else SAVED_FILES_MAX
        checkpoints = self._context.groups.checkpoints
        checkpoints.soon(replica.group)

        def saved() -> None:
            repair.saving = False
            repair.unsaved -= size
            if replica.store.has_more_to_restore:
                repair.unsaved += 1

        checkpoints.when_written(replica.group, saved)

    def _tell(self, replica: StreamReplica, news: DamageNews, seqs: SeqSet, what: str) -> None:
        account, name = replica.key
        ranges = list(seqs.ranges())
        named = tuple(ranges[:RANGES_TOLD])
        fact = ReplicaDamageChanged(account, name, news, len(seqs), named)
        self._context.facts.append(fact)
        told = ", ".join(told_range(*one) for one in named)
        more = f" and {len(ranges) - RANGES_TOLD} more ranges" * (len(ranges) > RANGES_TOLD)
        text = f"Stream '{account} > {name}': {len(seqs)} messages are {what}: {told}{more}"
        self._context.log(LogLevel.ERROR, text)
